//! MutatingAdmissionPolicyBinding: its rules are those of `policy`.

use crate::kinds::admissionregistration::shared::{kind, reserved, warn};
use crate::kinds::admissionregistration::{V1, V1BETA1, binding, policy};
use crate::kinds::behavior::conversion::OtherVersion;
use crate::kinds::behavior::definition::Definition;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = version(DEFINITION, KindWarnings::same(warn), V1BETA1);

/// The same in the version that is off by default.
pub static BETA: BuiltIn = version(
    DEFINITION.shared(V1),
    KindWarnings::same(warn).of_every_request(
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicyBinding is deprecated in v1.37+, unavailable in v1.40+; \
         use admissionregistration.k8s.io/v1 MutatingAdmissionPolicyBinding",
    ),
    V1,
);

const DEFINITION: Definition = cluster("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding");

const fn version(definition: Definition, warnings: KindWarnings, other: &'static str) -> BuiltIn {
    let rules =
        Rules::new(create, |new, _, errors| policy::mutating_binding(new, errors)).without_finalizers();
    BuiltIn {
        other_version: Some(OtherVersion::alike(other)),
        ..kind(definition, rules, warnings, &binding::POLICY_BINDING)
    }
}

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::mutating_binding(object, errors);
    reserved(object, errors);
}
