//! Tests of `regexp`.

use rowplane_values::regexp::LENGTH_MAX;
use rowplane_values::regexp::Regexp;
use rowplane_values::regexp::Room;
use rowplane_values::regexp::check;

#[test]
fn what_is_no_expression_is_told_in_go_s_words() {
    for (expression, want) in [
        ("(a", "missing closing ): `(a`"),
        ("a)", "unexpected ): `a)`"),
        ("[a", "missing closing ]: `[a`"),
        ("*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("a{3,2}", "invalid repeat count: `{3,2}`"),
        (r"\", "trailing backslash at end of expression: ``"),
        (r"\y", r"invalid escape sequence: `\y`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"\p{Foo}", r"invalid character class range: `\p{Foo}`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        ("(?P<n-m>a)", "invalid named capture: `(?P<n-m>`"),
    ] {
        let error = Regexp::compile(expression).expect_err(expression).to_string();
        assert_eq!(error, format!("error parsing regexp: {want}"), "{expression}");
    }
}

#[test]
fn expressions_mean_what_they_mean_to_go() {
    for (expression, text, want) in [
        (r"^\d+$", "12", true),
        (r"^\d+$", "१", false),
        (r"^\w$", "é", false),
        (r"^\s$", "\x0b", false),
        ("a$", "a\n", false),
        ("(?m)a$", "a\nb", true),
        ("^.$", "\n", false),
        ("(?s)^.$", "\n", true),
        ("^[a&&b]+$", "a&b", true),
        ("^[a[b]+$", "[ab", true),
        ("^a{,2}$", "a{,2}", true),
        (r"^\Qa.b\E+$", "a.bb", true),
        (r"^\x{e9}\x41\101$", "éAA", true),
        ("(?i)^straSSe$", "STRAſſE", true),
        (r"^\p{Lu}\pL\P{Lu}$", "AbC", false),
        (r"^\p{Greek}$", "α", true),
        ("^[[:alpha:][:^alpha:]]$", "é", true),
        ("^(?P<year>[0-9]{4})-(?<m>[0-9]{2})$", "2026-11", true),
        (r"^\<\_\-$", "<_-", true),
        ("", "x", true),
    ] {
        assert_eq!(
            Regexp::compile(expression).expect(expression).is_match(text),
            want,
            "{expression} {text}"
        );
    }
}

#[test]
fn large_expressions_are_refused_before_they_are_built() {
    let large = "error parsing regexp: expression too large: ";
    for expression in
        [r"\pL".repeat(20_000), "a".repeat(LENGTH_MAX + 1), format!("({}){{1000}}", "a".repeat(9000))]
    {
        let error = check(&expression).expect_err("too large").to_string();
        assert!(error.starts_with(large), "{}", &error[..80]);
    }
    let deep = format!("{}{}", "(".repeat(300), ")".repeat(300));
    let error = check(&deep).expect_err("too deep").to_string();
    assert!(error.starts_with("error parsing regexp: expression nests too deeply: "), "{error}");
    let error =
        Regexp::compile(r"^[\pL\pN]{1000}[\pL\pM]{1000}[\pL\pS]{1000}$").expect_err("too large").to_string();
    assert!(error.starts_with(large), "{error}");
}

#[test]
fn a_room_bounds_all_programs_together() {
    let room = Room::of(1 << 20);
    let compiled: Vec<_> =
        (0..100).map(|number| room.compile(&format!("^[a-z]{{1,60}}-{number}$"))).collect();
    let fit = compiled.iter().take_while(|compiled| compiled.is_ok()).count();
    assert!((2..=32).contains(&fit), "{fit}");
    let error = compiled[99].as_ref().expect_err("no room").to_string();
    assert_eq!(error, "error parsing regexp: expression too large: `^[a-z]{1,60}-99$`");
    assert!(compiled[0].as_ref().is_ok_and(|compiled| compiled.is_match("abc-0")));
    // Of a large one there is no room for even one.
    assert!(Room::of(1 << 20).compile(r"^[\pL\pN]{900}$").is_err());
}

#[test]
fn matching_is_linear() {
    let expression = Regexp::compile("^(a|a|a?)*(a*)*$").expect("an expression");
    let text = "a".repeat(100_000);
    assert!(expression.is_match(&text));
    assert!(!expression.is_match(&format!("{text}!")));
}

#[test]
fn a_search_costs_by_the_text_and_what_is_repeated() {
    let steps = |expression: &str| Regexp::compile(expression).expect("an expression").steps(64);
    assert_eq!((steps("^ab[c-e]$"), steps("(?:x|yz)*"), steps("a(a|b){900}c")), (5, 3, 902));
    assert_eq!((steps("((ab){10}){10,}"), steps("a{0}b")), (200, 1));
}
