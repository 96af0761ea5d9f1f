//! Findings of a validation, as kube-openapi's `validate.Result` keeps them.

use super::place::ValuePath;
use crate::causes::{Cause, CauseReason, Causes, KEPT_MAX};
use crate::gotext;
use crate::tree::Value;

/// The errors of a value, and how well it did.
#[derive(Default)]
pub struct ValidationResult {
    kept: Vec<Violation>,
    untold: usize,
    /// How many checks were passed. If none of several alternative schemas fits, the answer has the errors of the schema
    /// with the most passed checks.
    pub matched: u64,
}

/// An error. What it says is told once, wherever it was found.
pub struct Violation {
    kind: Kind,
    /// The place as kube-openapi spells it; errors without one are about the whole value.
    place: Option<String>,
    /// The offending value as Go prints it.
    value: String,
    text: String,
}

/// How apiextensions-apiserver makes field errors of validation errors.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Required,
    NotSupported,
    TooLong(i64),
    TooMany(i64),
    TypeInvalid,
    Invalid,
}

impl ValidationResult {
    pub fn is_valid(&self) -> bool {
        self.kept.is_empty()
    }

    /// An error at a place; `text` is what kube-openapi says, `value` what it shows.
    pub fn add(
        &mut self,
        kind: Kind,
        at: &ValuePath<'_>,
        value: impl FnOnce() -> String,
        text: impl FnOnce(&str) -> String,
    ) {
        self.push(|| {
            let place = at.dotted();
            let text = text(&place);
            Violation { kind, value: value(), place: Some(place), text }
        });
    }

    /// An error that names its place only in its text.
    pub fn add_unplaced(&mut self, text: impl FnOnce() -> String) {
        self.push(|| Violation { kind: Kind::Invalid, place: None, value: "\"\"".to_owned(), text: text() });
    }

    fn push(&mut self, violation: impl FnOnce() -> Violation) {
        if self.kept.len() >= KEPT_MAX {
            self.untold += 1;
            return;
        }
        let violation = violation();
        if self.kept.iter().all(|known| known.text != violation.text) {
            self.kept.push(violation);
        }
    }

    /// Adds the findings about a part of the value, or by another schema.
    pub fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        other.kept.into_iter().for_each(|violation| self.push(|| violation));
        self.untold += other.untold;
    }

    /// The errors as field errors, below a path if the value is a part of an object.
    pub fn into_causes(self, base: &str) -> Causes {
        let mut causes = Causes::default();
        self.kept.into_iter().for_each(|violation| causes.push(violation.into_cause(base)));
        causes.add_times(self.untold, || Cause::invalid("", "\"\"", ""));
        causes
    }
}

impl Violation {
    fn into_cause(self, base: &str) -> Cause {
        let name = self.place.as_deref().unwrap_or("");
        let name = name.strip_prefix('.').unwrap_or(name);
        let field = match (base, name) {
            ("", "") => "<nil>".to_owned(),
            ("", name) => name.to_owned(),
            (base, "") => base.to_owned(),
            (base, name) => format!("{base}.{name}"),
        };
        let plural = |count: i64, one: &'static str, many: &'static str| if count == 1 { one } else { many };
        match self.kind {
            Kind::Required => Cause::required(field, ""),
            Kind::TooLong(max) if max < 0 => {
                Cause::new(CauseReason::TooLong, field, "Too long: value is too long".to_owned())
            }
            Kind::TooLong(max) => {
                let unit = plural(max, "byte", "bytes");
                Cause::new(
                    CauseReason::TooLong,
                    field,
                    format!("Too long: may not be more than {max} {unit}"),
                )
            }
            Kind::TooMany(max) if max < 0 => {
                let text = format!("Too many: {}: has too many items", self.value);
                Cause::new(CauseReason::TooMany, field, text)
            }
            Kind::TooMany(max) => {
                let unit = plural(max, "item", "items");
                let text = format!("Too many: {}: must have at most {max} {unit}", self.value);
                Cause::new(CauseReason::TooMany, field, text)
            }
            Kind::NotSupported => {
                let text = format!("Unsupported value: {}: {}", self.value, self.text_of_members());
                Cause::new(CauseReason::NotSupported, field, text)
            }
            Kind::TypeInvalid => {
                let text = format!("Invalid value: {}: {}", self.value, self.text);
                Cause::new(CauseReason::TypeInvalid, field, text)
            }
            Kind::Invalid => Cause::invalid(field, self.value, &self.text),
        }
    }

    /// The text about the members of an enumeration, without the part that names the place.
    fn text_of_members(&self) -> &str {
        self.text.split_once('\0').map_or(&*self.text, |(_, members)| members)
    }
}

/// A value as field errors print it: scalars as `%v`, strings quoted, the rest as JSON with sorted keys.
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => gotext::quote(text),
        Value::Number(_) | Value::Bool(_) => gotext::display(value),
        Value::Null => "null".to_owned(),
        Value::Array(_) | Value::Object(_) => sorted_json(value),
    }
}

/// `encoding/json`'s text of a decoded value.
pub fn sorted_json(value: &Value) -> String {
    let mut value = value.clone();
    value.sort_all();
    crate::json::whole_numbers(&mut value);
    gotext::json(&value)
}
