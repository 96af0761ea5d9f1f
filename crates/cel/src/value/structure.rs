//! Objects that expressions make: `Object.spec{…}`, and operations of a patch, `JSONPatch{…}`.

use std::sync::Arc;

use rowplane_values::gotext::quote;
use smol_str::SmolStr;

use super::{Entries, Error, Key, List, Map, Text, Value};

/// The type of a patch's operations.
pub const JSON_PATCH: &str = "JSONPatch";
/// Members of an operation that are texts, which are empty unless an expression sets them.
const TEXTS: [&str; 3] = ["op", "path", "from"];

#[derive(Debug)]
pub struct Struct<'a> {
    pub name: SmolStr,
    /// In the order in which the expression sets them.
    pub fields: Entries<'a>,
}

impl<'a> Struct<'a> {
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields.find(&Key::String(Text::Borrowed(name)))
    }

    /// The value of a selected field; null if an object does not have the field.
    pub fn select(&self, name: &str) -> Option<Value<'a>> {
        match self.field(name) {
            None if self.name != JSON_PATCH => Some(Value::Null),
            None if TEXTS.contains(&name) => Some(Value::String(Text::Borrowed(""))),
            found => found.cloned(),
        }
    }

    /// Whether `has` is true of a field.
    pub fn has(&self, name: &str) -> bool {
        if self.name != JSON_PATCH {
            return self.field(name).is_some();
        }
        self.select(name)
            .is_some_and(|value| value.as_str().is_none_or(|text| !text.is_empty() || name == "value"))
    }

    pub fn equals(&self, other: &Self) -> Result<bool, Error> {
        if self.name != other.name || self.fields.len() != other.fields.len() {
            return Ok(false);
        }
        for (key, value) in self.fields.iter() {
            match other.fields.find(key) {
                Some(other) if value.equals(other)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Errors in the names of types in an object: a field's object is of the type that is named after the path to it, also
/// within lists and maps that the expression makes. The error is upstream's text, a line for each.
pub fn check_type_names(object: &Struct<'_>) -> Result<(), String> {
    let mut wrong = Vec::new();
    let mut open: Vec<(String, Inner<'_, '_>)> = vec![(object.name.to_string(), Inner::Struct(object))];
    while let Some((path, inner)) = open.pop() {
        let below = |name: &str| format!("{path}.{name}");
        match inner {
            Inner::Struct(object) => {
                if object.name != path {
                    let (name, path) = (quote(&object.name), quote(&path));
                    wrong.push(format!(
                        "unexpected type name {name}, expected {path}, which matches field name path from root Object \
                         type"
                    ));
                }
                let fields = object.fields.iter().filter_map(|(key, value)| {
                    let Key::String(name) = key else { return None };
                    Some((below(name), Inner::of(value)?))
                });
                open.extend(fields.collect::<Vec<_>>().into_iter().rev());
            }
            Inner::List(items) => {
                open.extend(items.iter().rev().filter_map(|item| Some((path.clone(), Inner::of(item)?))));
            }
            Inner::Map(entries) => {
                let values: Vec<_> = entries.iter().filter_map(|(_, value)| Inner::of(value)).collect();
                open.extend(values.into_iter().rev().map(|value| (path.clone(), value)));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// A value that may contain objects.
enum Inner<'v, 'a> {
    Struct(&'v Struct<'a>),
    List(&'v [Value<'a>]),
    Map(&'v Entries<'a>),
}

impl<'v, 'a> Inner<'v, 'a> {
    fn of(value: &'v Value<'a>) -> Option<Self> {
        match value {
            Value::Struct(object) => Some(Self::Struct(object)),
            Value::List(List::Owned(items)) => Some(Self::List(items)),
            Value::Map(Map::Owned(entries)) => Some(Self::Map(entries)),
            _ => None,
        }
    }
}

impl<'a> Value<'a> {
    /// An object of this type, of which operations of patches have few fields.
    pub fn structure(name: SmolStr, fields: Entries<'a>) -> Result<Self, Error> {
        if name == JSON_PATCH {
            for (key, value) in fields.iter() {
                check_member(&key.value().shown(), value)?;
            }
        }
        Ok(Self::Struct(Arc::new(Struct { name, fields })))
    }
}

fn check_member(name: &str, value: &Value<'_>) -> Result<(), Error> {
    match (name, value) {
        ("value", _) => Ok(()),
        (name, Value::String(_)) if TEXTS.contains(&name) => Ok(()),
        (name, value) if TEXTS.contains(&name) => {
            let of = native_name(value);
            Err(Error::new(format!("unexpected type {of} for JSONPatchType '{name}' field")))
        }
        _ => Err(Error::new(format!("unexpected JSONPatchType field: {name}"))),
    }
}

/// The Go type of what is in a value.
fn native_name<'v>(value: &'v Value<'_>) -> &'v str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(List::Dyn(_) | List::Tree(..)) => "[]interface {}",
        Value::List(_) => "[]ref.Val",
        Value::Map(Map::Owned(_) | Map::Constant(_)) => "map[ref.Val]ref.Val",
        Value::Map(_) => "map[string]interface {}",
        Value::Struct(_) => "map[string]interface {}",
        other => other.type_name(),
    }
}
