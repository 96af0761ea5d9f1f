//! Webhooks and admission policies (`pkg/apis/admissionregistration/v1/defaults.go`).

use super::set::{empty, if_absent};
use crate::api::ObjectMap;

const HTTPS: i64 = 443;
const SECONDS: i64 = 10;

pub(super) fn validating_webhook(webhook: &mut ObjectMap) {
    policy(webhook);
    match_resources(webhook);
    if_absent(webhook, "timeoutSeconds", SECONDS);
}

pub(super) fn mutating_webhook(webhook: &mut ObjectMap) {
    validating_webhook(webhook);
    if_absent(webhook, "reinvocationPolicy", "Never");
}

pub(super) fn rule(rule: &mut ObjectMap) {
    if_absent(rule, "scope", "*");
}

pub(super) fn service_reference(reference: &mut ObjectMap) {
    if_absent(reference, "port", HTTPS);
}

pub(super) fn policy(policy: &mut ObjectMap) {
    if_absent(policy, "failurePolicy", "Fail");
}

pub(super) fn match_resources(resources: &mut ObjectMap) {
    if_absent(resources, "matchPolicy", "Equivalent");
    if_absent(resources, "namespaceSelector", empty());
    if_absent(resources, "objectSelector", empty());
}
