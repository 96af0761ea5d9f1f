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
use pointer::{Found, Index, Target, container, found};
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
        step(&mut document, operation, &mut work)?;
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

/// Carries out one operation. Errors have the library's words.
fn step(document: &mut Value, operation: &Value, work: &mut Work) -> Result<(), PatchError> {
    let nothing = Map::new();
    let operation = operation.as_object().unwrap_or(&nothing);
    match member(operation, "op").unwrap_or("unknown") {
        "add" => {
            let path = member(operation, "path").ok_or_else(|| undecoded("add", "path", ""))?;
            let value = operation.get("value").cloned().unwrap_or_default();
            check_depth(path, &value)?;
            let to = container(document, path).ok_or_else(|| {
                unfit(format!("add operation does not apply: doc is missing path: \"{path}\": {MISSING}"))
            })?;
            add(to, value, work).map_err(|why| unfit(format!("error in add for path: '{path}': {why}")))
        }
        "remove" => {
            let path = member(operation, "path").ok_or_else(|| undecoded("remove", "path", ""))?;
            let from = container(document, path).ok_or_else(|| {
                unfit(format!("remove operation does not apply: doc is missing path: \"{path}\": {MISSING}"))
            })?;
            let removed = remove(from, work);
            removed.map(drop).map_err(|why| unfit(format!("error in remove for path: '{path}': {why}")))
        }
        "replace" => {
            let path = path_of(operation, "replace")?;
            replace(document, path, operation.get("value").cloned().unwrap_or_default())
        }
        "move" => transfer(document, operation, work),
        "copy" => copy(document, operation, work),
        "test" => test(document, path_of(operation, "test")?, operation.get("value")),
        other => Err(unfit(format!("Unexpected kind: {other}"))),
    }
}

/// The library's error about something absent.
const MISSING: &str = "missing value";

fn unfit(why: String) -> PatchError {
    PatchError::DoesNotApply(why)
}

fn member<'a>(operation: &'a Map, name: &str) -> Option<&'a str> {
    operation.get(name)?.as_str()
}

/// The error of an operation that lacks a member. Some operations say which, some do not.
fn undecoded(operation: &str, name: &str, of: &str) -> PatchError {
    unfit(format!("{operation} operation failed to decode {name}: {of}{MISSING}"))
}

fn path_of<'a>(operation: &'a Map, name: &str) -> Result<&'a str, PatchError> {
    let missing = || undecoded(name, "path", "operation missing path field: ");
    member(operation, "path").ok_or_else(missing)
}

fn from_of<'a>(operation: &'a Map, name: &str) -> Result<&'a str, PatchError> {
    let missing = || undecoded(name, "from", "operation, missing from field: ");
    member(operation, "from").ok_or_else(missing)
}

fn transfer(document: &mut Value, operation: &Map, work: &mut Work) -> Result<(), PatchError> {
    let from = from_of(operation, "move")?;
    let source = container(document, from).ok_or_else(|| {
        unfit(format!("move operation does not apply: doc is missing from path: {from}: {MISSING}"))
    })?;
    let key = source.key().to_owned();
    let moved =
        remove(source, work).map_err(|why| unfit(format!("error in move for path: '{key}': {why}")))?;
    let path = path_of(operation, "move")?;
    // A value that does not move deeper than it was need not be checked.
    if steps(path) > steps(from) {
        check_moved(path, &moved, work)?;
    }
    let to = container(document, path).ok_or_else(|| {
        unfit(format!("move operation does not apply: doc is missing destination path: {path}: {MISSING}"))
    })?;
    add(to, moved, work).map_err(|why| unfit(format!("error in move for path: '{path}': {why}")))
}

