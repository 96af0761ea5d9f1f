//! Tests of `json::scan`.

use rowplane_values::json::scan::member;
use rowplane_values::json::scan::run;

#[test]
fn finds_members_among_nested_values_and_escapes() {
    let text = br#" { "a" : {"b":[1,"}"]} ,"c\"d":"x\\", "e":-1.5e3 } "#;
    assert_eq!(member(text, 0, "a").map(|r| &text[r]), Some(&br#"{"b":[1,"}"]}"#[..]));
    assert_eq!(member(text, 0, "e").map(|r| &text[r]), Some(&b"-1.5e3"[..]));
    assert_eq!(member(text, 0, "b"), None);
}

#[test]
fn runs_end_where_strings_may() {
    for length in 0..40 {
        for special in [0, 0x1f, b'"', b'\\'] {
            for other in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
                let mut text = vec![other; length];
                assert_eq!(run(&text, 0), length);
                text.extend([special, other, special, other, other, other, other, other, other]);
                assert_eq!(run(&text, 0), length, "{text:?}");
                assert_eq!(run(&text, length + 1), length + 2, "{text:?}");
            }
        }
    }
    assert_eq!(run(b"a", 3), 3);
}

#[test]
fn gives_up_on_anything_cut_short() {
    let text = br#"{"metadata":{"labels":{"a":"b\"c"},"name":"x"},"n":[1,{"m":null}]}"#;
    for end in 0..text.len() {
        assert_eq!(member(&text[..end], 0, "absent"), None, "cut at {end}");
    }
}
