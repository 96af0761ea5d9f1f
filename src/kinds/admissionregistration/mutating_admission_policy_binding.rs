//! MutatingAdmissionPolicyBinding: its rules are those of `policy`.

use crate::kinds::admissionregistration::shared::warn;
use crate::kinds::admissionregistration::{binding, policy};
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::behavior::warnings::KindWarnings;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding")
        .category("api-extensions")
        .generation()
        .conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::timeless(policy::mutating_binding),
    warnings: KindWarnings::same(warn),
    columns: &binding::POLICY_BINDING,
    fields: SelectableFields::metadata,
    other_version: None,
};
