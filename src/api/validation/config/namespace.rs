//! Namespaces.

use super::super::at::At;
use super::super::errors::Errors;
use crate::api::ObjectMap;
use crate::api::meta::format::label_key;

/// Finalizers of the spec, which are not those of the metadata.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let list = spec.get("finalizers");
    list.texts().for_each(|name| finalizer(&list, name, errors));
}

/// What a write of its finalizers made of one.
pub fn finalized(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    spec.get("finalizers").items().for_each(|item| finalizer(&item, item.text(), errors));
}

fn finalizer(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    errors.invalid_each(at, name, label_key(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(at, name, why);
    }
}

pub fn update(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(new, "metadata");
    let status = At::member(new, "status");
    let phase = status.get("phase");
    let place = status.get("Phase");
    let (expected, why) = if metadata.get("deletionTimestamp").is_set() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase.text_or("Active") != expected {
        errors.invalid(&place, phase.text(), why);
    }
}