fn copy(document: &mut Value, operation: &Map, work: &mut Work) -> Result<(), PatchError> {
    let from = from_of(operation, "copy")?;
    let value = match found(document, from) {
        Found::Value(value) => value.clone(),
        Found::NoContainer => {
            let why = format!("copy operation does not apply: doc is missing from path: {from}: {MISSING}");
            return Err(unfit(why));
        }
        Found::NoElement(why) => return Err(unfit(format!("error in copy for from: '{from}': {why}"))),
    };
    let path = member(operation, "path").ok_or_else(|| undecoded("copy", "path", ""))?;
    let nowhere = || {
        unfit(format!("copy operation does not apply: doc is missing destination path: {path}: {MISSING}"))
    };
    container(document, path).ok_or_else(nowhere)?;
    if !value.is_null() {
        work.copied = work.copied.saturating_add(value.to_string().len());
    }
    if work.copied > MAX_COPIED {
        let why = "Unable to complete the copy, the accumulated size increase of copy is";
        return Err(unfit(format!("{why} {}, exceeding the limit {MAX_COPIED}", work.copied)));
    }
    check_depth(path, &value)?;
    let to = container(document, path).ok_or_else(nowhere)?;
    add(to, value, work).map_err(|why| unfit(format!("error while adding value during copy: {why}")))
}

fn add(to: Target<'_>, value: Value, work: &mut Work) -> Result<(), String> {
    match to {
        Target::Member(object, key) => {
            object.insert(key, value);
        }
        Target::Element(array, key) if key == "-" => array.push(value),
        Target::Element(array, key) => {
            let improper = |why| match why {
                Index::Unread(why) => format!("value was not a proper array index: '{key}': {why}"),
                Index::Outside(why) => why,
            };
            let at = pointer::index(&key, array.len() + 1).map_err(improper)?;
            work.moved += array.len() - at;
            array.insert(at, value);
        }
    }
    Ok(())
}

fn remove(from: Target<'_>, work: &mut Work) -> Result<Value, String> {
    match from {
        Target::Member(object, key) => {
            work.moved += object.len();
            let absent = || format!("Unable to remove nonexistent key: {key}: {MISSING}");
            object.shift_remove(&key).ok_or_else(absent)
        }
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len()).map_err(Index::text)?;
            work.moved += array.len() - at;
            Ok(array.remove(at))
        }
    }
}

fn replace(document: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    check_depth(path, &value)?;
    if path.is_empty() {
        // The library takes null for an object without members.
        if !value.is_object() && !value.is_array() && !value.is_null() {
            // The library prints an error that it does not have.
            let why = "replace operation value must be object or array: %!w(<nil>)";
            return Err(unfit(why.to_owned()));
        }
        *document = value;
        return Ok(());
    }
    let absent =
        |what| unfit(format!("replace operation does not apply: doc is missing {what}: {path}: {MISSING}"));
    match container(document, path).ok_or_else(|| absent("path"))? {
        Target::Member(object, key) => {
            object.insert(key, value);
        }
        Target::Element(array, key) => {
            let at = pointer::index(&key, array.len()).map_err(|_| absent("key"))?;
            array[at] = value;
        }
    }
    Ok(())
}

/// Checks that the value is not too deep at `path`: copying a value into itself would double its depth each time.
fn check_depth(path: &str, value: &Value) -> Result<(), PatchError> {
    if steps(path).saturating_add(depth(value)) > MAX_DEPTH {
        return Err(unfit(format!("the value at {path} would nest deeper than {MAX_DEPTH} levels")));
    }
    Ok(())
}

/// Like [`check_depth`], for a value of the document; counts the visited values as moved.
fn check_moved(path: &str, value: &Value, work: &mut Work) -> Result<(), PatchError> {
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

fn test(document: &Value, path: &str, want: Option<&Value>) -> Result<(), PatchError> {
    let found = match path {
        "" => document,
        path => match found(document, path) {
            Found::Value(value) => value,
            Found::NoContainer => {
                let why = format!("test operation does not apply: is missing path: {path}: {MISSING}");
                return Err(unfit(why));
            }
            Found::NoElement(why) => {
                return Err(unfit(format!("error in test for path: '{path}': {why}")));
            }
        },
    };
    if found == want.unwrap_or(&Value::Null) {
        return Ok(());
    }
    Err(PatchError::TestFailed(format!("testing value {path} failed: test failed")))
}
