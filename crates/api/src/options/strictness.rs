//! How strictly a body is decoded, and what the client learns of ignored fields.

use crate::fields::ObjectMap;
use crate::meta;
use crate::options::write::FieldValidation;
use crate::schema::kind::{Kind, Shape};
use crate::schema::types::Fit;
use crate::tree::{Number, Value};
use crate::warnings::Warnings;

/// The start of go-yaml's list of problems; upstream sends a warning for each problem.
const YAML_PREFIXES: [&str; 2] =
    ["yaml: unmarshal errors:\n", "error converting YAML to JSON: yaml: unmarshal errors:\n"];

/// The treatment of the unknown and repeated fields of a body.
#[derive(Clone, Copy)]
pub struct Strictness<'a> {
    pub validation: FieldValidation,
    pub warnings: &'a Warnings,
}

impl Strictness<'_> {
    /// Whether the client wants to know of them.
    pub fn is_asked(self) -> bool {
        self.validation != FieldValidation::Ignore
    }

    /// Sends warnings about the problems, or fails if the client wants them refused.
    pub fn judge(self, problems: &[String]) -> Result<(), String> {
        match self.validation {
            _ if problems.is_empty() => {}
            FieldValidation::Ignore => {}
            FieldValidation::Strict => return Err(format!("strict decoding error: {}", problems.join(", "))),
            FieldValidation::Warn => problems.iter().for_each(|problem| self.warn(problem)),
        }
        Ok(())
    }

    /// Sends a warning about a problem, unless the client ignores problems.
    pub fn warn(self, problem: &str) {
        if !self.is_asked() {
            return;
        }
        match YAML_PREFIXES.iter().find_map(|prefix| problem.strip_prefix(prefix)) {
            Some(list) => list.lines().for_each(|line| self.warnings.add(line.trim())),
            None => self.warnings.add(problem),
        }
    }
}

/// Makes an object conform to its Go type, as decoding does upstream. The error is the text of Go's decoder.
pub fn conform(kind: &Kind, object: &mut ObjectMap) -> Result<Fit, String> {
    if matches!(kind.shape, Shape::Opaque) {
        meta::types::check(object)?;
    }
    if kind.go().is_none() {
        object.values_mut().for_each(fit_integers);
    }
    kind.conform(object)
}

/// Go reads integers without a type into 64 bits, and what is larger as floating point. Recurses as deep as the value
/// nests, which its parser has limited.
fn fit_integers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            let float = number.as_f64().and_then(Number::from_f64);
            *number = float.unwrap_or_else(|| number.clone());
        }
        Value::Array(items) => items.iter_mut().for_each(fit_integers),
        Value::Object(members) => members.values_mut().for_each(fit_integers),
        _ => {}
    }
}

/// go-yaml's error about repeated keys.
pub fn yaml_error(repeated: &[String]) -> String {
    let lines: Vec<String> = repeated.iter().map(|key| format!("  {key}")).collect();
    format!("{}{}", YAML_PREFIXES[0], lines.join("\n"))
}
