//! How deeply values may nest. All code that walks a value recurses, and decoders have a fixed limit, so stored values
//! must stay well below both.

use crate::tree::{Map, Value};

/// The depth of the deepest object that is stored. The decoder accepts 127 levels; lists, tables and events add a few
/// around an object.
pub const MAX_DEPTH: usize = 120;

/// The number of nested levels of objects and arrays; 0 for a scalar. The recursion is as deep as the result.
pub fn depth(value: &Value) -> usize {
    match value {
        Value::Object(object) => of_object(object),
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0) + 1,
        _ => 0,
    }
}

/// [`depth`] of an object.
pub fn of_object(object: &Map) -> usize {
    object.values().map(depth).max().unwrap_or(0) + 1
}
