//! Devices that are allocated to pods (`pkg/apis/resource/validation`).
//!
//! What drivers offer is in [`slice`], what pods ask for in [`claim`], what schedulers give in [`claim_status`].
//! Upstream caps lists before it looks at their elements, and so do these rules.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::{Errors, Shown};
use crate::kinds::behavior::rules::expression::device_problem;
use crate::kinds::core::volume_source::csi_driver;

pub const CONFIGURATIONS: usize = 32;

const SELECTORS: usize = 32;

const EXPRESSION_MAX: usize = 10 * 1024;

const PARAMETERS_MAX: usize = 10 * 1024;

/// The elements of a list that is not too long.
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

/// As [`each`], of a list in which every key stands once.
pub fn each_once<'v, K: Ord + Shown>(
    list: &At<'v, '_>,
    max: usize,
    key: impl Fn(&At<'v, '_>) -> K,
    errors: &mut Errors,
    check: impl FnMut(&At<'v, '_>, &mut Errors),
) {
    each(list, max, errors, check);
    if list.len() > max {
        return;
    }
    let mut seen = BTreeSet::new();
    for item in list.items() {
        let key = key(&item);
        if seen.contains(&key) {
            errors.duplicate(&item, key);
        } else {
            seen.insert(key);
        }
    }
}

/// Whether existing expressions and parameters are looked at, which later releases may find too long.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Age {
    New,
    Stored,
}

/// Which devices fit.
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
        if let Some(why) = device_problem(expression.text(), errors) {
            errors.invalid(&expression, expression.text(), &why);
        }
    });
}

/// What a driver is told.
pub fn configuration(at: &At<'_, '_>, age: Age, errors: &mut Errors) {
    let opaque = at.get("opaque");
    if !opaque.is_set() {
        return errors.required(&opaque, "");
    }
    csi_driver(&opaque.get("driver"), errors);
    let parameters = opaque.get("parameters");
    if parameters.is_set() {
        raw_object(&parameters, age, errors);
    } else {
        errors.required(&parameters, "");
    }
}

/// JSON that is somebody else's, but an object of limited size.
pub fn raw_object(at: &At<'_, '_>, age: Age, errors: &mut Errors) {
    if age == Age::New && gotext::json(at.value()).len() > PARAMETERS_MAX {
        errors.too_long(at, PARAMETERS_MAX);
    } else if !at.value().is_object() {
        errors.invalid(at, "<value omitted>", "must be a valid JSON object");
    }
}
