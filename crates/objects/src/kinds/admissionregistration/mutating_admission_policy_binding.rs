//! MutatingAdmissionPolicyBinding: its rules are those of `policy`.

use crate::kinds::admissionregistration::shared::{reserved, warn};
use crate::kinds::admissionregistration::{binding, policy};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
        .category("api-extensions")
        .generation()
        .conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, |new, _, errors| policy::mutating_binding(new, errors)),
    warnings: KindWarnings::same(warn),
    columns: &binding::POLICY_BINDING,
    fields: SelectableFields::metadata,
    other_version: None,
};

fn create(object: &ObjectMap, errors: &mut Errors) {
    policy::mutating_binding(object, errors);
    reserved(object, errors);
}
