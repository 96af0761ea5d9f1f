//! MutatingWebhookConfiguration: its rules are those of `webhook`.

use crate::kinds::admissionregistration::webhook;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

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
