//! The columns that a version of a CustomResourceDefinition declares (upstream's
//! `apiextensions-apiserver/pkg/registry/customresource/tableconvertor`).

use jiff::Timestamp;

use super::age;
use super::cell::{AGE, NAME, name};
use crate::gotext::{self, Fraction};
use crate::jsonpath::{Budget, Found, JsonPath};
use crate::tree::{Number, Text, Value, json};

/// How many values the columns of one row may look at together. What is beyond is nothing: upstream looks for ever.
const STEPS_OF_ROW: usize = 300_000;

/// How many bytes the cells of one row may print together before the rest of them prints nothing: each may be a whole object.
const TEXT_OF_ROW: usize = 4 << 20;

/// The columns behind the name.
#[derive(Debug, PartialEq)]
pub struct DeclaredColumns(Vec<DeclaredColumn>);

#[derive(Debug, PartialEq)]
struct DeclaredColumn {
    /// The entry of `columnDefinitions`.
    definition: Value,
    value_type: ColumnType,
    path: JsonPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnType {
    String,
    Integer,
    Number,
    Boolean,
    Date,
    /// A type that validation refuses: its cells are null.
    Unknown,
}

impl Default for DeclaredColumns {
    /// The columns of kinds that declare none.
    fn default() -> Self {
        Self::read(&[])
    }
}

impl DeclaredColumns {
    /// Reads `additionalPrinterColumns`. A path that cannot be parsed ends the columns: it is left out, and so are those
    /// behind it.
    pub fn read(columns: &[Value]) -> Self {
        let age = [age_column()];
        let columns = if columns.is_empty() { &age } else { columns };
        Self(columns.iter().map_while(DeclaredColumn::read).collect())
    }

    /// The columns of the subresource `scale`.
    pub fn of_scale() -> Self {
        let replicas = |name: &str, description: &str, path: &str| json!({"name": name, "type": "integer", "description": description, "jsonPath": path});
        Self::read(&[
            replicas("Desired", "How many replicas are wanted.", ".spec.replicas"),
            replicas("Available", "How many replicas there are.", ".status.replicas"),
            age_column(),
        ])
    }

    pub fn definitions(&self) -> Value {
        let declared = self.0.iter().map(|column| column.definition.clone());
        [NAME.definition()].into_iter().chain(declared).collect()
    }

    pub fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let (mut budget, mut room) = (Budget::of(STEPS_OF_ROW), TEXT_OF_ROW);
        let declared = self.0.iter().map(|column| column.cell(object, now, &mut budget, &mut room));
        [name(object).into()].into_iter().chain(declared).collect()
    }
}

fn age_column() -> Value {
    json!({"name": "Age", "type": "date", "description": AGE.description, "jsonPath": ".metadata.creationTimestamp"})
}

impl DeclaredColumn {
    fn read(column: &Value) -> Option<Self> {
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        let path = JsonPath::parse(text("jsonPath")).ok()?;
        let description = match text("description") {
            "" => {
                format!("Custom resource definition column (in JSONPath format): {}", text("jsonPath")).into()
            }
            description => Text::from(description),
        };
        let definition = json!({
            "name": text("name"),
            "type": text("type"),
            "format": text("format"),
            "description": description,
            "priority": column["priority"].as_i64().unwrap_or_default(),
        });
        Some(Self { definition, value_type: ColumnType::of(text("type")), path })
    }

    fn cell(&self, object: &Value, now: Timestamp, budget: &mut Budget, room: &mut usize) -> Value {
        let Some(found) = self.path.first(object, budget) else { return Value::Null };
        match self.value_type {
            ColumnType::String if *room == 0 => Value::Null,
            ColumnType::String => {
                let text = text(found);
                *room = room.saturating_sub(text.len());
                text.into()
            }
            ColumnType::Integer => integer(found),
            ColumnType::Number => number(found),
            ColumnType::Boolean => boolean(found),
            ColumnType::Date => date(found, now),
            ColumnType::Unknown => Value::Null,
        }
    }
}

impl ColumnType {
    fn of(name: &str) -> Self {
        match name {
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            "date" => Self::Date,
            _ => Self::Unknown,
        }
    }
}

/// A found value as a template of Go's prints it: lists and objects as JSON with sorted keys.
fn text(found: Found<'_>) -> String {
    match found {
        Found::Value(Value::Null) => "<no value>".to_owned(),
        Found::Value(value @ (Value::Array(_) | Value::Object(_))) => {
            let mut sorted = value.clone();
            sorted.sort_all();
            gotext::json(&sorted)
        }
        // What is no int64 to Go is a float.
        Found::Value(Value::Number(number)) if !number.is_i64() => {
            gotext::display_float(number.as_f64().unwrap_or_default())
        }
        Found::Value(value) => gotext::display(value),
        Found::Text(text) => text.to_owned(),
        Found::Integer(integer) => integer.to_string(),
        Found::Float(float) => gotext::display_float(float),
        Found::Bool(flag) => flag.to_string(),
        Found::Byte(byte) => byte.to_string(),
    }
}

fn integer(found: Found<'_>) -> Value {
    match found {
        Found::Value(Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            (None, Some(float)) => cut(float).into(),
            (None, None) => Value::Null,
        },
        Found::Float(float) => cut(float).into(),
        _ => Value::Null,
    }
}

/// A float as Go converts it to an integer on amd64: one that does not fit is the least integer.
fn cut(float: f64) -> i64 {
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if (-BOUND..BOUND).contains(&float) { float as i64 } else { i64::MIN }
}

fn number(found: Found<'_>) -> Value {
    let float = match found {
        Found::Value(Value::Number(number)) => number.as_f64(),
        Found::Float(float) => Some(float),
        _ => None,
    };
    float.map_or(Value::Null, whole_or_float)
}

/// A float as Go prints it: without a fraction, where there is none, up to 1e21.
fn whole_or_float(float: f64) -> Value {
    const PRINTED_WHOLE: f64 = 9_007_199_254_740_992.0;
    if float.fract() == 0.0 && float.abs() <= PRINTED_WHOLE && !(float == 0.0 && float.is_sign_negative()) {
        return (float as i64).into();
    }
    Number::from_f64(float).map_or(Value::Null, Value::Number)
}

fn boolean(found: Found<'_>) -> Value {
    match found {
        Found::Value(Value::Bool(flag)) => (*flag).into(),
        Found::Bool(flag) => flag.into(),
        _ => Value::Null,
    }
}

fn date(found: Found<'_>, now: Timestamp) -> Value {
    let text = match found {
        Found::Value(Value::String(text)) => text.as_str(),
        Found::Text(text) => text,
        _ => return Value::Null,
    };
    if matches!(text, "" | "null") {
        return "<unknown>".into();
    }
    if gotext::time_complaint(text, Fraction::Any).is_some() {
        return "<invalid>".into();
    }
    age::since(&text.into(), now).into()
}

#[cfg(test)]
mod tests;
