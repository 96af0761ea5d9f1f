//! Objects whose managers' sets are text.
//!
//! The sets in `metadata.managedFields` are as large as the rest of an object, and few writes change one. While a write
//! is at work, `fieldsV1` of each entry is therefore a string that holds the JSON of the set: it goes from the stored
//! object to the next one as it is, and who wants to know what it says reads it. Such objects are called closed; bodies
//! and answers are open.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{depth, json, scan};
use crate::tree::{Map, Text, Value};

const FIELDS: &str = "fieldsV1";
/// The object, its metadata, the list and an entry.
const LEVELS_ABOVE: usize = 4;

/// Reads a stored object, closed.
pub fn read(text: &[u8]) -> Result<Map, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    if let Ok(Value::Object(object)) = Place::Object.deserialize(&mut deserializer)
        && deserializer.end().is_ok()
    {
        return Ok(object);
    }
    // Nobody has judged what is in a database: its managers may be anything.
    let mut object = serde_json::from_slice(text)?;
    close(&mut object);
    Ok(object)
}

/// Makes text of the sets of an object that is open.
pub fn close(object: &mut Map) {
    for fields in sets(object).filter(|fields| !fields.is_null()) {
        *fields = fields.to_string().into();
    }
}

/// Makes trees of the sets of an object that is closed.
pub fn open(object: &mut Map) {
    for fields in sets(object) {
        if let Value::String(text) = fields {
            *fields = json::parse(text.as_bytes()).map_or(Value::Null, |parsed| parsed.value);
        }
    }
}

/// A copy of a closed object that is open.
pub fn opened(object: &Map) -> Map {
    let mut object = object.clone();
    open(&mut object);
    object
}

/// Levels of an object that is closed, as [`depth::of_object`] counts them in one that is open.
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

/// What is being read, on the way to the sets.
#[derive(Clone, Copy)]
enum Place {
    Object,
    Metadata,
    Entries,
    Entry,
}

impl<'de> DeserializeSeed<'de> for Place {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        match self {
            Self::Entries => deserializer.deserialize_seq(self),
            Self::Object | Self::Metadata | Self::Entry => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Place {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with its managers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(Self::Entry)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = members.next_key::<Text>()? {
            let value = match (self, &*name) {
                (Self::Object, "metadata") => members.next_value_seed(Self::Metadata)?,
                (Self::Metadata, "managedFields") => members.next_value_seed(Self::Entries)?,
                (Self::Entry, FIELDS) => match members.next_value::<&RawValue>()?.get() {
                    "null" => Value::Null,
                    text => text.into(),
                },
                _ => members.next_value()?,
            };
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    #[test]
    fn only_the_sets_of_the_object_itself_are_text() {
        let text = r#"{"metadata":{"name":"a","managedFields":[
            {"manager":"m","fieldsV1":{"f:data":{"k:{\"a\":1}":{}}}},{"manager":"n"}]},
            "fieldsV1":{},"spec":{"metadata":{"managedFields":[{"fieldsV1":{"f:x":{}}}]}}}"#;
        let closed = read(text.as_bytes()).unwrap();
        let set = r#"{"f:data":{"k:{\"a\":1}":{}}}"#;
        assert_eq!(
            closed["metadata"]["managedFields"],
            json!([{"manager":"m","fieldsV1":set},{"manager":"n"}])
        );
        let open: Map = serde_json::from_str(text).unwrap();
        assert_eq!(closed["spec"], open["spec"]);
        assert_eq!(opened(&closed), open);
        let mut again = open.clone();
        close(&mut again);
        assert_eq!(again, closed);
        assert_eq!(depth(&closed), depth::of_object(&open));
    }

    #[test]
    fn managers_that_are_none_are_read_too() {
        for managers in ["null", "3", "{}", r#"[{"fieldsV1":null}]"#, "[null,3]", r#"[{"fieldsV1":"{}"}]"#] {
            let text = format!(r#"{{"metadata":{{"managedFields":{managers}}}}}"#);
            let open: Map = serde_json::from_str(&text).unwrap();
            let closed = read(text.as_bytes()).unwrap();
            assert_eq!(opened(&closed), open, "{text}");
        }
        assert!(read(b"{").is_err());
        assert!(read(br#"{"metadata":{}} x"#).is_err());
    }
}
