//! The types, formats and enumerations that values are held to.

use super::check::Check;
use super::numbers::{Expected, Quantity};
use super::outcome::{Kind, ValidationResult, shown, sorted_json};
use super::place::ValuePath;
use super::view::View;
use super::{SchemaNode, ValueType};
use crate::gotext::quote;
use crate::tree::{Number, Value};

/// The meaning of a schema's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The schema as declared, by which upstream validates objects.
    Declared,
    /// The structural schema made from it, by which upstream validates defaults: an int-or-string may be anything, and
    /// formats that nobody knows are formats.
    Structural,
}

impl SchemaNode {
    /// The types that values may have, as errors list them.
    fn type_names(&self, reading: Reading) -> Option<&str> {
        Some(match self.value_type {
            _ if self.int_or_string && reading == Reading::Declared => "integer,string",
            ValueType::Any => return None,
            ValueType::Object => "object",
            ValueType::Array => "array",
            ValueType::Integer => "integer",
            ValueType::Number => "number",
            ValueType::String => "string",
            ValueType::Boolean => "boolean",
            ValueType::Odd => self.odd_type.as_deref().unwrap_or_default(),
        })
    }

    /// The format that values are held to.
    fn checked_format(&self, reading: Reading) -> &str {
        if self.known_format.is_some() || reading == Reading::Structural { &self.format } else { "" }
    }
}

/// Upstream asks of a null only whether it may be one, and whether it is enumerated, which none is.
pub(super) fn null(schema: &SchemaNode, reading: Reading, at: &ValuePath<'_>, found: &mut ValidationResult) {
    match schema.type_names(reading) {
        Some(names) if !schema.nullable => type_error(names, "null", at, found),
        _ => found.matched += 1,
    }
    check_enum(schema, View::Null, at, found);
}

fn type_error(want: &str, is: &str, at: &ValuePath<'_>, found: &mut ValidationResult) {
    let text = |place: &str| format!("{place} in body must be of type {want}: {}", quote(is));
    found.add(Kind::TypeInvalid, at, || quote(is), text);
}

pub(super) fn check_type(
    schema: &SchemaNode,
    reading: Reading,
    value: View<'_>,
    at: &ValuePath<'_>,
    found: &mut ValidationResult,
) {
    let format = schema.checked_format(reading);
    let names = schema.type_names(reading);
    let expected = Expected { names };
    if names.is_none() && format.is_empty() {
        return;
    }
    found.matched += 1;
    let (is, of_format) = match value {
        View::Null => ("null", ""),
        View::Bool(_) => ("boolean", ""),
        View::String(_) => ("string", ""),
        View::Array(_) => ("array", ""),
        View::Object(_) => ("object", ""),
        View::Number(number) => Quantity::from(number).type_and_format(),
    };
    let takes_numbers = expected.has("integer") || expected.has("number");
    let fits = expected.has(is)
        || match value {
            View::Number(number) => Quantity::from(number).fits(expected),
            _ => false,
        };
    let is_text_or_list = matches!(value, View::String(_) | View::Array(_));
    if !format.is_empty() && !is_text_or_list && !fits && of_format != format {
        return type_error(format, of_format, at, found);
    }
    // A format stands for the type of texts, and upstream takes lists for texts here.
    let passes = !takes_numbers && !format.is_empty() && is_text_or_list;
    if !passes && !fits {
        return type_error(names.unwrap_or_default(), is, at, found);
    }
    found.matched += 1;
}

pub(super) fn check_enum(
    schema: &SchemaNode,
    value: View<'_>,
    at: &ValuePath<'_>,
    found: &mut ValidationResult,
) {
    for check in &schema.checks {
        let Check::Enum(members) = check else { continue };
        if members.iter().any(|member| is_member(value, member)) {
            continue;
        }
        let listed = || {
            let names = members.iter().map(|member| match member {
                Value::String(text) => quote(text),
                other => quote(&sorted_json(other)),
            });
            format!("supported values: {}", names.collect::<Vec<_>>().join(", "))
        };
        let text = |place: &str| format!("{place} in body should be one of\0{}", listed());
        found.add(Kind::NotSupported, at, || shown(&value.to_value()), text);
    }
}

/// Upstream converts the value to the type of the member first, as Go converts.
fn is_member(value: View<'_>, member: &Value) -> bool {
    match (value, member) {
        (View::Null, _) => false,
        (View::Number(number), Value::Number(member)) => {
            Quantity::from(number).equals(Quantity::from(member))
        }
        (View::Number(number), Value::String(member)) => is_code_point(number, member),
        (value, member) => value.is(member),
    }
}

/// In Go an integer converts to the text of the character with that number.
fn is_code_point(number: &Number, text: &str) -> bool {
    let Quantity::Integer(code) = Quantity::from(number) else { return false };
    let c = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
    text.strip_prefix(c) == Some("")
}
