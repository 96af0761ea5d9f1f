//! Lists that are sets or maps: what their items must be.

use std::collections::BTreeSet;

use crate::kinds::prelude::*;

pub(super) fn set_items(items: &At<'_, '_>, errors: &mut Errors) {
    let why = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let (list, map) = (items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type"));
    match items.get("type").text() {
        "array" if list.is_set() && list.text() != "atomic" => errors.invalid(&list, list.text(), why),
        // Upstream shows the type of a list here too.
        "object" if map.text() != "atomic" => errors.invalid(&map, list.value(), why),
        _ => {}
    }
}

pub(super) fn map_list(items: &At<'_, '_>, keys: &At<'_, '_>, errors: &mut Errors) {
    errors.present(keys, "must not be empty if x-kubernetes-list-type is map");
    if !items.is_set() {
        return errors.required(items, "must have a schema if x-kubernetes-list-type is map");
    }
    if !items.value().is_object() {
        let why = "must only have a single schema if x-kubernetes-list-type is map";
        return errors.invalid(items, items.value(), why);
    }
    let kind = items.get("type");
    if kind.text() != "object" {
        return errors.invalid(
            &kind,
            kind.text(),
            "must be object if parent array's x-kubernetes-list-type is map",
        );
    }
    let (properties, mut seen) = (items.get("properties"), std::collections::BTreeSet::new());
    for key in keys.texts() {
        let property = properties.key(key);
        if !property.is_set() {
            errors.invalid(keys, keys.value(), "entries must all be names of item properties");
        } else if ["array", "object"].contains(&property.get("type").text()) {
            let why = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.invalid(&property.get("type"), "object", why);
        }
        if !seen.insert(key) {
            errors.invalid(keys, keys.value(), "must not contain duplicate entries");
        }
    }
}

pub(super) fn key_properties(items: &At<'_, '_>, keys: &At<'_, '_>, errors: &mut Errors) {
    let (properties, required) = (items.get("properties"), items.get("required"));
    let required: BTreeSet<&str> = required.texts().collect();
    for key in keys.texts() {
        let property = properties.key(key);
        if !property.is_set() {
            continue;
        }
        if !required.contains(key) && !property.get("default").is_set() {
            let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.required(&property.get("default"), why);
        }
        if property.get("nullable").flag() {
            let why = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.forbidden(&property.get("nullable"), why);
        }
    }
}
