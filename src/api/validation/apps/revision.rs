//! Controller revisions.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::same::immutable;
use crate::api::ObjectMap;
use crate::tree::Value;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    errors.not_negative(&At::member(object, "revision"));
    let data = At::member(object, "data");
    match data.value() {
        Value::Object(_) => {}
        Value::Null => errors.required(&data, "data is mandatory"),
        _ => errors.required(&data, "data must be a valid JSON object"),
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    errors.not_negative(&At::member(new, "revision"));
    immutable(&At::member(new, "data"), &At::member(old, "data"), errors);
}
