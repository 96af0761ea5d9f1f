//! How many objects and lists a body may hold. `{}` takes two bytes of a body and, until the object is stored, a kilobyte of
//! memory: for defaults, sets of fields, and what is found wrong.

use crate::ObjectMap;
use crate::error::Error;
use crate::tree::Value;

/// Objects and lists of a body. kube-apiserver has no such limit; etcd refuses what is longer than 1.5 MiB.
pub const MOST: usize = 200_000;
/// The length, in bytes, below which a body holds no more than that, unless it is YAML with aliases.
const SHORTEST: usize = 2 * MOST;

/// Fails for an object that was made of a body of this length in JSON or protobuf, if it holds too many others.
pub fn check(object: &ObjectMap, length: usize) -> Result<(), Error> {
    if length < SHORTEST { Ok(()) } else { check_all(object) }
}

/// Fails for an object that was made of any body, if it holds too many others.
pub fn check_all(object: &ObjectMap) -> Result<(), Error> {
    let mut left = MOST;
    if object.values().all(|value| fits(value, &mut left)) { Ok(()) } else { Err(too_broad()) }
}

/// Fails for a patch of this length that holds too many objects and lists.
pub fn check_patch(patch: &Value, length: usize) -> Result<(), Error> {
    if length < SHORTEST || fits(patch, &mut MOST.clone()) { Ok(()) } else { Err(too_broad()) }
}

fn too_broad() -> Error {
    Error::TooBroad { limit: MOST }
}

fn fits(value: &Value, left: &mut usize) -> bool {
    let is_one = matches!(value, Value::Object(_) | Value::Array(_));
    if is_one && std::mem::replace(left, left.saturating_sub(1)) == 0 {
        return false;
    }
    match value {
        Value::Object(members) => members.values().all(|value| fits(value, left)),
        Value::Array(items) => items.iter().all(|value| fits(value, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::json;

    #[test]
    fn objects_and_lists_count_and_nothing_else() {
        let object = |value: Value| -> ObjectMap { [("a", value)].into_iter().collect() };
        let many = |of: Value, count: usize| object(vec![of; count].into_iter().collect::<Value>());
        assert_eq!(check_all(&many(json!("a"), 2 * MOST)), Ok(()));
        // The list is one, too.
        assert_eq!(check_all(&many(json!({}), MOST - 1)), Ok(()));
        assert_eq!(check_all(&many(json!([]), MOST)), Err(too_broad()));
        assert_eq!(check_all(&many(json!({"a": [1]}), MOST / 2)), Err(too_broad()));
        assert_eq!(check(&many(json!({}), MOST), SHORTEST - 1), Ok(()), "no such body is that short");
    }
}
