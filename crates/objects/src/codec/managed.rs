//! Closed objects: objects whose `managedFields` hold the managers' sets as text.
//!
//! The sets in `metadata.managedFields` are as large as the rest of an object, and few writes change them. During a
//! write, `fieldsV1` of each entry is therefore a string with the JSON of the set, which is copied from the stored
//! object or the body to the new object without being parsed; code that needs the set parses the string. Such objects
//! are called closed, others open. Answers to clients are open.

mod sorted;

use super::depth;
use crate::gotext;
use crate::json::plain::{self, ManagedPosition};
use crate::json::{self, Parsed, scan};
use crate::tree::{Map, Value};

pub(super) const FIELDS: &str = "fieldsV1";
/// The levels around `fieldsV1`: the object, its metadata, the list, and the entry.
const LEVELS_ABOVE: usize = 4;

/// Reads a stored object as a closed one.
pub fn read(text: &[u8]) -> Result<Map, serde_json::Error> {
    let plain = std::str::from_utf8(text).ok().and_then(|text| plain::read(text, ManagedPosition::Object));
    if let Some(Parsed { value: Value::Object(object), .. }) = plain {
        return Ok(object);
    }
    let mut object = serde_json::from_slice(text)?;
    close(&mut object);
    Ok(object)
}

/// Reads a body like [`json::parse`]; if it is an object, it is closed.
pub fn parse(body: &[u8]) -> Result<Parsed, serde_json::Error> {
    if let Some(parsed) = plain::read(&gotext::utf8(body), ManagedPosition::Object) {
        return Ok(parsed);
    }
    let mut parsed = json::parse(body)?;
    parsed.value.as_object_mut().into_iter().for_each(close);
    Ok(parsed)
}

/// Closes an open object: turns the sets into text.
pub fn close(object: &mut Map) {
    for fields in sets(object).filter(|fields| !fields.is_null()) {
        *fields = fields.to_string().into();
    }
}

/// Opens a closed object: parses the sets.
pub fn open(object: &mut Map) {
    for fields in sets(object) {
        if let Value::String(text) = fields {
            *fields = json::parse(text.as_bytes()).map_or(Value::Null, |parsed| parsed.value);
        }
    }
}

/// Opens the sets of a closed object whose text is not what [`write_json`](crate::json::text::write_json) prints of
/// sorted sets; the text of the others can be printed as it is.
pub(super) fn open_unsorted(object: &mut Map) {
    for fields in sets(object) {
        if let Value::String(text) = fields
            && !sorted::is_sorted(text.as_bytes())
        {
            *fields = json::parse(text.as_bytes()).map_or(Value::Null, |parsed| parsed.value);
        }
    }
}

/// An open copy of a closed object.
pub fn opened(object: &Map) -> Map {
    let mut object = object.clone();
    open(&mut object);
    object
}

/// The depth of a closed object, counted by [`depth::of_object`] as if it were open.
pub fn depth(object: &Map) -> usize {
    let entries = object.get("metadata").and_then(|metadata| metadata.get("managedFields"));
    let texts = entries.and_then(Value::as_array).into_iter().flatten();
    let texts = texts.filter_map(|entry| entry.get(FIELDS)?.as_str());
    let deepest = texts.map(|text| LEVELS_ABOVE + scan::nesting(text.as_bytes())).max();
    deepest.unwrap_or_default().max(depth::of_object(object))
}

fn sets(object: &mut Map) -> impl Iterator<Item = &mut Value> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    let entries = metadata.and_then(|metadata| metadata.get_mut("managedFields")?.as_array_mut());
    entries.into_iter().flatten().filter_map(|entry| entry.get_mut(FIELDS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn bodies_are_read_as_if_they_were_open() {
        for (body, repeated) in [
            (r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{}}}]},"a":[{"b":"\ud800"}]}"#, false),
            (r#"{"metadata":{"managedFields":[{"fieldsV1":{"f:a":{},"f:a":1}}]}}"#, false),
            (r#"{"metadata":{"managedFields":[{"manager":"m","manager":"n"}]}}"#, true),
            (r#"{"metadata":{"name":"a","name":"b"}}"#, true),
            (r#"{"a":{"b":1,"b":2},"metadata":{}}"#, true),
            (r#"{"metadata":null,"a":1,"a":2}"#, true),
            (r#"{"metadata":{"managedFields":3}}"#, false),
            ("[1]", false),
        ] {
            let mut parsed = parse(body.as_bytes()).expect(body);
            assert_eq!(parsed.repeated, repeated, "{body}");
            let is_text = |set: &Value| set.is_string();
            parsed.value.as_object_mut().into_iter().for_each(|object| {
                assert!(sets(object).all(|set| is_text(set)), "{body}");
                open(object);
            });
            assert_eq!(parsed.value, json::parse(body.as_bytes()).expect(body).value, "{body}");
        }
        for bad in ["", "{", r#"{"metadata":{}} x"#, r#"{"metadata":{"managedFields":[{"fieldsV1":{"#] {
            let (closed, open) = (parse(bad.as_bytes()), json::parse(bad.as_bytes()));
            assert_eq!(closed.unwrap_err().to_string(), open.unwrap_err().to_string());
        }
    }
}
