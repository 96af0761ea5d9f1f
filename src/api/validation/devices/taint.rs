//! What keeps claims away from devices, and claims that stay all the same.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::format::dns1123_label;
use super::super::volume_source::csi_driver;
use super::super::{condition, selector};
use super::name;
use crate::api::ObjectMap;
use crate::api::meta::format::label_value;

const CONDITIONS: usize = 8;
const EFFECTS: [&str; 3] = ["NoExecute", "NoSchedule", "None"];

pub fn create_rule(object: &ObjectMap, errors: &mut Errors) {
    rule(object, None, errors);
}

pub fn update_rule(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let before = At::member(old, "spec");
    rule(new, Some(before.get("taint").get("effect").text()), errors);
}

pub fn rule_status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let conditions = status.get("conditions");
    condition::validate_all(&conditions, errors);
    if conditions.len() > CONDITIONS {
        errors.too_many(&conditions, conditions.len(), CONDITIONS);
    }
}

fn rule(object: &ObjectMap, known_effect: Option<&str>, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let devices = spec.get("deviceSelector");
    let (driver, pool, device) = (devices.get("driver"), devices.get("pool"), devices.get("device"));
    if driver.is_set() {
        csi_driver(&driver, errors);
    }
    if pool.is_set() {
        name::pool(&pool, errors);
    }
    if device.is_set() {
        errors.in_format(&device, dns1123_label);
    }
    taint(&spec.get("taint"), known_effect, errors);
}

/// An effect that was there before may be one that this release does not know.
pub(super) fn taint(at: &At<'_, '_>, known_effect: Option<&str>, errors: &mut Errors) {
    selector::label_name(&at.get("key"), errors);
    errors.in_format(&at.get("value"), label_value);
    let effect = at.get("effect");
    match effect.text() {
        text if known_effect == Some(text) => {}
        "" => errors.required(&effect, ""),
        text => _ = errors.one_of(&effect, text, &EFFECTS),
    }
}

pub(super) fn toleration(at: &At<'_, '_>, errors: &mut Errors) {
    let (key, operator, value, effect) =
        (at.get("key"), at.get("operator"), at.get("value"), at.get("effect"));
    if !key.text().is_empty() {
        selector::label_name(&key, errors);
    }
    // Defaulting says Equal.
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
