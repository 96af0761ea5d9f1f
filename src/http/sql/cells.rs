//! Values of columns, cut out of an object's JSON without parsing the object.

use std::borrow::Cow;

use rowplane_sql::Cell;

use super::columns::Source;
use crate::codec::object::Object;
use crate::json::scan::{Members, key_is, member, raw_string};
use crate::tree::{Map, Text, Value};

/// The value of a column of an object whose JSON text is `json`.
pub fn cell<'a>(object: &'a Object, json: &'a [u8], source: &Source) -> Cell<'a> {
    match source {
        Source::Time => Cell::Null,
        Source::Namespace => {
            Cell::maybe_text(Some(object.namespace()).filter(|namespace| !namespace.is_empty()))
        }
        Source::Name => Cell::text(object.name()),
        Source::Revision => Cell::Integer(object.revision().0.cast_signed()),
        Source::Metadata(name) => match metadata_member(json, name) {
            Some(span) => of_json(&json[span]),
            None => Cell::Null,
        },
        Source::OwnerUid => {
            let owners = metadata_member(json, "ownerReferences");
            owners.map_or(Cell::Null, |span| Cell::maybe_text(controller(&json[span])))
        }
        Source::Object => Cell::text(without_managed_fields(json)),
        Source::StoredVersion => Cell::maybe_text(object.api_version()),
        Source::Path(path) => at_path(json, path).map_or(Cell::Null, of_json),
    }
}

/// The text of the value at a path.
pub fn at_path<'a>(json: &'a [u8], path: &[Text]) -> Option<&'a [u8]> {
    let mut at = 0..json.len();
    for name in path {
        at = member(json, at.start, name)?;
    }
    Some(&json[at])
}

fn metadata_member(json: &[u8], name: &str) -> Option<std::ops::Range<usize>> {
    let metadata = member(json, 0, "metadata")?;
    member(json, metadata.start, name)
}

/// A value of JSON as SQLite's `->>` gives it: booleans are numbers, objects and lists are text.
pub fn of_json(text: &[u8]) -> Cell<'_> {
    match text.first() {
        None | Some(b'n') => Cell::Null,
        Some(b't') => Cell::Integer(1),
        Some(b'f') => Cell::Integer(0),
        Some(b'"') => match raw_string(text, &(0..text.len())) {
            Some(raw) if !raw.contains('\\') => Cell::text(raw),
            _ => Cell::maybe_text(serde_json::from_slice::<String>(text).ok()),
        },
        Some(b'{' | b'[') => Cell::Text(String::from_utf8_lossy(text)),
        Some(_) => {
            let number = std::str::from_utf8(text).unwrap_or_default();
            match number.parse::<i64>() {
                Ok(value) => Cell::Integer(value),
                Err(_) => number.parse::<f64>().map_or(Cell::Null, Cell::Real),
            }
        }
    }
}

/// The uid of the owner that says of itself that it controls the object.
fn controller(owners: &[u8]) -> Option<String> {
    let owners: Vec<Map> = serde_json::from_slice(owners).ok()?;
    let controls = |owner: &&Map| owner.get("controller").and_then(Value::as_bool) == Some(true);
    Some(owners.iter().find(controls)?.get("uid")?.as_str()?.to_owned())
}

fn without_managed_fields(json: &[u8]) -> Cow<'_, str> {
    let Some(metadata) = member(json, 0, "metadata") else { return String::from_utf8_lossy(json) };
    let mut members = Members::new(json, metadata.start);
    let mut end_of_last = None;
    while let Some(Some(one)) = members.as_mut().and_then(Members::step) {
        if key_is(json, &one.key, "managedFields") {
            // With the comma before it, or the one behind it where it comes first.
            let from = end_of_last.unwrap_or(one.key.start);
            let mut to = one.value.end;
            if end_of_last.is_none() && json.get(to) == Some(&b',') {
                to += 1;
            }
            let kept = [&json[..from], &json[to..]].concat();
            return String::from_utf8_lossy(&kept).into_owned().into();
        }
        end_of_last = Some(one.value.end);
    }
    String::from_utf8_lossy(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn managed_fields_are_left_out_wherever_they_are() {
        for (json, kept) in [
            (
                r#"{"metadata":{"name":"a","managedFields":[{"x":1}],"uid":"u"}}"#,
                r#"{"metadata":{"name":"a","uid":"u"}}"#,
            ),
            (r#"{"metadata":{"managedFields":[],"uid":"u"}}"#, r#"{"metadata":{"uid":"u"}}"#),
            (r#"{"metadata":{"uid":"u","managedFields":[]}}"#, r#"{"metadata":{"uid":"u"}}"#),
            (r#"{"metadata":{"managedFields":[]}}"#, r#"{"metadata":{}}"#),
            (r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            assert_eq!(without_managed_fields(json.as_bytes()), kept);
        }
    }

    #[test]
    fn values_are_those_of_sqlite() {
        assert_eq!(of_json(b"true"), Cell::Integer(1));
        assert_eq!(of_json(b"null"), Cell::Null);
        assert_eq!(of_json(br#""a\nb""#), Cell::text("a\nb"));
        assert_eq!(of_json(b"1.5"), Cell::Real(1.5));
        assert_eq!(of_json(b"12"), Cell::Integer(12));
        assert_eq!(of_json(b"{\"a\":1}"), Cell::text("{\"a\":1}"));
    }

    #[test]
    fn the_owner_is_the_one_that_controls() {
        let owners = br#"[{"uid":"a"},{"uid":"b","controller":true}]"#;
        assert_eq!(controller(owners).as_deref(), Some("b"));
        assert_eq!(controller(br#"[{"uid":"a","controller":false}]"#), None);
    }
}
