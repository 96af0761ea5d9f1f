//! How deep values nest. Everything that walks a value recurses, decoders give up at a fixed depth, and so what is
//! stored must stay clear of both.

use crate::tree::{Map, Value};

/// The deepest object that is stored. The decoder takes 127 levels; lists, tables and events add some of their own.
pub const MAX_DEPTH: usize = 120;

/// Levels of objects and arrays; a scalar has none. Recurses as deep as it counts.
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

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    #[test]
    fn counts_the_deepest_branch() {
        for (value, want) in [
            (json!("text"), 0),
            (json!({}), 1),
            (json!([]), 1),
            (json!([1, [2, {"a": null}], {}]), 3),
            (json!({"a": {"b": 1}, "c": [[[]]]}), 4),
        ] {
            assert_eq!(depth(&value), want, "{value}");
        }
    }
}
