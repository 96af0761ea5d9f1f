//! Taints that keep claims away from devices, and the tolerations of claims.

use crate::kinds::behavior::format::label_value;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::selector;

const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

/// Validates a taint. An unknown effect is accepted if it existed before, since it may come from another release.
pub fn taint(at: &At<'_, '_>, known_effect: Option<&str>, errors: &mut Errors) {
    selector::label_name(&at.get("key"), errors);
    errors.in_format(&at.get("value"), label_value);
    let effect = at.get("effect");
    match effect.text() {
        text if known_effect == Some(text) => {}
        "" => errors.required(&effect, ""),
        text => _ = errors.one_of(&effect, text, &EFFECTS),
    }
}

pub fn toleration(at: &At<'_, '_>, errors: &mut Errors) {
    let (key, operator, value, effect) =
        (at.get("key"), at.get("operator"), at.get("value"), at.get("effect"));
    if !key.text().is_empty() {
        selector::label_name(&key, errors);
    }
    // The default is Equal.
    match operator.text_or("Equal") {
        "Exists" => {
            if !value.text().is_empty() {
                errors.invalid(&value, value.text(), "must be empty for operator `Exists`");
            }
        }
        "Equal" => errors.in_format(&value, label_value),
        other => errors.not_supported(&operator, other, &["Equal", "Exists"]),
    }
    if !effect.text().is_empty() {
        errors.one_of(&effect, effect.text(), &EFFECTS);
    }
}
