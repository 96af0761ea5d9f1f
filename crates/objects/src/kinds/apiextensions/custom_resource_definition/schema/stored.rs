//! Faults of schemas that were stored before they were faults, and which updates tolerate.

use super::TYPES;
use super::list_types::{key_properties, set_items};
use crate::kinds::apiextensions::custom_resource_definition::structural;
use crate::kinds::apiextensions::custom_resource_definition::subschemas::schemas_below;
use crate::kinds::prelude::*;
use crate::schema::builtin;
use crate::schema::structural::DefaultRules;

/// Whether a structural schema has a default that it does not know whole.
pub fn has_unpruned_defaults(schema: &Value) -> bool {
    structural::is_structural(schema) && DefaultRules::are_unpruned(&builtin::types(), schema)
}

/// Whether anything in a schema is wrong in the eyes of a rule.
pub fn any(schema: &Value, rule: &dyn Fn(&At<'_, '_>, &mut Errors)) -> bool {
    let mut errors = Errors::default();
    rule(&At::root(schema), &mut errors);
    !errors.is_empty() || schemas_below(schema).any(|below| any(below, rule))
}

/// A list that is a set or a map, whose items upstream did not always look at.
pub fn loose_map_keys(schema: &At<'_, '_>, errors: &mut Errors) {
    let (items, list) = (schema.get("items"), schema.get("x-kubernetes-list-type"));
    if !["set", "map"].contains(&list.text()) || !items.value().is_object() {
        return;
    }
    if items.get("nullable").flag() {
        let why = format!("cannot be nullable when x-kubernetes-list-type is {}", list.text());
        errors.forbidden(&items.get("nullable"), &why);
    }
    if list.text() == "map" {
        key_properties(&items, &schema.get("x-kubernetes-list-map-keys"), errors);
    }
}

/// A set of what can be changed in part.
pub fn loose_set(schema: &At<'_, '_>, errors: &mut Errors) {
    if schema.get("x-kubernetes-list-type").text() == "set" {
        set_items(&schema.get("items"), errors);
    }
}

/// Whether a type stands anywhere that is none.
pub fn has_odd_types(schema: &Value) -> bool {
    any(schema, &|schema, errors| {
        let kind = schema.get("type");
        if !kind.text().is_empty() && !TYPES.contains(&kind.text()) {
            errors.not_supported(&kind, kind.text(), &TYPES);
        }
    })
}
