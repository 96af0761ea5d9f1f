use super::*;
use crate::tree::json;

/// Assertion 64 of `docs/spec/wire.md`.
#[test]
fn w64_lists_stand_under_their_key_and_strings_stay_strings() {
    let value = json!({
        "metadata": {"name": "a", "annotations": {}},
        "items": [{"b": "yes", "a": "1"}, ["x", []], "plain text", {}],
        "kind": "List",
    });
    let expected = "\
items:
- a: \"1\"
  b: \"yes\"
- - x
  - []
- plain text
- {}
kind: List
metadata:
  annotations: {}
  name: a
";
    assert_eq!(write(&value), expected);
    assert_eq!(parse(expected.as_bytes()), Ok(value));
}

#[test]
fn strings_are_quoted_where_they_must_be() {
    for (text, want) in [
        ("", "\"\""),
        ("~", "\"~\""),
        ("Null", "\"Null\""),
        ("nUll", "nUll"),
        ("off", "\"off\""),
        ("0x1F", "\"0x1F\""),
        ("1e3", "\"1e3\""),
        ("12:30", "\"12:30\""),
        ("2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""),
        ("2026-01-02", "\"2026-01-02\""),
        ("1.2.3", "1.2.3"),
        ("100m", "100m"),
        ("a: b", "'a: b'"),
        ("it's: b", "'it''s: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("-", "'-'"),
        ("-a", "-a"),
        ("*", "'*'"),
        ("{a}", "'{a}'"),
        (" a", "' a'"),
        ("<a&b>", "<a&b>"),
        ("a\tb", "\"a\\tb\""),
        ("é\u{2028}", "\"é\\L\""),
        ("\u{1}", "\"\\x01\""),
    ] {
        assert_eq!(write(&json!(text)), format!("{want}\n"), "{text}");
        assert_eq!(parse(write(&json!(text)).as_bytes()), Ok(json!(text)), "{text}");
    }
}

#[test]
fn lines_become_a_block() {
    for (text, want) in [
        ("a\nb\n", "k: |\n  a\n  b\n"),
        ("a\n\nb", "k: |-\n  a\n\n  b\n"),
        ("a\n\n", "k: |+\n  a\n\n"),
        (" a\nb", "k: |2-\n   a\n  b\n"),
        ("a \nb", "k: \"a \\nb\"\n"),
    ] {
        let value = json!({"k": text});
        assert_eq!(write(&value), want, "{text:?}");
        assert_eq!(parse(want.as_bytes()), Ok(value), "{text:?}");
    }
    let nested = json!({"a": [{"b": "x\ny"}]});
    assert_eq!(write(&nested), "a:\n- b: |-\n    x\n    y\n");
    assert_eq!(parse(write(&nested).as_bytes()), Ok(nested));
}

#[test]
fn input_is_yaml_1_1() {
    for (text, want) in [
        ("a: yes\nb: off\nc: 0755\n", json!({"a": true, "b": false, "c": 493})),
        ("a: 9223372036854775807\nb: 1.5\n", json!({"a": i64::MAX, "b": 1.5})),
        ("base: &b {x: 1}\nmore:\n  <<: *b\n  y: 2\n", json!({"base": {"x": 1}, "more": {"x": 1, "y": 2}})),
        ("1: a\ntrue: b\n", json!({"1": "a", "true": "b"})),
        ("a: 1\na: 2\n", json!({"a": 2})),
        ("{\"a\": [1, \"x\", null]}", json!({"a": [1, "x", null]})),
        ("a: \"1\"\nb: ~\nc:\n", json!({"a": "1", "b": null, "c": null})),
    ] {
        assert_eq!(parse(text.as_bytes()), Ok(want), "{text}");
    }
}

#[test]
fn what_is_no_yaml_is_refused() {
    for text in ["a: [1", "a: b: c", "a: *nobody", "--- 1\n--- 2\n"] {
        assert!(parse(text.as_bytes()).is_err(), "{text}");
    }
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    let bomb: String = std::iter::once("a0: &a0 [x]\n".to_owned())
        .chain((1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1)))
        .collect();
    assert!(parse(bomb.as_bytes()).is_err());
}
