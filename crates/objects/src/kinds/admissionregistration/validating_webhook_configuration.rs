//! ValidatingWebhookConfiguration: its rules are those of `webhook`.

use crate::kinds::admissionregistration::shared::kind;
use crate::kinds::admissionregistration::webhook;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = kind(
    cluster("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    Rules::new(webhook::create, webhook::update).without_finalizers(),
    KindWarnings::same(webhook::warn),
    &webhook::COLUMNS,
);
