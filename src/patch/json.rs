//! JSON patch (RFC 6902) with the habits of evanphx/json-patch v4, which upstream uses.
//!
//! Negative indices count from the end, `replace` of an absent member adds it, and `test` takes an absent member for
//! null. A patch applies as a whole or not at all.

mod pointer;

use super::{Decoding, PatchError};
use crate::codec::depth::{MAX_DEPTH, depth};
use crate::gotext;
use crate::tree::{Map, Value};
use pointer::{Target, container};

/// The largest number of operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes the `copy` operations of one patch may add.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;

/// Applies `patch`, an array of operations, to `document`.
pub fn apply(mut document: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = operations(patch, Decoding::Unchecked)?;
    let mut copied = 0;
    for operation in operations {
        step(&mut document, operation, &mut copied).ok_or(PatchError::DoesNotApply)?;
    }
    Ok(document)
}

/// Checks what can be told without the document, as upstream does before it reads the object.
pub fn operations(patch: &Value, decoding: Decoding) -> Result<&[Value], PatchError> {
    let list = match patch {
        Value::Array(list) => list.as_slice(),
        Value::Null => &[],
        other => return Err(undecodable(other, decoding, ["[]handlers.jsonPatchOp", "jsonpatch.Patch"])),
    };
    if let Some(bad) = list.iter().find(|item| !item.is_object() && !item.is_null()) {
        return Err(undecodable(bad, decoding, ["handlers.jsonPatchOp", "jsonpatch.Operation"]));
    }
    if list.len() > MAX_OPERATIONS {
        return Err(PatchError::TooManyOperations { limit: MAX_OPERATIONS, found: list.len() });
    }
    Ok(list)
}

/// Two decoders read patches at upstream: the one that checks has types of its own, as has the library. `of` is the
/// type of the list, or of an element.
fn undecodable(value: &Value, decoding: Decoding, of: [&str; 2]) -> PatchError {
    let found = gotext::json_kind(value);
    let [checked, library] = of;
    PatchError::Malformed(match decoding {
        Decoding::Checked => {
            format!("error decoding patch: json: cannot unmarshal {found} into Go value of type {checked}")
        }
        Decoding::Unchecked => format!("json: cannot unmarshal {found} into Go value of type {library}"),
    })
}

/// Whether some operation is about the value at `place`, what holds it, or what it holds.
pub fn concerns(patch: &Value, place: &[&str]) -> bool {
    let about = |operation: &Value, field: &str| {
        operation.get(field).and_then(Value::as_str).is_some_and(|path| pointer::meets(path, place))
    };
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    operations.iter().any(|operation| about(operation, "path") || about(operation, "from"))
}

/// One operation; `None` if it fails, whatever the reason.
fn step(document: &mut Value, operation: &Value, copied: &mut usize) -> Option<()> {
    let operation = operation.as_object()?;
    let path = operation.get("path")?.as_str()?;
    let value = || operation.get("value").cloned().unwrap_or_default();
    match operation.get("op")?.as_str()? {
        "add" => add(document, path, value()),
        "remove" => remove(document, path).map(drop),
        "replace" => replace(document, path, value()),
        "move" => {
            let moved = remove(document, from(operation)?)?;
            add(document, path, moved)
        }
        "copy" => {
            let value = get(document, from(operation)?)?;
            if !value.is_null() {
                *copied = copied.saturating_add(value.to_string().len());
            }
            if *copied > MAX_COPIED { None } else { add(document, path, value) }
        }
        "test" => test(document, path, operation.get("value").unwrap_or(&Value::Null)),
        _ => None,
    }
}

fn from(operation: &Map) -> Option<&str> {
    operation.get("from")?.as_str()
}

fn add(document: &mut Value, path: &str, value: Value) -> Option<()> {
    check_depth(path, &value)?;
    match container(document, path)? {
        Target::Member(object, key) => {
            object.insert(key, value);
        }
        Target::Element(array, key) if key == "-" => array.push(value),
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len() + 1)?;
            array.insert(at, value);
        }
    }
    Some(())
}

fn remove(document: &mut Value, path: &str) -> Option<Value> {
    match container(document, path)? {
        Target::Member(object, key) => object.shift_remove(&key),
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len())?;
            Some(array.remove(at))
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Option<()> {
    check_depth(path, &value)?;
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return None;
        }
        *document = value;
        return Some(());
    }
    match container(document, path)? {
        Target::Member(object, key) => {
            object.insert(key, value);
        }
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len())?;
            *array.get_mut(at)? = value;
        }
    }
    Some(())
}

/// Copies of a value into itself would double its depth each.
fn check_depth(path: &str, value: &Value) -> Option<()> {
    let steps = path.bytes().filter(|byte| *byte == b'/').count();
    (steps.saturating_add(depth(value)) <= MAX_DEPTH).then_some(())
}

/// An absent member reads as null.
fn get(document: &mut Value, path: &str) -> Option<Value> {
    match container(document, path)? {
        Target::Member(object, key) => Some(object.get(&key).cloned().unwrap_or_default()),
        Target::Element(array, key) => array.get(pointer::index(&key, array.len())?).cloned(),
    }
}

fn test(document: &mut Value, path: &str, want: &Value) -> Option<()> {
    let equal = if path.is_empty() { document == want } else { get(document, path)? == *want };
    equal.then_some(())
}

/// Sorts the objects of a result on the way to what the patch has changed, which is how Go prints them.
pub fn sort_touched(result: &mut Value, patch: &Value) {
    for operation in patch.as_array().into_iter().flatten() {
        for path in ["path", "from"].iter().filter_map(|name| operation.get(*name)?.as_str()) {
            let steps = path.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~"));
            let mut at = Some(&mut *result);
            for step in steps {
                let Some(value) = at else { break };
                if let Value::Object(members) = value {
                    members.sort_keys();
                }
                at = match value {
                    Value::Object(members) => members.get_mut(step.as_str()),
                    Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get_mut(index)),
                    _ => None,
                };
            }
        }
    }
}

#[cfg(test)]
mod tests;
