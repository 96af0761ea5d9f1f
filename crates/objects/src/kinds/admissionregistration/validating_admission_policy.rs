//! ValidatingAdmissionPolicy: its rules are those of `policy`.

use crate::kinds::admissionregistration::policy;
use crate::kinds::admissionregistration::shared::{reserved, warn};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
        .category("api-extensions")
        .generation()
        .conditional()
        .sub(&["status"]),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, |new, _, errors| policy::validating(new, errors)).with_status(policy::status),
    warnings: KindWarnings::same(warn),
    columns: &policy::VALIDATING_POLICY,
    fields: SelectableFields::metadata,
    other_version: None,
};

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::validating(object, errors);
    reserved(object, errors);
}
