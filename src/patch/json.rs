//! JSON patch (RFC 6902) with the habits of evanphx/json-patch v4, which upstream uses.
//!
//! Negative indices count from the end, `replace` of an absent member adds it, and `test` takes an absent member for
//! null. A patch applies as a whole or not at all.

mod pointer;

mod touched;

use super::{Decoding, PatchError};
use crate::codec::depth::{MAX_DEPTH, depth};
use crate::gotext;
use crate::tree::{Map, Value};
use pointer::{Target, container, found};
pub use touched::sort_touched;

/// The largest number of operations of one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes the `copy` operations of one patch may add.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;
/// How many elements and members the operations of one patch may move. An element that is inserted or removed moves all
/// that follow it, so that ten thousand operations on a list of a million would move ten thousand million.
pub const MAX_MOVED: usize = 100_000_000;

/// What the operations of a patch have done so far.
#[derive(Default)]
struct Work {
    copied: usize,
    moved: usize,
}

/// Applies `patch`, an array of operations, to `document`.
pub fn apply(mut document: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = operations(patch, Decoding::Unchecked)?;
    let mut work = Work::default();
    for operation in operations {
        step(&mut document, operation, &mut work).ok_or(PatchError::DoesNotApply)?;
        if work.moved > MAX_MOVED {
            return Err(PatchError::TooManyMoves { limit: MAX_MOVED });
        }
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
fn step(document: &mut Value, operation: &Value, work: &mut Work) -> Option<()> {
    let operation = operation.as_object()?;
    let path = operation.get("path")?.as_str()?;
    let value = || operation.get("value").cloned().unwrap_or_default();
    match operation.get("op")?.as_str()? {
        "add" => {
            let value = value();
            check_depth(path, &value)?;
            add(document, path, value, work)
        }
        "remove" => remove(document, path, work).map(drop),
        "replace" => replace(document, path, value()),
        "move" => {
            let from = from(operation)?;
            let moved = remove(document, from, work)?;
            // What goes no deeper than it was needs no look.
            if steps(path) > steps(from) {
                check_moved(path, &moved, work)?;
            }
            add(document, path, moved, work)
        }
        "copy" => {
            let value = get(document, from(operation)?)?;
            if !value.is_null() {
                work.copied = work.copied.saturating_add(value.to_string().len());
            }
            if work.copied > MAX_COPIED {
                return None;
            }
            check_depth(path, &value)?;
            add(document, path, value, work)
        }
        "test" => test(document, path, operation.get("value").unwrap_or(&Value::Null)),
        _ => None,
    }
}

fn from(operation: &Map) -> Option<&str> {
    operation.get("from")?.as_str()
}

fn add(document: &mut Value, path: &str, value: Value, work: &mut Work) -> Option<()> {
    match container(document, path)? {
        Target::Member(object, key) => {
            object.insert(key, value);
        }
        Target::Element(array, key) if key == "-" => array.push(value),
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len() + 1)?;
            work.moved += array.len() - at;
            array.insert(at, value);
        }
    }
    Some(())
}

fn remove(document: &mut Value, path: &str, work: &mut Work) -> Option<Value> {
    match container(document, path)? {
        Target::Member(object, key) => {
            work.moved += object.len();
            object.shift_remove(&key)
        }
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len())?;
            work.moved += array.len() - at;
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
    (steps(path).saturating_add(depth(value)) <= MAX_DEPTH).then_some(())
}

/// As [`check_depth`], of a value that the patch did not bring along.
fn check_moved(path: &str, value: &Value, work: &mut Work) -> Option<()> {
    work.moved += nodes(value);
    check_depth(path, value)
}

fn steps(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// Values within a value, and itself.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(nodes).sum::<usize>(),
        Value::Array(items) => items.iter().map(nodes).sum(),
        _ => 0,
    }
}

/// An absent member reads as null.
fn get(document: &Value, path: &str) -> Option<Value> {
    found(document, path).cloned()
}

fn test(document: &Value, path: &str, want: &Value) -> Option<()> {
    let found = if path.is_empty() { document } else { found(document, path)? };
    (found == want).then_some(())
}

#[cfg(test)]
mod tests;
