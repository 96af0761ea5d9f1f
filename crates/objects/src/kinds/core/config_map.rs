//! ConfigMaps.

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, count, text_column};
use crate::kinds::behavior::rules::format::config_key;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("configmaps", "ConfigMap").short(&["cm"]),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

/// The most bytes that a Secret or ConfigMap may contain.
pub const DATA_MAX: usize = 1024 * 1024;

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

/// The number of bytes that base64 text encodes, without decoding it.
pub fn decoded_len(text: &str) -> usize {
    let letters = text.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r' | b'=')).count();
    letters * 3 / 4
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    stays_immutable(new, old, &["data", "binaryData"], errors);
    create(new, errors);
}

/// Validates that an immutable object stays immutable and unchanged.
pub fn stays_immutable(new: &ObjectMap, old: &ObjectMap, parts: &[&'static str], errors: &mut Errors) {
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

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Data", "Number of entries.")
            .of(|object, _| (count(&object["data"]) + count(&object["binaryData"])).into()),
        AGE,
    ],
    ..PLAIN
};
