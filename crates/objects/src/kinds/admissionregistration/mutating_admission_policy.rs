//! MutatingAdmissionPolicy: its rules are those of `policy`.

use crate::kinds::admissionregistration::policy;
use crate::kinds::admissionregistration::shared::{reserved, warn};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("mutatingadmissionpolicies", "MutatingAdmissionPolicy")
        .category("api-extensions")
        .generation()
        .conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, |new, _, errors| policy::mutating(new, errors)),
    warnings: KindWarnings::same(warn),
    columns: &policy::MUTATING_POLICY,
    fields: SelectableFields::metadata,
    other_version: None,
};

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::mutating(object, errors);
    reserved(object, errors);
}
