//! MutatingAdmissionPolicy: its rules are those of `policy`.

use crate::kinds::admissionregistration::shared::{reserved, warn};
use crate::kinds::admissionregistration::{V1, V1BETA1, policy};
use crate::kinds::behavior::conversion::OtherVersion;
use crate::kinds::behavior::definition::Definition;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = kind(DEFINITION, KindWarnings::same(warn), V1BETA1);

/// The same in the version that is off by default.
pub static BETA: BuiltIn = kind(
    DEFINITION.shared(V1),
    KindWarnings::same(warn).of_every_request(
        "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy is deprecated in v1.37+, unavailable in v1.40+; \
         use admissionregistration.k8s.io/v1 MutatingAdmissionPolicy",
    ),
    V1,
);

const DEFINITION: Definition = cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
    .category("api-extensions")
    .generation()
    .conditional();

const fn kind(definition: Definition, warnings: KindWarnings, other_version: &'static str) -> BuiltIn {
    BuiltIn {
        definition,
        strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
        rules: Rules::new(create, |new, _, errors| policy::mutating(new, errors)),
        warnings,
        columns: &policy::MUTATING_POLICY,
        fields: SelectableFields::metadata,
        other_version: Some(OtherVersion::alike(other_version)),
    }
}

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::mutating(object, errors);
    reserved(object, errors);
}
