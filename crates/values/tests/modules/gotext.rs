//! Tests of `gotext`.

use std::time::Duration;

use jiff::Timestamp;
use rowplane_values::gotext::decode_base64;
use rowplane_values::gotext::display_float;
use rowplane_values::gotext::duration;
use rowplane_values::gotext::json;
use rowplane_values::gotext::micro_time;
use rowplane_values::gotext::parse_duration;
use rowplane_values::gotext::parse_int;
use rowplane_values::gotext::parse_uint;
use rowplane_values::gotext::push_micro_time;
use rowplane_values::gotext::quote;

/// Compared with Go 1.26.
#[test]
fn go_says_where_base64_is_wrong() {
    let wrong = [
        ("!", 0),
        ("Zm9", 0),
        ("e30=!", 4),
        ("Zg==Zg==", 4),
        ("Zg=", 3),
        ("Zg=a", 2),
        ("Zg=\n=\nx", 6),
        ("Zm9v\nZ", 5),
        ("Zm9vZ=", 5),
        ("=", 0),
        ("Zm\r\n9v!", 6),
        ("Zm9vZm", 4),
        ("Zm9=\n\n!", 6),
        ("\u{e9}", 0),
        ("Zg\n=", 4),
        ("Zg=\na", 3),
    ];
    for (text, at) in wrong {
        let told = format!("illegal base64 data at input byte {at}");
        assert_eq!(decode_base64(text), Err(told), "{text:?}");
    }
}

#[test]
fn times_digit_by_digit_are_those_of_the_printer() {
    let far = [Timestamp::MIN, Timestamp::MAX, Timestamp::UNIX_EPOCH];
    let step = 987_654_321_987_654_321_i128;
    let many = (-40..200).filter_map(|n| Timestamp::from_nanosecond(n * step).ok());
    for at in many.chain(far) {
        let mut out = Vec::new();
        push_micro_time(&mut out, at);
        assert_eq!(String::from_utf8_lossy(&out), micro_time(at));
    }
}

#[test]
fn durations_like_go() {
    let cases = [
        (0, "0s"),
        (7, "7ns"),
        (1_500, "1.5µs"),
        (20_000_000, "20ms"),
        (1_000_000_000, "1s"),
        (61_050_000_000, "1m1.05s"),
        (3_600_000_000_000, "1h0m0s"),
    ];
    for (nanoseconds, text) in cases {
        assert_eq!(duration(Duration::from_nanos(nanoseconds)), text);
    }
}

#[test]
fn quotes_like_go() {
    let cases = [
        ("abc", r#""abc""#),
        ("a\"\\", r#""a\"\\""#),
        ("a\x01\x7f\n", r#""a\x01\x7f\n""#),
        ("é\u{301}\u{200b}", "\"é\u{301}\\u200b\""),
        ("'", "\"'\""),
        ("\u{e0001}", "\"\\U000e0001\""),
    ];
    for (text, want) in cases {
        assert_eq!(quote(text), want);
    }
    assert_eq!(json(&rowplane_values::tree::json!(["a<b", 1])), r#"["a\u003cb",1]"#);
}

#[test]
fn floats_are_shown_like_go() {
    let cases = [
        (1000.0, "1000"),
        (1.5, "1.5"),
        (70000.0, "70000"),
        (1e6, "1e+06"),
        (2_147_483_648.0, "2.147483648e+09"),
        (1e21, "1e+21"),
        (-0.0001, "-0.0001"),
        (0.00001, "1e-05"),
    ];
    for (value, want) in cases {
        assert_eq!(display_float(value), want);
    }
}

#[test]
fn numbers_fail_with_gos_words() {
    assert_eq!(parse_int("+5"), Ok(5));
    assert_eq!(parse_int("-5"), Ok(-5));
    assert_eq!(parse_int("abc").unwrap_err(), r#"strconv.ParseInt: parsing "abc": invalid syntax"#);
    assert_eq!(parse_int("").unwrap_err(), r#"strconv.ParseInt: parsing "": invalid syntax"#);
    assert_eq!(
        parse_int("9223372036854775808").unwrap_err(),
        r#"strconv.ParseInt: parsing "9223372036854775808": value out of range"#
    );
    assert_eq!(parse_uint("007"), Ok(7));
    for bad in ["+1", "-1", "", "1.0"] {
        assert_eq!(
            parse_uint(bad).unwrap_err(),
            format!("strconv.ParseUint: parsing \"{bad}\": invalid syntax")
        );
    }
}

#[test]
fn durations() {
    let ok = [
        ("0", 0),
        ("10s", 10_000),
        ("1h2m3.5s", 3_723_500),
        (".5s", 500),
        ("1.s", 1_000),
        ("+1s", 1_000),
        ("-1s", 0),
    ];
    for (text, millis) in ok {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(millis)), "{text}");
    }
    let bad = [
        ("abc", r#"time: invalid duration "abc""#),
        ("", r#"time: invalid duration """#),
        ("-", r#"time: invalid duration "-""#),
        ("1..2s", r#"time: invalid duration "1..2s""#),
        ("10", r#"time: missing unit in duration "10""#),
        ("1x", r#"time: unknown unit "x" in duration "1x""#),
        ("9999999999999h", r#"time: invalid duration "9999999999999h""#),
    ];
    for (text, want) in bad {
        assert_eq!(parse_duration(text).unwrap_err(), want);
    }
}
