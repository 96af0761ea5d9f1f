//! JSON patch (RFC 6902) with the deviations of evanphx/json-patch v4, which upstream uses.
//!
//! Negative indices count from the end, `replace` of an absent member adds it, and `test` treats an absent member as
//! null. A patch is applied as a whole or not at all.

mod pointer;

mod touched;

use super::{Decoding, PatchError};
use crate::codec::depth::{MAX_DEPTH, depth};
use crate::gotext;
use crate::tree::{Map, Value};
use pointer::{Target, container, found};
pub use touched::sort_touched;

/// The most operations in one patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// How many bytes the `copy` operations of one patch may add in total.
pub const MAX_COPIED: usize = 3 * 1024 * 1024;
/// How many elements and members the operations of one patch may move in total. Inserting or removing an element moves
/// all elements behind it, so ten thousand operations on a list of a million elements would move ten thousand million.
pub const MAX_MOVED: usize = 100_000_000;

/// How much work the operations of a patch have done so far.
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

/// Makes the checks that need no document, as upstream does before it reads the object.
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

/// The error of a body that cannot be decoded. Upstream decodes patches twice, into types of its own for the check and
/// into types of the library; `of` names the two types of the list, or of an element.
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

/// Whether an operation touches the value at `place`, one of its ancestors, or one of its descendants.
pub fn concerns(patch: &Value, place: &[&str]) -> bool {
    let about = |operation: &Value, field: &str| {
        operation.get(field).and_then(Value::as_str).is_some_and(|path| pointer::meets(path, place))
    };
    let operations = patch.as_array().map_or(&[][..], Vec::as_slice);
    operations.iter().any(|operation| about(operation, "path") || about(operation, "from"))
}

/// Carries out one operation; `None` if it fails for any reason.
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
            // A value that does not move deeper than it was need not be checked.
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

/// Checks that the value is not too deep at `path`: copying a value into itself would double its depth each time.
fn check_depth(path: &str, value: &Value) -> Option<()> {
    (steps(path).saturating_add(depth(value)) <= MAX_DEPTH).then_some(())
}

/// Like [`check_depth`], for a value of the document; counts the visited values as moved.
fn check_moved(path: &str, value: &Value, work: &mut Work) -> Option<()> {
    work.moved += nodes(value);
    check_depth(path, value)
}

fn steps(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// The number of values in a value, counting itself.
fn nodes(value: &Value) -> usize {
    1 + match value {
        Value::Object(members) => members.values().map(nodes).sum::<usize>(),
        Value::Array(items) => items.iter().map(nodes).sum(),
        _ => 0,
    }
}

/// Reads a value; an absent member reads as null.
fn get(document: &Value, path: &str) -> Option<Value> {
    found(document, path).cloned()
}

fn test(document: &Value, path: &str, want: &Value) -> Option<()> {
    let found = if path.is_empty() { document } else { found(document, path)? };
    (found == want).then_some(())
}

#[cfg(test)]
mod tests;
