//! Devices that are allocated to pods (`pkg/apis/resource/validation`).
//!
//! ResourceSlices contain what drivers offer, ResourceClaims what pods need, and the status of a claim what schedulers
//! have allocated. Like upstream, the rules check the length of a list before its elements.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::{Errors, Shown};
use crate::kinds::behavior::rules::expression::{DeviceProblem, device_problem};
use crate::kinds::core::volume_source::declared_driver;

pub const CONFIGURATIONS: usize = 32;

const SELECTORS: usize = 32;

const EXPRESSION_MAX: usize = 10 * 1024;

const PARAMETERS_MAX: usize = 10 * 1024;

/// Checks the elements of a list, unless the list is too long.
pub fn each<'v>(
    list: &At<'v, '_>,
    max: usize,
    errors: &mut Errors,
    mut check: impl FnMut(&At<'v, '_>, &mut Errors),
) {
    if list.len() > max {
        return errors.too_many(list, list.len(), max);
    }
    for item in list.items() {
        check(&item, errors);
    }
}

/// Like [`each`], for a list whose keys must differ.
pub fn each_once<'v, K: Ord + Shown>(
    list: &At<'v, '_>,
    max: usize,
    key: impl Fn(&At<'v, '_>) -> K,
    errors: &mut Errors,
    check: impl FnMut(&At<'v, '_>, &mut Errors),
) {
    each(list, max, errors, check);
    unique(list, max, key, |item, key| errors.duplicate(item, key));
}

/// Like [`each_once`], for a list that upstream declares as one with keys: an element that occurs again is told whole.
pub fn each_keyed<'v, K: Ord>(
    list: &At<'v, '_>,
    max: usize,
    key: impl Fn(&At<'v, '_>) -> K,
    errors: &mut Errors,
    check: impl FnMut(&At<'v, '_>, &mut Errors),
) {
    each(list, max, errors, check);
    unique(list, max, key, |item, _| errors.duplicate(item, item.value()));
}

fn unique<'v, K: Ord>(
    list: &At<'v, '_>,
    max: usize,
    key: impl Fn(&At<'v, '_>) -> K,
    mut tell: impl FnMut(&At<'v, '_>, K),
) {
    if list.len() > max {
        return;
    }
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let key = key(&item);
        if seen.contains(&key) {
            tell(&item, key);
        } else {
            seen.insert(key);
        }
    }
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
    each(list, SELECTORS, errors, |selector, errors| {
        let cel = selector.get("cel");
        if !cel.is_set() {
            return errors.required(&cel, "");
        }
        let expression = cel.get("expression");
        if expression.text().len() > EXPRESSION_MAX {
            return errors.too_long(&expression, EXPRESSION_MAX);
        }
        match device_problem(expression.text(), errors) {
            Some(DeviceProblem::Invalid(why)) => errors.invalid(&expression, expression.text(), &why),
            Some(DeviceProblem::TooComplex) => {
                errors.forbidden(&expression, "too complex, exceeds cost limit");
            }
            None => {}
        }
    });
}

/// Validates a configuration for a driver.
pub fn configuration(at: &At<'_, '_>, age: Age, errors: &mut Errors) {
    let opaque = at.get("opaque");
    if !opaque.is_set() {
        return errors.required(&opaque, "");
    }
    declared_driver(&opaque.get("driver"), errors);
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
