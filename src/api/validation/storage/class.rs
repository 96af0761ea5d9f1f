//! Classes of storage, and of attributes of volumes.

use std::collections::{BTreeMap, BTreeSet};

use super::super::at::At;
use super::super::errors::Errors;
use super::super::same::{immutable_text, same};
use super::super::selector;
use crate::api::ObjectMap;
use crate::api::error::Cause;
use crate::api::meta::format::label_key;

const PARAMETERS: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    provisioner(&At::member(object, "provisioner"), errors);
    parameters(&At::member(object, "parameters"), errors);
    let (reclaim, binding) = (At::member(object, "reclaimPolicy"), At::member(object, "volumeBindingMode"));
    errors.one_of(&reclaim, reclaim.text_or("Delete"), &["Delete", "Retain"]);
    let mode = binding.opt_text().unwrap_or("Immediate");
    errors.one_of(&binding, mode, &["Immediate", "WaitForFirstConsumer"]);
    topologies(&At::member(object, "allowedTopologies"), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (parameters, before) = (At::member(new, "parameters"), At::member(old, "parameters"));
    if !same(parameters.value(), before.value()) {
        errors.invalid(&parameters, selector::shown_map(&parameters), "field is immutable");
    }
    for name in ["provisioner", "reclaimPolicy", "volumeBindingMode"] {
        immutable_text(&At::member(new, name), &At::member(old, name), errors);
    }
}

fn provisioner(at: &At<'_, '_>, errors: &mut Errors) {
    if at.text().is_empty() {
        errors.required(at, "");
    } else {
        let name = at.text().to_lowercase();
        errors.invalid_each(at, &name, label_key(&name));
    }
}

fn parameters(map: &At<'_, '_>, errors: &mut Errors) {
    if map.len() > PARAMETERS {
        return errors.too_long(map, PARAMETERS);
    }
    let mut size = 0;
    for (key, value) in map.entries() {
        if key.is_empty() {
            errors.invalid(map, key, "field can not be empty.");
        }
        size += key.len() + value.text().len();
    }
    if size > PARAMETERS_SIZE {
        errors.too_long(map, PARAMETERS_SIZE);
    }
}

fn topologies(list: &At<'_, '_>, errors: &mut Errors) {
    // How often there was each.
    let mut terms: BTreeMap<BTreeMap<&str, BTreeSet<&str>>, usize> = BTreeMap::new();
    for term in list.items() {
        let mut keys = BTreeMap::new();
        for requirement in term.get("matchLabelExpressions").items() {
            let (key, values) = (requirement.get("key"), requirement.get("values"));
            if values.is_empty() {
                errors.required(&values, "");
            }
            let mut seen = BTreeSet::new();
            for value in values.items() {
                if !seen.insert(value.text()) {
                    errors.duplicate(&value, value.text());
                }
            }
            selector::label_name(&key, errors);
            if keys.insert(key.text(), seen).is_some() {
                errors.duplicate(&key, key.text());
            }
        }
        // Upstream keeps as many empty terms as there are terms, and compares with these too.
        let empties = if keys.is_empty() { list.len() } else { 0 };
        let before = terms.entry(keys).or_default();
        let expressions = term.get("matchLabelExpressions");
        errors.add_times(*before + empties, || Cause::duplicate(expressions.path().to_string(), "\"\""));
        *before += 1;
    }
}

/// A new class of attributes.
pub fn create_attributes(object: &ObjectMap, errors: &mut Errors) {
    provisioner(&At::member(object, "driverName"), errors);
    let map = At::member(object, "parameters");
    parameters(&map, errors);
    if map.is_empty() {
        errors.required(&map, "must contain at least one key/value pair");
    }
}

pub fn update_attributes(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    for name in ["driverName", "parameters"] {
        let field = At::member(new, name);
        if !same(field.value(), At::member(old, name).value()) {
            errors.forbidden(&field, &format!("updates to {name} are forbidden."));
        }
    }
    create_attributes(new, errors);
}
