//! The fast reader agrees with `serde_json`, and reads plain texts.

use proptest::prelude::*;

use super::super::{Repetition, read as read_whole};
use super::*;
use crate::tree;

/// Asserts that the result is the same as `serde_json`'s. Returns whether the fast reader read the text.
fn agrees(text: &str) -> bool {
    let repeated = std::cell::Cell::new(false);
    let seed = tree::Reader { repeated: Some(&repeated), repetition: Repetition::Replaces };
    let want = read_whole(text, seed);
    let found = read(text, ManagedPosition::Anywhere);
    if let Some(Parsed { value, repeated: twice }) = &found {
        assert_eq!((Some(value), *twice), (want.as_ref().ok(), repeated.get()), "{text}");
    }
    let mut reader = Reader { text, at: 0, repeated: false };
    if reader.skip(LEVELS).is_some() && reader.at == text.len() {
        assert!(want.is_ok(), "{text}");
    }
    found.is_some()
}

#[test]
fn what_is_plain_is_read() {
    for text in [
        "{}",
        " [ ] ",
        "null",
        "-12",
        "[0,-0,1.5,1e3,-7,999999999999999999,9223372036854775807,18446744073709551615]",
        "{\"a\\n\":\"\\u00e9\\ud83d\\ude00\",\"long\":\"0123456789abcdefghijklmnopqrstuvwxyz\\\"é\"}",
        "{\"a\":1,\"b\":{\"a\":2},\"a\":[true,false,null]}",
        "\t{ \"a\" :\r\n[ 1 , 2 ] }\n",
    ] {
        assert!(agrees(text), "{text}");
    }
    assert!(agrees(&format!("{}{}", "[".repeat(LEVELS), "]".repeat(LEVELS))));
}

#[test]
fn what_is_not_is_left() {
    for text in [
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\" 1}",
        "[1 2]",
        "01",
        "-",
        "1.",
        ".5",
        "+1",
        "1e",
        "tru",
        "nul",
        "truex",
        "\"a",
        "\"a\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\ud800\"",
        "\"a\nb\"",
        "{} {}",
        "1e400",
        "\u{feff}{}",
        "{\"a\":}",
        "]",
        "[\"0123456789abcde",
        "\"0123456789abcd\\",
    ] {
        assert!(!agrees(text), "{text}");
    }
    assert!(!agrees(&"[".repeat(100_000)));
}

#[test]
fn only_sets_stay_text() {
    let text = r#"{"metadata":{"managedFields":[{"fieldsV1": {"f:a" : {"k:{\"a\":1}":{}}} },{"fieldsV1":null},3]},
        "spec":{"fieldsV1":{}},"fieldsV1":{}}"#;
    let read = read(text, ManagedPosition::Object).expect("plain").value;
    let set = r#"{"f:a" : {"k:{\"a\":1}":{}}}"#;
    let want = tree::json!({
        "metadata": {"managedFields": [{"fieldsV1": set}, {"fieldsV1": null}, 3]},
        "spec": {"fieldsV1": {}},
        "fieldsV1": {},
    });
    assert_eq!(read, want);
    for bad in [r#"{"f:a":}"#, r#"{"f:a" {}}"#, r#"{"\u0066":{}}"#, "", "[1,]", "01"] {
        let text = format!(r#"{{"metadata":{{"managedFields":[{{"fieldsV1":{bad}}}]}}}}"#);
        assert!(super::read(&text, ManagedPosition::Object).is_none(), "{bad}");
    }
}

fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,40}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        let members = prop::collection::vec(("[ab\"é\n]{0,3}", inner.clone()), 0..6);
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(Into::into),
            members.prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read(value in value()) {
        prop_assert!(agrees(&value.to_string()));
        prop_assert!(agrees(&serde_json::to_string_pretty(&value).unwrap()));
    }

    #[test]
    fn whatever_is_read_is_json(value in value(), at in any::<prop::sample::Index>(), by in "[\\[\\]{}\",:0-9eE.\\\\u \n-]{0,2}") {
        let mut text: Vec<char> = value.to_string().chars().collect();
        let at = at.index(text.len());
        text.splice(at..=at, by.chars());
        agrees(&text.into_iter().collect::<String>());
    }
}
