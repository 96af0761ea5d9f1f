//! FieldsV1: sets of paths as JSON.
//!
//! A key is one step, its value what stands below; `"."` says that the step itself is in the set, too, and so does an
//! empty value. Keys are `f:` and a name, `k:` and the key fields of an element as JSON, `v:` and an element, or `i:`
//! and an index.

use serde_json::{Map, Value};

use super::fields::{Entry, FieldSet};
use super::path::{PathElement, Plain};
use crate::gotext;

const SELF: &str = ".";

/// Why a text is no set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub String);

/// Reads a set; keys may stand in any order.
pub fn parse(fields: &Map<String, Value>) -> Result<FieldSet, Malformed> {
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

/// The canonical form.
pub fn encode(set: &FieldSet) -> Map<String, Value> {
    let mut fields = Map::with_capacity(set.len());
    encode_into(set, &mut fields);
    fields
}

fn encode_into(set: &FieldSet, fields: &mut Map<String, Value>) {
    for Entry { element, member, below } in set.entries() {
        let with_itself = member && !below.is_empty();
        let mut inner = Map::with_capacity(below.len() + usize::from(with_itself));
        if with_itself {
            inner.insert(SELF.to_owned(), Value::Object(Map::new()));
        }
        encode_into(below, &mut inner);
        fields.insert(encode_element(element), Value::Object(inner));
    }
}

/// Whether every path of `set` is in the set that `fields` says.
pub fn covers(fields: &Map<String, Value>, set: &FieldSet) -> bool {
    set.entries().all(|entry| {
        let inner = fields.get(&encode_element(entry.element)).and_then(Value::as_object);
        inner.is_some_and(|inner| (!entry.member || is_member(inner)) && covers(inner, entry.below))
    })
}

/// Whether some path of `set` is in the set that `fields` says.
pub fn touches(fields: &Map<String, Value>, set: &FieldSet) -> bool {
    set.entries().any(|entry| {
        let inner = fields.get(&encode_element(entry.element)).and_then(Value::as_object);
        inner.is_some_and(|inner| (entry.member && is_member(inner)) || touches(inner, entry.below))
    })
}

fn is_member(inner: &Map<String, Value>) -> bool {
    inner.is_empty() || inner.contains_key(SELF)
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
                let mut fields: Vec<(Box<str>, Plain)> =
                    fields.into_iter().map(|(name, value)| (name.into(), Plain(value))).collect();
                fields.sort();
                Some(PathElement::Key(fields.into()))
            }
            _ => return Err(Malformed(format!("the key {text} is no object"))),
        },
        "v" => Some(PathElement::Value(Box::new(Plain(json()?)))),
        "i" => {
            let index = text.parse().map_err(|_| Malformed(format!("the index {text} is no number")))?;
            Some(PathElement::Index(index))
        }
        _ => None,
    })
}
