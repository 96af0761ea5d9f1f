//! FieldsV1, the JSON form of a set of paths.
//!
//! A key is one step of a path, and its value is the set below that step. `"."` as a key means that the path so far is
//! a member of the set; an empty value means the same. Steps are `f:` and a field name, `k:` and the key fields of a
//! list element as JSON, `v:` and a list element as JSON, or `i:` and an index.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::fields::{Entry, FieldSet};
use super::path::{PathElement, Plain};
use crate::gotext;
use crate::json::scan;
use crate::tree::{Map, Value};

const SELF: &str = ".";

/// Why a text is not a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Reads a set. Its keys may be in any order.
pub fn parse(fields: &Map) -> Result<FieldSet, Malformed> {
    let steps = fields.iter().filter(|(key, _)| *key != SELF);
    steps.filter_map(|(key, value)| parse_step(key, value).transpose()).collect()
}

/// Reads one step and the set below it.
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

/// Reads a set from its JSON text.
pub fn parse_text(text: &str) -> Result<FieldSet, Malformed> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    match Below.deserialize(&mut deserializer) {
        Ok((_, set)) if deserializer.end().is_ok() => Ok(set),
        // For anything else parse a tree, which has the right error messages.
        _ => match serde_json::from_str(text).map_err(|error| Malformed(error.to_string()))? {
            Value::Object(fields) => parse(&fields),
            _ => Err(Malformed("fieldsV1 is no object".to_owned())),
        },
    }
}

/// Reads the value of a step: whether the step itself is a member, and the set below it.
struct Below;

/// A key in FieldsV1.
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

/// The canonical JSON text of a set.
pub fn encode(set: &FieldSet) -> String {
    let mut text = String::with_capacity(256);
    write(set, false, &mut text);
    text
}

fn write(set: &FieldSet, itself: bool, text: &mut String) {
    text.push('{');
    if itself {
        text.push_str(ITSELF);
    }
    for (at, Entry { element, member, below }) in set.entries().enumerate() {
        if itself || at > 0 {
            text.push(',');
        }
        write_step(text, element);
        text.push(':');
        write(below, member && !below.is_empty(), text);
    }
    text.push('}');
}

/// The member that marks the step above it as a member of the set.
const ITSELF: &str = "\".\":{}";

fn write_step(text: &mut String, element: &PathElement) {
    let written = match element {
        PathElement::Field(name) => {
            write_field(text, name);
            true
        }
        PathElement::Key(fields) => write_key(text, fields.iter().map(|(name, value)| (name, &value.0))),
        PathElement::Value(_) | PathElement::Index(_) => false,
    };
    if !written {
        text.push_str(&Value::from(encode_element(element)).to_string());
    }
}

/// Writes the step to a field, as a JSON key.
fn write_field(text: &mut String, name: &str) {
    match is_plain(name) {
        true => text.extend(["\"f:", name, "\""]),
        false => text.push_str(&Value::from(["f:", name].concat()).to_string()),
    }
}

/// Writes a step with these key fields, if JSON needs no escapes for them. Otherwise writes nothing and returns false;
/// likewise for a step without fields (`k:{}`, which a client may send).
fn write_key<'f>(text: &mut String, fields: impl Iterator<Item = (&'f Arc<str>, &'f Value)> + Clone) -> bool {
    let plain = |(name, value): (&Arc<str>, &Value)| {
        is_plain_twice(name) && value.as_str().is_some_and(is_plain_twice)
    };
    if fields.clone().next().is_none() || !fields.clone().all(plain) {
        return false;
    }
    for (at, (name, value)) in fields.enumerate() {
        let head = if at == 0 { r#""k:{\""# } else { r#",\""# };
        text.extend([head, name, r#"\":\""#, value.as_str().unwrap_or_default(), r#"\""#]);
    }
    text.push_str("}\"");
    true
}

/// Whether JSON needs no escapes for the text.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
}

/// Like [`is_plain`] for JSON inside JSON, where the inner text is escaped as Go does it.
fn is_plain_twice(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..0x7f) && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&'))
}

/// Whether the set whose JSON starts at `at` contains every path of `set`.
pub fn covers(text: &[u8], at: usize, set: &FieldSet) -> bool {
    let mut found = 0;
    let all = Shared::new(text, at, set).all(|(entry, at)| {
        found += 1;
        (!entry.member || is_member(text, at)) && covers(text, at, entry.below)
    });
    all && found == set.len()
}

/// Whether the set whose JSON starts at `at` contains any path of `set`.
pub fn touches(text: &[u8], at: usize, set: &FieldSet) -> bool {
    Shared::new(text, at, set)
        .any(|(entry, at)| (entry.member && is_member(text, at)) || touches(text, at, entry.below))
}

/// An iterator over the steps that a set in JSON and a [`FieldSet`] have in common, each with the offset of the JSON
/// below it. It reads the text once, and stops after the last common step.
struct Shared<'t, 's> {
    text: &'t [u8],
    members: Option<scan::Members<'t>>,
    /// The steps to look for, by their JSON keys.
    wanted: Vec<(String, Entry<'s>)>,
    left: usize,
    /// Whether the value of the last step has not been skipped yet.
    at_value: bool,
}

impl<'t, 's> Shared<'t, 's> {
    fn new(text: &'t [u8], at: usize, set: &'s FieldSet) -> Self {
        let mut wanted: Vec<_> = set.entries().map(|entry| (encode_element(entry.element), entry)).collect();
        wanted.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        let left = wanted.len();
        Self { text, members: scan::Members::new(text, at), wanted, left, at_value: false }
    }

    fn entry(&self, quoted: &[u8]) -> Option<Entry<'s>> {
        let find = |key: &[u8]| self.wanted.binary_search_by(|(wanted, _)| wanted.as_bytes().cmp(key));
        let found = match quoted.contains(&b'\\') {
            true => find(serde_json::from_slice::<String>(quoted).ok()?.as_bytes()),
            false => find(&quoted[1..quoted.len() - 1]),
        };
        found.ok().map(|at| self.wanted[at].1)
    }
}

impl<'s> Iterator for Shared<'_, 's> {
    type Item = (Entry<'s>, usize);

    fn next(&mut self) -> Option<Self::Item> {
        while self.left > 0 {
            let members = self.members.as_mut()?;
            if std::mem::replace(&mut self.at_value, true) {
                members.value()?;
            }
            let (key, at) = (members.key()??, members.at());
            if let Some(entry) = self.entry(&self.text[key]) {
                self.left -= 1;
                return Some((entry, at));
            }
        }
        None
    }
}

fn is_member(text: &[u8], at: usize) -> bool {
    let empty = scan::Members::new(text, at).is_some_and(|mut members| members.key() == Some(None));
    empty || scan::member(text, at, SELF).is_some()
}

/// A step as a JSON key.
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

/// Parses a step; `None` for an unknown kind of step, which is skipped with everything below it.
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
