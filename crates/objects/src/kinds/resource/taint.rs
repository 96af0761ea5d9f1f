//! Taints that keep claims away from devices, and the tolerations of claims.

use crate::kinds::behavior::format::label_value;
use crate::kinds::behavior::rules::selector;
use crate::kinds::prelude::*;

/// Validates a taint.
pub fn taint(at: &At<'_, '_>, errors: &mut Errors) {
    selector::label_name(&at.get("key"), errors);
    errors.in_format(&at.get("value"), label_value);
}

/// Validates a toleration.
pub fn toleration(at: &At<'_, '_>, errors: &mut Errors) {
    let value = at.get("value");
    match at.get("operator").text() {
        "Exists" if !value.text().is_empty() => {
            errors.invalid(&value, value.text(), "must be empty for operator `Exists`");
        }
        "Equal" => errors.in_format(&value, label_value),
        _ => {}
    }
}
