//! Tests of `tree::map`.

use std::hash::{DefaultHasher, Hash, Hasher};

use rowplane_values::tree::{Value, json};

/// Comparing each level twice would take 2^100 steps.
#[test]
fn deep_objects_that_differ_at_the_bottom_are_compared_once() {
    let deep = |bottom: i64| (0..100).fold(json!(bottom), |value, _| json!({"a": value, "b": 1}));
    assert_ne!(deep(1), deep(2));
    assert_eq!(deep(1), deep(1));
    let turned = |bottom: i64| (0..100).fold(json!(bottom), |value, _| json!({"b": 1, "a": value}));
    assert_ne!(deep(1), turned(2));
    assert_eq!(deep(1), turned(1));
}

#[test]
fn equal_values_have_equal_hashes() {
    let hash = |value: &Value| {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        hasher.finish()
    };
    let (one, other) = (json!({"a": 1, "b": [2, {"c": null}]}), json!({"b": [2, {"c": null}], "a": 1}));
    assert_eq!(hash(&one), hash(&other));
    assert_ne!(hash(&one), hash(&json!({"a": 1, "b": [2, {"d": null}]})));
    assert_ne!(hash(&json!({"a": "b", "c": "d"})), hash(&json!({"a": "d", "c": "b"})));
}

#[test]
fn order_is_not_what_they_are() {
    assert_eq!(json!({"a": 1, "b": [2, {"c": null}]}), json!({"b": [2, {"c": null}], "a": 1}));
    assert_ne!(json!({"a": 1, "b": 2}), json!({"a": 2, "b": 1}));
    assert_ne!(json!({"a": 1}), json!({"b": 1}));
}

#[test]
fn a_value_takes_four_words() {
    assert_eq!(size_of::<Value>(), 32);
}
