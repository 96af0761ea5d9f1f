//! The layout of YAML: two spaces per level, and dashes in the column of the key to which their list belongs.

use super::scalar::{self, ScalarPosition};
use crate::tree::{Map, Text, Value};

/// The text before a nested value.
#[derive(Clone, Copy)]
enum Lead {
    /// Nothing: the value starts on its own line.
    Line,
    /// `key:`
    Key,
    /// `- `
    Dash,
}

pub(super) fn document(value: &Value) -> String {
    let mut out = String::with_capacity(1024);
    put(&mut out, value, 0, Lead::Line);
    out
}

fn put(out: &mut String, value: &Value, indent: usize, lead: Lead) {
    match value {
        Value::Object(fields) if !fields.is_empty() => object(out, fields, indent, lead),
        Value::Array(items) if !items.is_empty() => list(out, items, indent, lead),
        _ => {
            if matches!(lead, Lead::Key) {
                out.push(' ');
            }
            match value {
                Value::Object(_) => out.push_str("{}"),
                Value::Array(_) => out.push_str("[]"),
                Value::String(text) => scalar::put(out, text, ScalarPosition::Value { indent }),
                other => out.push_str(&other.to_string()),
            }
            if !out.ends_with('\n') {
                out.push('\n');
            }
        }
    }
}

fn object(out: &mut String, fields: &Map, indent: usize, lead: Lead) {
    let mut sorted: Vec<(&Text, &Value)> = fields.iter().collect();
    sorted.sort_by_key(|(key, _)| *key);
    if matches!(lead, Lead::Key) {
        out.push('\n');
    }
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        // The first key comes directly behind the dash.
        if index > 0 || !matches!(lead, Lead::Dash) {
            scalar::pad(out, indent);
        }
        scalar::put(out, key, ScalarPosition::Key);
        out.push(':');
        let nested = if matches!(value, Value::Array(_)) { indent } else { indent + 2 };
        put(out, value, nested, Lead::Key);
    }
}

fn list(out: &mut String, items: &[Value], indent: usize, lead: Lead) {
    if matches!(lead, Lead::Key) {
        out.push('\n');
    }
    for (index, item) in items.iter().enumerate() {
        if index > 0 || !matches!(lead, Lead::Dash) {
            scalar::pad(out, indent);
        }
        out.push_str("- ");
        put(out, item, indent + 2, Lead::Dash);
    }
}
