//! FieldsV1: sets of paths as JSON.
//!
//! A key is one step, its value what stands below; `"."` says that the step itself is in the set, too, and so does an
//! empty value. Keys are `f:` and a name, `k:` and the key fields of an element as JSON, `v:` and an element, or `i:`
//! and an index.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::fields::{Entry, FieldSet};
use super::path::{PathElement, Plain};
use crate::codec::scan;
use crate::gotext;
use crate::tree::{Map, Value};

const SELF: &str = ".";

/// Why a text is no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Reads a set; keys may stand in any order.
pub fn parse(fields: &Map) -> Result<FieldSet, Malformed> {
    let steps = fields.iter().filter(|(key, _)| *key != SELF);
    steps.filter_map(|(key, value)| parse_step(key, value).transpose()).collect()
}

/// A step with what stands below it.
fn parse_step(key: &str, value: &Value) -> Result<Option<(PathElement, bool, FieldSet)>, Malformed> {
    let Some(element) = parse_element(key)? else { return Ok(None) };
    let (is_itself, below) = match value {
        Value::Object(inner) => (inner.contains_key(SELF), parse(inner)?),
        Value::Null => (false, FieldSet::default()),
        other => return Err(Malformed(format!("expected an object, got a {}", gotext::json_kind(other)))),
    };
    let member = is_itself || below.is_empty();
    Ok(Some((element, member, below)))
}

/// Reads a set from its JSON.
pub fn parse_text(text: &str) -> Result<FieldSet, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match Below.deserialize(&mut deserializer) {
        Ok((_, set)) if deserializer.end().is_ok() => Ok(set),
        // The errors are those of the tree.
        _ => match serde_json::from_str(text).map_err(|error| Malformed(error.to_string()))? {
            Value::Object(fields) => parse(&fields),
            _ => Err(Malformed("fieldsV1 is no object".to_owned())),
        },
    }
}

/// What stands below a step, and whether the step itself is in the set.
struct Below;

/// A key of an object in FieldsV1.
enum Key {
    Itself,
    Step(PathElement),
    Unknown,
}

impl<'de> DeserializeSeed<'de> for Below {
    type Value = (bool, FieldSet);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Below {
    type Value = (bool, FieldSet);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a set of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut steps: A) -> Result<Self::Value, A::Error> {
        let mut itself = false;
        let mut nodes = Vec::new();
        while let Some(key) = steps.next_key_seed(KeyOf)? {
            match key {
                Key::Step(element) => {
                    let (is_itself, below) = steps.next_value_seed(Below)?;
                    nodes.push((element, is_itself || below.is_empty(), below));
                }
                Key::Itself | Key::Unknown => {
                    itself |= matches!(key, Key::Itself);
                    steps.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok((itself, nodes.into_iter().collect()))
    }
}

struct KeyOf;

impl<'de> DeserializeSeed<'de> for KeyOf {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyOf {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a step")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<Key, E> {
        match key {
            SELF => Ok(Key::Itself),
            key => Ok(parse_element(key).map_err(E::custom)?.map_or(Key::Unknown, Key::Step)),
        }
    }
}

/// The canonical form, as JSON.
pub fn encode(set: &FieldSet) -> String {
    let mut text = String::with_capacity(256);
    write(set, false, &mut text);
    text
}

fn write(set: &FieldSet, itself: bool, text: &mut String) {
    text.push('{');
    if itself {
        text.push_str("\".\":{}");
    }
    for (at, Entry { element, member, below }) in set.entries().enumerate() {
        if itself || at > 0 {
            text.push(',');
        }
        match element {
            PathElement::Field(name) if is_plain(name) => text.extend(["\"f:", name, "\""]),
            PathElement::Key(fields) if fields.iter().all(is_plain_field) => {
                for (at, (name, value)) in fields.iter().enumerate() {
                    let head = if at == 0 { r#""k:{\""# } else { r#",\""# };
                    text.extend([head, name, r#"\":\""#, value.0.as_str().unwrap_or_default(), r#"\""#]);
                }
                text.push_str("}\"");
            }
            element => text.push_str(&Value::from(encode_element(element)).to_string()),
        }
        text.push(':');
        write(below, member && !below.is_empty(), text);
    }
    text.push('}');
}

/// Whether JSON spells it as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

/// As [`is_plain`], of a field of a key, which is JSON inside JSON, the inner one as Go has it.
fn is_plain_field((name, value): &(Arc<str>, Plain)) -> bool {
    let plain = |text: &str| text.is_ascii() && is_plain(text) && !text.contains(['<', '>', '&', '\x7f']);
    plain(name) && value.0.as_str().is_some_and(plain)
}

/// Whether every path of `set` is in the set whose JSON is at `at`.
pub fn covers(text: &[u8], at: usize, set: &FieldSet) -> bool {
    set.entries().all(|entry| {
        let inner = scan::member_of_any_name(text, at, &encode_element(entry.element));
        inner.is_some_and(|inner| {
            (!entry.member || is_member(text, inner.start)) && covers(text, inner.start, entry.below)
        })
    })
}

/// Whether some path of `set` is in the set whose JSON is at `at`.
pub fn touches(text: &[u8], at: usize, set: &FieldSet) -> bool {
    set.entries().any(|entry| {
        let inner = scan::member_of_any_name(text, at, &encode_element(entry.element));
        inner.is_some_and(|inner| {
            (entry.member && is_member(text, inner.start)) || touches(text, inner.start, entry.below)
        })
    })
}

fn is_member(text: &[u8], at: usize) -> bool {
    let empty = scan::Members::new(text, at).is_some_and(|mut members| members.step() == Some(None));
    empty || scan::member(text, at, SELF).is_some()
}

/// A step as a key.
pub fn encode_element(element: &PathElement) -> String {
    match element {
        PathElement::Field(name) => ["f:", name].concat(),
        PathElement::Key(fields) => {
            let mut text = String::from("k:{");
            for (at, (name, value)) in fields.iter().enumerate() {
                let comma = if at == 0 { "" } else { "," };
                text.extend([comma, &gotext::json_string(name), ":", &gotext::json(&value.0)]);
            }
            text.push('}');
            text
        }
        PathElement::Value(value) => format!("v:{}", gotext::json(&value.0)),
        PathElement::Index(index) => format!("i:{index}"),
    }
}

/// `None` for a kind of step that is not known, which is skipped with all below.
fn parse_element(key: &str) -> Result<Option<PathElement>, Malformed> {
    if key.len() < 2 {
        return Err(Malformed("key must be 2 characters long:".to_owned()));
    }
    let Some((kind, text)) = key.split_once(':').filter(|(kind, _)| kind.len() == 1) else {
        return Err(Malformed("missing colon".to_owned()));
    };
    let json = || -> Result<Value, Malformed> {
        serde_json::from_str(text).map_err(|error| Malformed(error.to_string()))
    };
    Ok(match kind {
        "f" => Some(PathElement::Field(text.into())),
        "k" => match json()? {
            Value::Object(fields) => {
                let mut fields: Vec<(Arc<str>, Plain)> =
                    fields.into_iter().map(|(name, value)| (name.into(), Plain(value))).collect();
                fields.sort();
                Some(PathElement::Key(fields.into()))
            }
            _ => return Err(Malformed(format!("the key {text} is no object"))),
        },
        "v" => Some(PathElement::Value(Arc::new(Plain(json()?)))),
        "i" => {
            let index = text.parse().map_err(|_| Malformed(format!("the index {text} is no number")))?;
            Some(PathElement::Index(index))
        }
        _ => None,
    })
}
