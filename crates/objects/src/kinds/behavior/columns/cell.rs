//! Building blocks of printers: column constructors and lenient readers of JSON fields.

use jiff::Timestamp;

use crate::kinds::behavior::columns::{Cell, Column, EmptyRows, Printer, age as columns_age};
use crate::tree::Value;

/// Builds the cells of a row from anything a [`Value`] can be made from.
macro_rules! cells {
    ($($cell:expr),* $(,)?) => { vec![$(crate::tree::Value::from($cell)),*] };
}

/// The printer without columns, whose other fields most printers leave as they are.
pub const PLAIN: Printer = Printer {
    columns: &[],
    cells: None,
    conditions: None,
    order: None,
    default: None,
    empty: EmptyRows::List,
};

pub const NAME: Column = Column {
    format: "name",
    ..text_column("Name", "Name of the object, unique among its kind and namespace.").at("metadata.name")
};

pub const AGE: Column =
    text_column("Age", "Time since the object was created.").of(|object, now| age(object, now).into());

pub const SELECTOR: Column = text_column("Selector", "Labels of the pods that belong to the object.");

pub const fn text_column(name: &'static str, description: &'static str) -> Column {
    Column { name, type_: "string", format: "", description, priority: 0, cell: Cell::At("") }
}

pub const fn integer_column(name: &'static str, description: &'static str) -> Column {
    Column { type_: "integer", ..text_column(name, description) }
}

pub const fn boolean_column(name: &'static str, description: &'static str) -> Column {
    Column { type_: "boolean", ..text_column(name, description) }
}

pub const fn date_column(name: &'static str, description: &'static str) -> Column {
    Column { type_: "date", ..text_column(name, description) }
}

/// The column, shown only in wide output.
pub const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

pub fn age(object: &Value, now: Timestamp) -> String {
    columns_age::since(&object["metadata"]["creationTimestamp"], now)
}

/// Whether the object has a deletionTimestamp.
pub fn deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// A string; empty where there is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A string, or `default` where it is absent or empty.
pub fn text_or<'a>(value: &'a Value, default: &'a str) -> &'a str {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(default)
}

/// An optional string: `default` only where it is absent, for upstream's pointers may point to `""`.
pub fn optional_text<'a>(value: &'a Value, default: &'a str) -> &'a str {
    value.as_str().unwrap_or(default)
}

/// A quantity or an IntOrString: either has a string and a number form.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

pub fn integer(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

pub fn flag(value: &Value) -> bool {
    value.as_bool().unwrap_or_default()
}

/// A list; empty where there is none.
pub fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The number of entries of a map or list.
pub fn count(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    }
}

/// The first condition of this type in a list of conditions.
pub fn condition<'a>(conditions: &'a Value, type_: &str) -> Option<&'a Value> {
    list(conditions).iter().find(|condition| condition["type"] == type_)
}

/// Whether the first condition of this type is `True`.
pub fn is_true(conditions: &Value, type_: &str) -> bool {
    condition(conditions, type_).is_some_and(|condition| condition["status"] == "True")
}

pub(crate) use cells;
