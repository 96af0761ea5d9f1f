//! Strategic merge patch: a merge patch that uses the types of the kind.
//!
//! Lists are merged element by element, matched by one field, where the type says so. Members of a patch whose names start
//! with a dollar sign are directives. The rules and texts are those of apimachinery's
//! `strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta` (`docs/spec/patch-apply.md`, section 3).

mod interleave;
mod list;
mod lookup;
mod order;
mod positions;

use std::collections::HashSet;

use super::PatchError;
use crate::gotext;
use crate::schema::types::{GoShape, Types};
use crate::tree::{Edit, Map, Text, Value};
use list::ListPatch;
use lookup::Shape;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
const ELEMENT_ORDER: &str = "$setElementOrder";

/// Whether `patch` touches the member at `place`, one of its ancestors, or one of its descendants.
pub fn concerns(patch: &Value, place: &[&str]) -> bool {
    let Some((first, rest)) = place.split_first() else { return true };
    let Value::Object(members) = patch else { return true };
    members.iter().any(|(name, below)| match &**name {
        "$patch" | "$retainKeys" => true,
        name if name == *first => concerns(below, rest),
        // Directives such as `$setElementOrder/list`.
        name => name.split_once('/').is_some_and(|(_, list)| list == *first),
    })
}

/// Applies `patch` to an object of this type.
pub fn apply(document: Map, patch: &Value, shape: &GoShape) -> Result<Map, PatchError> {
    let (types, message) = (&*shape.types, shape.message);
    match patch {
        Value::Object(patch) => {
            merge_objects(document, patch.clone(), Shape::of_message(types, message), types)
        }
        Value::Null => Ok(document),
        other => Err(PatchError::Malformed(format!(
            "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            gotext::json_kind(other)
        ))),
    }
}

fn merge_objects(
    mut original: Map,
    mut patch: Map,
    shape: Shape<'_>,
    types: &Types,
) -> Result<Map, PatchError> {
    if let Some(directive) = patch.get(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => {
                patch.shift_remove(DIRECTIVE);
                Ok(patch)
            }
            Some("delete") => Ok(Map::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order::merge_ordered_lists(&mut original, &mut patch, shape, types)?;
    let mut edit = original.edit();
    for (key, value) in patch {
        if let Some(list) = listed(&key, DELETE_FROM_LIST) {
            let list = list.ok_or_else(|| malformed("invalid patch format of primitive list"))?;
            delete_from_list(&mut edit, list, value, shape, types)?;
        } else if value.is_null() {
            edit.remove(&key);
        } else {
            merge_member(&mut edit, key, value, shape, types)?;
        }
    }
    drop(edit);
    Ok(original)
}

fn merge_member(
    original: &mut Edit<'_>,
    key: Text,
    patch: Value,
    shape: Shape<'_>,
    types: &Types,
) -> Result<(), PatchError> {
    let Some(current) = original.get_mut(&key) else {
        if let Some(value) = taken(patch) {
            original.insert(key, value);
        }
        return Ok(());
    };
    match (current, patch) {
        (Value::Object(current), Value::Object(patch)) => {
            let field = shape.field(&key, types)?;
            *current = match field.strategy()? {
                "replace" => patch,
                _ => merge_objects(std::mem::take(current), patch, field.shape, types)?,
            };
        }
        (Value::Array(current), Value::Array(patch)) => {
            let list = ListPatch::of(shape.list(&key, types)?, types)?;
            *current = list.merge(std::mem::take(current), patch)?;
        }
        (current, patch) => match taken(patch) {
            Some(value) => *current = value,
            None => {
                original.remove(&key);
            }
        },
    }
    Ok(())
}

/// Removes values from a list of scalars, whatever the list's strategy is.
fn delete_from_list(
    original: &mut Edit<'_>,
    key: &str,
    values: Value,
    shape: Shape<'_>,
    types: &Types,
) -> Result<(), PatchError> {
    if values.is_null() {
        original.remove(key);
        return Ok(());
    }
    if let (Some(Value::Array(current)), Value::Array(values)) = (original.get_mut(key), values) {
        let list = ListPatch::of(shape.list(key, types)?, types)?;
        *current = list.delete(std::mem::take(current), values)?;
    }
    Ok(())
}

/// Checks and removes `$retainKeys`, which lists the members that stay.
fn retain_keys(original: &mut Map, patch: &mut Map) -> Result<(), PatchError> {
    let Some(keys) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || malformed("invalid patch format of retainKeys");
    let Value::Array(keys) = keys else { return Err(bad()) };
    let keys: HashSet<&str> = keys.iter().filter_map(Value::as_str).collect();
    let retained = |key: &str| keys.contains(key);
    let directive = |key: &str| key.starts_with(DELETE_FROM_LIST) || key.starts_with(ELEMENT_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !directive(key) && !retained(key)) {
        return Err(bad());
    }
    original.retain(|key, _| retained(key));
    Ok(())
}

/// The list to which a directive applies: `None` if `key` is another member, `Some(None)` if it names no list.
fn listed<'a>(key: &'a str, directive: &str) -> Option<Option<&'a str>> {
    key.starts_with(directive).then(|| key.strip_prefix(directive).and_then(|rest| rest.strip_prefix('/')))
}

/// The value that is inserted where the object has none. Nulls in it mean absence, and objects with `$patch` are
/// dropped, since there is nothing to apply the directive to; `None` if the value itself is such an object. Other
/// directives are kept as members, which no kind has.
fn taken(value: Value) -> Option<Value> {
    match value {
        Value::Object(object) if object.contains_key(DIRECTIVE) => None,
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(_, value)| !value.is_null());
            Some(Value::Object(kept.filter_map(|(key, value)| Some((key, taken(value)?))).collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(taken).collect())),
        scalar => Some(scalar),
    }
}

fn malformed(text: &str) -> PatchError {
    PatchError::Malformed(text.to_owned())
}

fn unknown_directive(directive: &Value, patch: &Map) -> PatchError {
    PatchError::Failed(format!(
        "unknown patch type: {} in map: {}",
        gotext::display_as_text(directive),
        gotext::display_map(patch)
    ))
}
