//! The types of the fields of `metadata`, for bodies that no schema has checked.

use super::Metadata;
use crate::gotext::{Fraction, json_kind, parse_time};
use crate::tree::Value;
use crate::{ObjectMap, metadata};

const TEXTS: [&str; 6] = ["name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"];
const TIMES: [&str; 2] = ["creationTimestamp", "deletionTimestamp"];
const OWNER_TEXTS: [&str; 4] = ["apiVersion", "kind", "name", "uid"];
const OWNER_FLAGS: [&str; 2] = ["controller", "blockOwnerDeletion"];

/// Checks the metadata of an object. The error is `encoding/json`'s text. Null is accepted for every field.
pub fn check(object: &ObjectMap) -> Result<(), String> {
    match (object.get("metadata"), metadata(object)) {
        (_, Some(metadata)) => check_fields(metadata),
        (None | Some(Value::Null), None) => Ok(()),
        (Some(other), None) => {
            let found = json_kind(other);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field .metadata of type v1.ObjectMeta"
            ))
        }
    }
}

fn check_fields(metadata: &Metadata) -> Result<(), String> {
    for field in TEXTS {
        expect(metadata, field, "string", Value::is_string)?;
    }
    for field in ["generation", "deletionGracePeriodSeconds"] {
        expect(metadata, field, "int64", Value::is_i64)?;
    }
    for field in TIMES {
        expect(metadata, field, "string", Value::is_string)?;
        check_time(metadata, field)?;
    }
    for field in ["labels", "annotations"] {
        expect(metadata, field, "map[string]string", Value::is_object)?;
        let values = metadata.get(field).and_then(Value::as_object).into_iter().flatten();
        each(values.map(|(_, value)| value), field, "string", Value::is_string)?;
    }
    expect(metadata, "finalizers", "[]string", Value::is_array)?;
    each(items(metadata, "finalizers"), "finalizers", "string", Value::is_string)?;
    check_owners(metadata)
}

fn check_owners(metadata: &Metadata) -> Result<(), String> {
    let field = "ownerReferences";
    expect(metadata, field, "[]v1.OwnerReference", Value::is_array)?;
    each(items(metadata, field), field, "v1.OwnerReference", Value::is_object)?;
    for owner in items(metadata, field).filter_map(Value::as_object) {
        let path = |key: &str| format!("{field}.{key}");
        for key in OWNER_TEXTS {
            each(owner.get(key).into_iter(), &path(key), "string", Value::is_string)?;
        }
        for key in OWNER_FLAGS {
            each(owner.get(key).into_iter(), &path(key), "bool", Value::is_boolean)?;
        }
    }
    Ok(())
}

fn items<'a>(metadata: &'a Metadata, field: &str) -> impl Iterator<Item = &'a Value> {
    metadata.get(field).and_then(Value::as_array).into_iter().flatten()
}

fn expect(metadata: &Metadata, field: &str, kind: &str, fits: fn(&Value) -> bool) -> Result<(), String> {
    each(metadata.get(field).into_iter(), field, kind, fits)
}

fn each<'a>(
    mut values: impl Iterator<Item = &'a Value>,
    field: &str,
    kind: &str,
    fits: fn(&Value) -> bool,
) -> Result<(), String> {
    match values.find(|value| !value.is_null() && !fits(value)) {
        None => Ok(()),
        Some(value) => {
            let found = json_kind(value);
            Err(format!(
                "json: cannot unmarshal {found} into Go struct field ObjectMeta.metadata.{field} of type {kind}"
            ))
        }
    }
}

fn check_time(metadata: &Metadata, field: &str) -> Result<(), String> {
    match metadata.get(field).and_then(Value::as_str) {
        Some(text) => parse_time(text, Fraction::Any).map(drop),
        None => Ok(()),
    }
}
