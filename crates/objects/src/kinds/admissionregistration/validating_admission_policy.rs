//! ValidatingAdmissionPolicy: its rules are those of `policy`.

use crate::kinds::admissionregistration::policy;
use crate::kinds::admissionregistration::shared::{kind, reserved, warn};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = kind(
    cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy").sub(&["status"]),
    Rules::new(create, |new, _, errors| policy::validating(new, errors))
        .with_status(policy::status)
        .without_finalizers(),
    KindWarnings::same(warn),
    &policy::VALIDATING_POLICY,
);

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::validating(object, errors);
    reserved(object, errors);
}
