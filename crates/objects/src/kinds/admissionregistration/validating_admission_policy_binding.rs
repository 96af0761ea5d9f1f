//! ValidatingAdmissionPolicyBinding: its rules are those of `policy`.

use crate::kinds::admissionregistration::shared::{kind, reserved, warn};
use crate::kinds::admissionregistration::{binding, policy};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = kind(
    cluster("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    Rules::new(create, |new, _, errors| policy::validating_binding(new, errors)).without_finalizers(),
    KindWarnings::same(warn),
    &binding::POLICY_BINDING,
);

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::validating_binding(object, errors);
    reserved(object, errors);
}
