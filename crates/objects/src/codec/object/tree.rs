//! Objects of kinds without types as JSON: as upstream prints its maps, sorted by name at every level.

use crate::codec::managed::{FIELDS, open_unsorted};
use crate::json::text::{write_json, write_string};
use crate::tree::{Map, Value};

/// `metadata` members that stand before `resourceVersion` in objects that have types, in upstream's declaration order.
pub(super) const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];

/// An object, closed or open, as open sorted text. It has metadata, for the resourceVersion to go into.
pub(super) fn encode(mut object: Map) -> Vec<u8> {
    if !object.get("metadata").is_some_and(Value::is_object) {
        object.insert("metadata", Value::Object(Map::new()));
    }
    open_unsorted(&mut object);
    let mut object = Value::Object(object);
    object.sort_all();
    let mut out = Vec::with_capacity(2048);
    write_below(&mut out, &["metadata", "managedFields"], &object);
    out.shrink_to_fit();
    out
}

/// Writes a value; at the end of the path is a list of managers.
fn write_below(out: &mut Vec<u8>, path: &[&str], value: &Value) {
    match (path, value) {
        ([first, below @ ..], Value::Object(members)) => write_members(out, members, |out, name, value| {
            if name == *first { write_below(out, below, value) } else { write_json(out, value) }
        }),
        ([], Value::Array(managers)) => {
            out.push(b'[');
            for (index, manager) in managers.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_manager(out, manager);
            }
            out.push(b']');
        }
        (_, value) => write_json(out, value),
    }
}

/// The text of a set that is still closed is sorted.
fn write_manager(out: &mut Vec<u8>, manager: &Value) {
    let Value::Object(members) = manager else { return write_json(out, manager) };
    write_members(out, members, |out, name, value| match value {
        Value::String(set) if name == FIELDS => out.extend_from_slice(set.as_bytes()),
        value => write_json(out, value),
    });
}

fn write_members(out: &mut Vec<u8>, members: &Map, write: impl Fn(&mut Vec<u8>, &str, &Value)) {
    out.push(b'{');
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_string(out, name);
        out.push(b':');
        write(out, name, value);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::managed;

    #[test]
    fn closed_objects_are_printed_as_open_ones() {
        for set in [
            "{}",
            r#"{"f:b":{},"f:a":{}}"#,
            r#"{ "f:a" : {} }"#,
            r#"{"f:a":{"k:{\"a\":1}":{".":{}},"v:\"<é>\"":{}}}"#,
            "null",
        ] {
            let text = format!(
                r#"{{"spec":{{"b":[{{"z":"<","a":1}}],"managedFields":[{{"fieldsV1":"x"}}]}},
                    "metadata":{{"name":"a","managedFields":[{{"manager":"m\n","fieldsV1":{set}}},null,{{}}]}},"kind":"K"}}"#
            );
            let closed = managed::read(text.as_bytes()).expect("JSON");
            let mut open = Value::Object(managed::opened(&closed));
            open.sort_all();
            let mut want = Vec::new();
            write_json(&mut want, &open);
            assert_eq!(String::from_utf8(encode(closed)), String::from_utf8(want), "{set}");
        }
    }
}
