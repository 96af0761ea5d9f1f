//! Values as text.

use std::fmt::Write;

use rowplane_values::gotext::{display_float, quote};

use super::Value;
use crate::time::duration_text;

impl Value<'_> {
    /// Go's `%v`, as messages show a value.
    pub fn shown(&self) -> String {
        match self {
            Self::Null => "0".to_owned(),
            Self::Bool(is) => is.to_string(),
            Self::Int(number) => number.to_string(),
            Self::Uint(number) => number.to_string(),
            Self::Double(number) => display_float(*number),
            Self::String(text) => text.to_string(),
            Self::Bytes(bytes) => format!("{:?}", bytes).replace(',', ""),
            Self::Timestamp(at) => at.utc_text(),
            Self::Duration(nanos) => duration_text(*nanos),
            _ => self.canonical(),
        }
    }

    /// A text that only equal values have in common.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Null => write!(out, "null"),
            Self::Bool(is) => write!(out, "{is}"),
            Self::Int(number) => write!(out, "{number}"),
            Self::Uint(number) => write!(out, "{number}u"),
            Self::Double(number) if number.is_infinite() => {
                write!(out, "double({}Inf)", if *number > 0.0 { '+' } else { '-' })
            }
            Self::Double(number) => write!(out, "double({})", display_float(*number)),
            Self::String(text) => write!(out, "{}", quote(text)),
            Self::Bytes(bytes) => {
                out.push_str("b\"");
                bytes.iter().for_each(|byte| _ = write!(out, "{byte:02x}"));
                write!(out, "\"")
            }
            Self::Timestamp(at) => write!(out, "timestamp({})", at.utc_text()),
            Self::Duration(nanos) => write!(out, "duration({nanos})"),
            Self::List(list) => {
                out.push('[');
                for (at, item) in list.iter().enumerate() {
                    out.push_str(if at > 0 { ", " } else { "" });
                    match item {
                        Ok(item) => item.write(out),
                        Err(why) => _ = write!(out, "error({})", why.message()),
                    }
                }
                write!(out, "]")
            }
            Self::Map(map) => {
                let mut entries: Vec<(String, String)> = Vec::new();
                for key in map.keys() {
                    if let Ok(Some(value)) = map.find(&key, 0) {
                        entries.push((key.canonical(), value.canonical()));
                    }
                }
                entries.sort();
                let entries: Vec<String> =
                    entries.into_iter().map(|(key, value)| format!("{key}: {value}")).collect();
                write!(out, "{{{}}}", entries.join(", "))
            }
            Self::Struct(object) => {
                let mut fields: Vec<String> = Vec::new();
                for (key, value) in object.fields.iter() {
                    fields.push(format!("{}: {}", key.value().shown(), value.canonical()));
                }
                fields.sort();
                write!(out, "{}{{{}}}", object.name, fields.join(", "))
            }
            Self::Type(of) => write!(out, "type({})", type_name(of)),
            Self::Optional(None) => write!(out, "optional.none()"),
            Self::Optional(Some(inner)) => {
                out.push_str("optional(");
                inner.write(out);
                write!(out, ")")
            }
            Self::Opaque(opaque) => write!(out, "{}", opaque.canonical()),
        };
    }
}

/// The name of a type without what it is made of.
pub fn type_name(of: &crate::types::Type) -> String {
    let name = of.to_string();
    name.split('(').next().unwrap_or_default().to_owned()
}
