//! Devices that are allocated to pods (`pkg/apis/resource/validation`).
//!
//! ResourceSlices contain what drivers offer, ResourceClaims what pods need, and the status of a claim what schedulers
//! have allocated. The rules here are those that upstream does not declare at the
//! fields (`behavior::rules::declarative`).

use crate::gotext;
use crate::kinds::behavior::rules::expression::{DeviceProblem, device_problem};
use crate::kinds::prelude::*;

pub const CONFIGURATIONS: usize = 32;

const SELECTORS: usize = 32;

const EXPRESSION_MAX: usize = 10 * 1024;

const PARAMETERS_MAX: usize = 10 * 1024;

/// The elements of a list. There are none of a list that is too long, which the declared rules tell.
pub fn within<'v, 's>(list: &'s At<'v, '_>, max: usize) -> impl Iterator<Item = At<'v, 's>> {
    list.items().take(if list.len() > max { 0 } else { max })
}

/// Whether expressions and parameters are new. Existing ones are not checked again, since a later release may consider
/// them too long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Age {
    New,
    Stored,
}

/// Validates device selectors.
pub fn selectors(list: &At<'_, '_>, errors: &mut Errors) {
    for selector in within(list, SELECTORS) {
        let cel = selector.get("cel");
        let expression = cel.get("expression");
        if !cel.is_set() {
            errors.required(&cel, "");
            continue;
        }
        if expression.text().len() > EXPRESSION_MAX {
            errors.too_long(&expression, EXPRESSION_MAX);
            continue;
        }
        match device_problem(expression.text(), errors) {
            Some(DeviceProblem::Invalid(why)) => errors.invalid(&expression, expression.text(), &why),
            Some(DeviceProblem::TooComplex) => {
                errors.forbidden(&expression, "too complex, exceeds cost limit");
            }
            None => {}
        }
    }
}

/// Validates a configuration for a driver.
pub fn configuration(at: &At<'_, '_>, age: Age, errors: &mut Errors) {
    let opaque = at.get("opaque");
    if !opaque.is_set() {
        return errors.required(&opaque, "");
    }
    let parameters = opaque.get("parameters");
    if parameters.is_set() {
        raw_object(&parameters, age, errors);
    } else {
        errors.required(&parameters, "");
    }
}

/// Validates foreign JSON: it must be an object of limited size.
pub fn raw_object(at: &At<'_, '_>, age: Age, errors: &mut Errors) {
    if age == Age::New && gotext::json(at.value()).len() > PARAMETERS_MAX {
        errors.too_long(at, PARAMETERS_MAX);
    } else if !at.value().is_object() {
        errors.invalid(at, "<value omitted>", "must be a valid JSON object");
    }
}
