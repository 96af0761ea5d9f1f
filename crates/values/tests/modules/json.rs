//! Tests of `json`.

use rowplane_values::json::merged;
use rowplane_values::json::parse;
use rowplane_values::tree::Value;

#[test]
fn what_serde_json_reads_and_whether_a_member_came_twice() {
    let cases = [
        (r#"{"a":[1,-2,0.5,1e3,true,null,"x\n",{}],"b":18446744073709551615}"#, false),
        (r#"{"a":1,"b":{"a":2}}"#, false),
        (r#"{"a":1,"a":2}"#, true),
        (r#"[{"a":{"b":null,"b":null}}]"#, true),
        ("3", false),
    ];
    for (text, repeated) in cases {
        let parsed = parse(text.as_bytes()).expect(text);
        assert_eq!(parsed.value, serde_json::from_str::<Value>(text).expect(text), "{text}");
        assert_eq!(parsed.repeated, repeated, "{text}");
    }
}

#[test]
fn what_is_there_twice_is_read_over() {
    for (text, want) in [
        (r#"{"a":1,"a":2}"#, r#"{"a":2}"#),
        (r#"{"a":{"b":1,"c":{"d":1}},"a":{"c":{"e":2}}}"#, r#"{"a":{"b":1,"c":{"d":1,"e":2}}}"#),
        (r#"{"a":[{"b":1},{"b":2}],"a":[{"c":3}]}"#, r#"{"a":[{"b":1,"c":3}]}"#),
        (r#"{"a":[1],"a":[{"c":3},4]}"#, r#"{"a":[{"c":3},4]}"#),
        (r#"{"a":{"b":1},"a":null}"#, r#"{"a":null}"#),
        (r#"{"a":{"b":1},"a":[2]}"#, r#"{"a":[2]}"#),
    ] {
        assert_eq!(merged(text.as_bytes()).expect(text).to_string(), want, "{text}");
    }
}

#[test]
fn text_that_is_not_unicode() {
    let cases: [(&[u8], &str); 4] = [
        (b"\"a\xffb\"", "a\u{fffd}b"),
        (b"\"\xe2\x82(\"", "\u{fffd}\u{fffd}("),
        (br#""\ud800""#, "\u{fffd}"),
        (b"\"\xc3\\udc00\"", "\u{fffd}\u{fffd}"),
    ];
    for (body, want) in cases {
        assert_eq!(parse(body).expect(want).value, want);
    }
    let error = parse(br#"{"a":"\ud800",}"#).expect_err("is no JSON");
    assert_eq!((error.line(), error.column()), (1, 15));
}

#[test]
fn numbers_come_back_to_the_bit() {
    let mut bits: u64 = 1;
    for _ in 0..10_000 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = f64::from_bits(bits);
        if number.is_finite() {
            let parsed = parse(format!("{number:e}").as_bytes()).expect("a number").value;
            assert_eq!(parsed.as_f64().map(f64::to_bits), Some(bits), "{number:e}");
        }
    }
}

#[test]
fn depth_is_bounded_and_bad_utf8_is_replaced() {
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    assert_eq!(parse(b"\"a\xff\"").expect("lenient").value, Value::from("a\u{fffd}"));
    assert!(parse(b"{} {}").is_err());
}
