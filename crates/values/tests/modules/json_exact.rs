//! Tests of `json::exact`.

use rowplane_values::json::complaint;

#[test]
fn go_complains_in_these_words() {
    let cases = [
        ("", "unexpected end of JSON input"),
        (" {", "unexpected end of JSON input"),
        ("{\"a\":1} x", "invalid character 'x' after top-level value"),
        ("{a:1}", "invalid character 'a' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 2}", "invalid character '2' after object key:value pair"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("[1}", "invalid character '}' after array element"),
        ("trux", "invalid character 'x' in literal true (expecting 'e')"),
        ("\"\n\"", "invalid character '\\n' in string literal"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        ("\"\\u12g4\"", "invalid character 'g' in \\u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("'", "invalid character '\\'' looking for beginning of value"),
        ("01", "invalid character '1' after top-level value"),
        ("x", "invalid character 'x' looking for beginning of value"),
    ];
    for (text, want) in cases {
        assert_eq!(complaint(text.as_bytes()).as_deref(), Some(want), "{text}");
    }
    for text in ["{}", "[]", " {\"a\":[1,-0.5e3,{\"b\":[]}],\"c\":\"\\u00e9\\n\"} ", "null", "\"\u{ff}\""] {
        assert_eq!(complaint(text.as_bytes()), None, "{text}");
    }
}
