//! MutatingWebhookConfiguration: its rules are those of `webhook`.

use crate::kinds::admissionregistration::webhook;
use crate::kinds::behavior::BuiltIn;
use crate::kinds::behavior::definition::cluster;
use crate::kinds::behavior::rules::Rules;
use crate::kinds::behavior::selectable::SelectableFields;
use crate::kinds::behavior::strategy::Strategy;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::behavior::warnings::KindWarnings;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("mutatingwebhookconfigurations", "MutatingWebhookConfiguration")
        .category("api-extensions")
        .generation()
        .conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(webhook::create, webhook::update).without_finalizers(),
    warnings: KindWarnings::same(webhook::warn),
    columns: &webhook::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};
