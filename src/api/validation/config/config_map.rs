//! Config maps.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::format::config_key;
use super::super::same::same;
use super::DATA_MAX;
use crate::api::ObjectMap;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (data, binary) = (At::member(object, "data"), At::member(object, "binaryData"));
    let mut size = 0;
    for (key, value) in data.entries() {
        errors.invalid_each(&value, key, config_key(key));
        if binary.value().get(key).is_some() {
            errors.invalid(&value, key, "duplicate of key present in binaryData");
        }
        size += value.text().len();
    }
    for (key, value) in binary.entries() {
        errors.invalid_each(&value, key, config_key(key));
        size += decoded_len(value.text());
    }
    if size > DATA_MAX {
        errors.too_long(&At::root(data.value()), DATA_MAX);
    }
}

/// How many bytes base64 stands for, without decoding it.
pub(super) fn decoded_len(text: &str) -> usize {
    let letters = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | b'=')).count();
    letters * 3 / 4
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    stays_immutable(new, old, &["data", "binaryData"], errors);
    create(new, errors);
}

/// What is marked immutable stays so, and as it is.
pub(super) fn stays_immutable(new: &ObjectMap, old: &ObjectMap, parts: &[&'static str], errors: &mut Errors) {
    if !At::member(old, "immutable").flag() {
        return;
    }
    let why = "field is immutable when `immutable` is set";
    let flag = At::member(new, "immutable");
    if !flag.flag() {
        errors.forbidden(&flag, why);
    }
    for part in parts {
        let field = At::member(new, part);
        let before = At::member(old, part);
        let both_empty = field.is_empty() && before.is_empty();
        if !both_empty && !same(field.value(), before.value()) {
            errors.forbidden(&field, why);
        }
    }
}
