//! Tests of `options::selector::field`.

use rowplane_api::options::selector::field::FieldSelector;
use rowplane_api::options::selector::field::Operator;

#[test]
fn terms_and_escapes() {
    let selector = FieldSelector::parse(r"b!=x\,y\=\\,a==1,,c=").unwrap();
    let terms: Vec<_> = selector.terms().iter().map(|t| (&*t.field, t.operator, &*t.value)).collect();
    assert_eq!(
        terms,
        [("a", Operator::Equals, "1"), ("b", Operator::NotEquals, r"x,y=\"), ("c", Operator::Equals, ""),]
    );
    assert_eq!(selector.requires_exact_match("a"), Some("1"));
    assert_eq!(selector.requires_exact_match("b"), None);
    assert!(selector.matches(|f| if f == "a" { "1".into() } else { "".into() }));
    assert!(!selector.matches(|_| "1".into()));
    assert!(FieldSelector::parse("").unwrap().is_empty());
}

#[test]
fn texts_of_refusal() {
    let cases = [
        ("x", "invalid selector: 'x'; can't understand 'x'"),
        ("a=b,x", "invalid selector: 'a=b,x'; can't understand 'x'"),
        (r"a=\x", r"invalid field selector: invalid escape sequence: \x"),
        (r"a=\", r"invalid field selector: invalid escape sequence: \"),
        ("a=b=c", "invalid field selector: unescaped character in value: 61"),
    ];
    for (text, want) in cases {
        assert_eq!(FieldSelector::parse(text).unwrap_err(), want, "{text}");
    }
}

#[test]
fn no_input_panics() {
    use rand::{RngExt, SeedableRng};
    let pieces = ["a", "é", "=", "!", ",", "\\", "\0"];
    let mut rng = rand::rngs::SmallRng::seed_from_u64(3);
    for _ in 0..20_000 {
        let length = rng.random_range(0..10);
        let text: String = (0..length).map(|_| pieces[rng.random_range(0..pieces.len())]).collect();
        let _ = FieldSelector::parse(&text);
    }
}
