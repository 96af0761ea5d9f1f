//! Values of objects, by what is declared of them.

use rowplane_values::gotext::decode_base64;
use rowplane_values::tree;

use super::{Error, List, Map, Text, Value};
use crate::decl::{Decl, Kind};
use crate::time::{Timestamp, parse_duration};

/// The value that an object is.
pub fn view_object<'a>(members: &'a tree::Map, decl: &'a Decl) -> Result<Value<'a>, Error> {
    match &decl.kind {
        Kind::Object(object) => Ok(Value::Map(Map::Object(members, object))),
        Kind::Map(values) => Ok(Value::Map(Map::Values(members, values))),
        Kind::Preserved | Kind::Dyn => Ok(Value::Map(Map::Dyn(members))),
        _ => Err(Error::new("invalid data, got a map for a schema of another type")),
    }
}

/// The value that some JSON is; nothing of it is copied.
pub fn view<'a>(value: &'a tree::Value, decl: &'a Decl) -> Result<Value<'a>, Error> {
    Ok(match (&decl.kind, value) {
        (Kind::String, tree::Value::String(text)) => Value::String(Text::Borrowed(text)),
        (Kind::Int, tree::Value::Number(number)) if number.is_i64() => whole(number),
        (Kind::Bool, tree::Value::Bool(is)) => Value::Bool(*is),
        (Kind::Object(object), tree::Value::Object(members)) => Value::Map(Map::Object(members, object)),
        (Kind::Map(values), tree::Value::Object(members)) => Value::Map(Map::Values(members, values)),
        (Kind::List(list), tree::Value::Array(items)) => Value::List(List::Tree(items, list)),
        (Kind::Dyn, value) => untyped(value),
        _ => return formatted_or_wrong(value, decl),
    })
}

/// Values that are read out of texts, numbers of several types, and what does not fit.
fn formatted_or_wrong<'a>(value: &'a tree::Value, decl: &'a Decl) -> Result<Value<'a>, Error> {
    if value.is_null() {
        let not_nullable = || Error::new("invalid data, got null for schema with nullable=false");
        return if decl.nullable { Ok(Value::Null) } else { Err(not_nullable()) };
    }
    let expected = |what: &str| Err(Error::new(format!("invalid data, expected {what}")));
    match (&decl.kind, value) {
        (Kind::IntOrString, tree::Value::Number(number)) if number.is_i64() => Ok(whole(number)),
        (Kind::IntOrString, tree::Value::String(text)) => Ok(Value::String(Text::Borrowed(text))),
        (Kind::IntOrString, _) => expected("XIntOrString value to be either a string or integer"),
        (Kind::Object(_) | Kind::Map(_), _) => expected("a map for the provided schema with type=object"),
        (Kind::List(_), _) => expected("an array for the provided schema with type=array"),
        (Kind::Bytes | Kind::Duration | Kind::Date | Kind::DateTime, tree::Value::String(text)) => {
            formatted(text, &decl.kind)
        }
        (Kind::String | Kind::Bytes | Kind::Duration | Kind::Date | Kind::DateTime, _) => {
            expected(&format!("string, got {}", go_type(value)))
        }
        (Kind::Double, tree::Value::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or_default())),
        (Kind::Double, _) => expected(&format!("float, got {}", go_type(value))),
        (Kind::Int, _) => expected(&format!("int, got {}", go_type(value))),
        (Kind::Bool, _) => expected(&format!("bool, got {}", go_type(value))),
        (Kind::Untyped, _) => Err(Error::new("invalid array type, expected Items with a non-empty Schema")),
        (Kind::Preserved | Kind::Dyn, _) => Ok(untyped(value)),
    }
}

fn whole<'a>(number: &tree::Number) -> Value<'a> {
    Value::Int(number.as_i64().unwrap_or_default())
}

/// JSON of which nothing is declared.
pub fn untyped(value: &tree::Value) -> Value<'_> {
    match value {
        tree::Value::Null => Value::Null,
        tree::Value::Bool(is) => Value::Bool(*is),
        tree::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => Value::Int(number),
            (None, Some(number)) => Value::Uint(number),
            _ => Value::Double(number.as_f64().unwrap_or_default()),
        },
        tree::Value::String(text) => Value::String(Text::Borrowed(text)),
        tree::Value::Array(items) => Value::List(List::Dyn(items)),
        tree::Value::Object(members) => Value::Map(Map::Dyn(members)),
    }
}

fn formatted<'a>(text: &str, kind: &Kind) -> Result<Value<'a>, Error> {
    match kind {
        Kind::Bytes => match decode_base64(&standard(text)) {
            Ok(bytes) => Ok(Value::Bytes(bytes.into())),
            Err(why) => Err(Error::new(format!("Invalid byte formatted string {text}: {why}"))),
        },
        Kind::Duration => parse_duration(text).map(Value::Duration).ok_or_else(|| {
            let why = rowplane_values::gotext::parse_duration(text).err().unwrap_or_default();
            Error::new(format!("Invalid duration {text}: {why}"))
        }),
        Kind::Date => Timestamp::parse_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::new(format!("Invalid date formatted string {text}: parsing time"))),
        _ => match Timestamp::parse(text) {
            Some(at) => at.map(Value::Timestamp),
            None => Err(Error::new(format!("Invalid date-time formatted string {text}: parsing time"))),
        },
    }
}

/// The alphabet of URLs becomes the usual one.
fn standard(text: &str) -> String {
    text.replace('-', "+").replace('_', "/")
}

/// The Go type of a JSON value, once decoded.
fn go_type(value: &tree::Value) -> &'static str {
    match value {
        tree::Value::Null => "<nil>",
        tree::Value::Bool(_) => "bool",
        tree::Value::Number(number) if number.is_i64() => "int64",
        tree::Value::Number(_) => "float64",
        tree::Value::String(_) => "string",
        tree::Value::Array(_) => "[]interface {}",
        tree::Value::Object(_) => "map[string]interface {}",
    }
}
