use std::io::{BufRead, BufReader};

use rowplane_objects::codec::depth::MAX_DEPTH;
use rowplane_objects::codec::yaml::{parse, parse_stored, read, write};
use rowplane_values::gotext::decode_base64;
use rowplane_values::json::whole_numbers;
use rowplane_values::tree::{Map, Value, json};

/// Assertion 64 of `docs/spec/wire.md`.
#[test]
fn wire_64_lists_stand_under_their_key_and_strings_stay_strings() {
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
        ("base: &b {x: 1}\nmore:\n  <<: *b\n  z: 2\n", json!({"base": {"x": 1}, "more": {"x": 1, "z": 2}})),
        ("1: a\ntrue: b\n", json!({"1": "a", "true": "b"})),
        ("a: 1\na: 2\n", json!({"a": 2})),
        ("{\"a\": [1, \"x\", null]}", json!({"a": [1, "x", null]})),
        ("a: \"1\"\nb: ~\nc:\n", json!({"a": "1", "b": null, "c": null})),
        ("--- 1\n--- 2\n", json!(1)),
        ("a: 1\n...\n{[\n", json!({"a": 1})),
        ("a: 1.0\nb: 1e3\nc: 0.5\n", json!({"a": 1, "b": 1000, "c": 0.5})),
        ("a: !!binary YWI=\n", json!({"a": "ab"})),
    ] {
        assert_eq!(parse(text.as_bytes()), Ok(want), "{text}");
    }
}

#[test]
fn what_is_no_yaml_is_refused() {
    for (text, why) in [
        ("a: [1", "line 1: did not find expected ',' or ']'"),
        ("a: b: c", "mapping values are not allowed in this context"),
        ("a: *nobody", "unknown anchor 'nobody' referenced"),
        ("\"a\\", "found unknown escape character"),
    ] {
        assert_eq!(parse(text.as_bytes()), Err(format!("yaml: {why}")), "{text}");
    }
    assert_eq!(parse(bomb().as_bytes()), Err("yaml: document contains excessive aliasing".into()));
    let text = "x".repeat(1 << 20);
    let many = format!("a: &a {text}\nb: [{}]\n", ["*a"; 17].join(", "));
    assert_eq!(parse(many.as_bytes()), Err("yaml: document contains excessive aliasing".into()));
}

/// YAML nests as deeply as JSON does.
#[test]
fn depth_is_bounded() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(parse(nested(127).as_bytes()).is_ok(), "{open}");
        for depth in [128, 100_000] {
            let why = parse(nested(depth).as_bytes()).expect_err(open);
            assert_eq!(why, "yaml: line 1: exceeded max depth of 127");
        }
    }
    let block: String = (0..128).map(|n| format!("{}a:\n", "  ".repeat(n))).collect();
    assert_eq!(parse(block.as_bytes()), Err("yaml: line 128: exceeded max depth of 127".into()));
    let aliased =
        format!("- &a {}{}\n- {}*a{}\n", "[".repeat(70), "]".repeat(70), "[".repeat(70), "]".repeat(70));
    assert_eq!(parse(aliased.as_bytes()), Err("yaml: line 2: exceeded max depth of 127".into()));
}

/// Each line stands for twice what the one before stands for.
fn bomb() -> String {
    let lines = (1..30).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}]\n", n - 1));
    std::iter::once("a0: &a0 [x]\n".to_owned()).chain(lines).collect()
}

#[test]
fn what_is_stored_is_read_however_deep_and_large() {
    let mut deep = json!({});
    for _ in 1..MAX_DEPTH {
        deep = json!({"a": deep});
    }
    let mut wide = Map::new();
    for n in 0..260_000 {
        wide.insert(format!("k{n}"), Value::Null);
    }
    let mut long_key = Map::new();
    long_key.insert("k".repeat(5000), "v".into());
    for value in [deep, Value::Object(wide), Value::Object(long_key)] {
        let text = write(&value);
        assert!(parse_stored(text.as_bytes()) == Ok(value));
    }
    // As upstream, a client may not have long keys on one line.
    let long_key = format!("{}: v\n", "k".repeat(5000));
    assert_eq!(
        parse(long_key.as_bytes()),
        Err("yaml: mapping values are not allowed in this context".into())
    );
    assert!(parse_stored("[".repeat(100_000).as_bytes()).is_err());
    assert!(parse_stored(bomb().as_bytes()).is_err());
}

/// The documents of `tests/upstream/yaml`, and what sigs.k8s.io/yaml says about them.
#[test]
fn upstream_reads_the_same() {
    let packed = &include_bytes!("../../../../testdata/yaml/documents.jsonl.gz")[..];
    let (mut count, mut other_words, mut other_verdicts) = (0, 0, Vec::new());
    for line in BufReader::new(flate2::read::GzDecoder::new(packed)).lines() {
        let line: Line = serde_json::from_str(&line.expect("text")).expect("JSON");
        let document = if line.bytes.is_empty() {
            line.text.into_bytes()
        } else {
            decode_base64(&line.bytes).expect("base64")
        };
        let want = match &*line.error {
            "" => {
                let text = line.json.as_ref().map_or("null", |text| text.get());
                let mut value: Value = serde_json::from_str(text).expect("JSON");
                whole_numbers(&mut value);
                let strict = line.strict.strip_prefix("yaml: unmarshal errors:\n  ").map(str::to_owned);
                Ok((value, strict.unwrap_or_default()))
            }
            why => Err(why.to_owned()),
        };
        let found = read(&document).map(|found| (found.value, found.repeated.join("\n  ")));
        count += 1;
        match (&found, &want) {
            (found, want) if found == want => {}
            (Err(_), Err(_)) => other_words += 1,
            _ => other_verdicts.push(String::from_utf8_lossy(&document).into_owned()),
        }
    }
    assert!(count >= 6000, "{count}");
    // libyaml and go-yaml differ about byte order marks behind the start, and about `:`, `?` and tags before a `[`, `]`,
    // `{`, `}` or `,` (docs/differences.md).
    let odd = |text: &str| {
        text.trim_start_matches('\u{feff}').contains('\u{feff}')
            || text.contains(['[', ']', '{', '}'])
            || text.contains("!,")
    };
    let unexplained: Vec<_> = other_verdicts.iter().filter(|text| !odd(text)).collect();
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(other_verdicts.len() * 500 <= count, "{other_verdicts:#?}");
    assert!(other_words * 50 <= count, "{other_words} of {count}");
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Line {
    text: String,
    bytes: String,
    json: Option<Box<serde_json::value::RawValue>>,
    error: String,
    strict: String,
}
