//! Conditions of a status (apimachinery `ValidateConditions`).

use std::collections::BTreeSet;

use crate::kinds::behavior::format::{label_key, regex_text};
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

const REASON_MAX: usize = 1024;

pub const MESSAGE_MAX: usize = 32 * 1024;

pub fn validate_all(list: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for condition in list.items() {
        let (kind, status) = (condition.get("type"), condition.get("status"));
        if !seen.insert(kind.text()) {
            errors.duplicate(&condition, kind.text());
        }
        match kind.text() {
            "" => errors.required(&kind, "is required"),
            _ => errors.in_format(&kind, label_key),
        }
        errors.present_one_of(&status, &["False", "True", "Unknown"]);
        let generation = condition.get("observedGeneration");
        if generation.int() < 0 {
            errors.invalid(&generation, generation.int(), "must be greater than or equal to zero");
        }
        errors.present(&condition.get("lastTransitionTime"), "");
        reason(&condition.get("reason"), errors);
        let message = condition.get("message");
        errors.no_longer(&message, MESSAGE_MAX);
    }
}

pub fn reason(at: &At<'_, '_>, errors: &mut Errors) {
    let text = at.text();
    if text.is_empty() {
        return errors.required(at, "");
    }
    let inner = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let bytes = text.as_bytes();
    let fits = bytes.first().is_some_and(u8::is_ascii_alphabetic)
        && bytes.last().is_some_and(|b| inner(*b))
        && bytes.iter().all(|b| inner(*b) || matches!(b, b',' | b':'));
    if !fits {
        let rule = "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'";
        let examples = ["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"];
        errors.invalid(at, text, &regex_text(rule, "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?", &examples));
    }
    if text.len() > REASON_MAX {
        errors.too_long(at, REASON_MAX);
    }
}
