//! Tests of `json::text`.

use rowplane_values::json::text::{write_compact, write_indented, write_json, write_string};
use rowplane_values::tree::{Value, json};

fn both(text: &str) -> String {
    let (mut string, mut value) = (Vec::new(), Vec::new());
    write_string(&mut string, text);
    write_json(&mut value, &Value::from(text));
    assert_eq!(string, value, "{text:?}");
    String::from_utf8(string).expect("UTF-8")
}

#[test]
fn embedded_json_has_no_line_ends_and_the_same_escapes() {
    let compact = |json: &str| {
        let mut out = Vec::new();
        write_compact(&mut out, json.as_bytes());
        String::from_utf8(out).expect("UTF-8")
    };
    for (json, want) in [
        (" [ ]\n", "[]"),
        ("{ \"a b\" : [1,\r\n\t2 ] }", r#"{"a b":[1,2]}"#),
        (r#" "\" \\" , "x  y" "#, r#""\" \\","x  y""#),
        (r#""<a&b>\u003c\n""#, r#""\u003ca\u0026b\u003e\u003c\n""#),
        ("\"\u{2028}\u{202a} é\"", "\"\\u2028\u{202a} é\""),
        ("true ", "true"),
    ] {
        assert_eq!(compact(json), want);
    }
    assert_eq!(compact("\"cut off\\"), "\"cut off\\");
}

#[test]
fn floats_are_written_as_go_writes_them() {
    for (value, want) in [
        (1.5, "1.5"),
        (3.0, "3"),
        (-0.0, "-0"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (9_223_372_036_854_775_808.0, "9223372036854776000"),
        (0.000_001, "0.000001"),
        (0.000_000_1, "1e-7"),
        (-1.25e-10, "-1.25e-10"),
    ] {
        let mut out = Vec::new();
        write_json(&mut out, &json!(value));
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}

#[test]
fn escapes_are_read_back() {
    let text: String = (0..0x3000).filter_map(char::from_u32).collect();
    for start in 0..64 {
        let text: String = text.chars().skip(start).collect();
        assert_eq!(serde_json::from_str::<String>(&both(&text)).expect("JSON"), text);
    }
    let mut out = Vec::new();
    write_json(&mut out, &json!({"<": [1, 1.5, null, "&"]}));
    assert_eq!(String::from_utf8_lossy(&out), r#"{"\u003c":[1,1.5,null,"\u0026"]}"#);
    out.clear();
    write_indented(&mut out, &json!({"a": [1, {"b": "<"}], "c": {}, "d": []}));
    let want =
        "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"\\u003c\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}";
    assert_eq!(String::from_utf8_lossy(&out), want);
}
