//! Kinds that extend the server: webhooks, admission policies, custom resources (`pkg/apis/admissionregistration/v1`
//! and apiextensions-apiserver's `defaults.go`).

use super::set::{empty, if_absent, if_zero, text};
use crate::fields::{self, ObjectMap};
use crate::tree::{Value, json};

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

/// A definition whose objects have been stored in no version will have them in the one that is marked for it.
pub(super) fn custom_resource_definition(definition: &mut ObjectMap) {
    if !fields::items(definition, &["status", "storedVersions"]).is_empty() {
        return;
    }
    let stored = |version: &&Value| version.get("storage") == Some(&Value::Bool(true));
    let version = fields::items(definition, &["spec", "versions"]).iter().find(stored);
    let name = version.and_then(|version| version.get("name")).filter(|name| name.is_string()).cloned();
    if let Some(name) = name {
        fields::object_mut(definition, "status").insert("storedVersions", Value::Array(vec![name]));
    }
}

pub(super) fn custom_resource(spec: &mut ObjectMap) {
    let names = fields::object_mut(spec, "names");
    let kind = text(names, "kind").to_owned();
    if_zero(names, "singular", kind.to_lowercase());
    if !kind.is_empty() {
        if_zero(names, "listKind", format!("{kind}List"));
    }
    if_absent(spec, "conversion", json!({"strategy": "None"}));
}

pub(super) fn policy(policy: &mut ObjectMap) {
    if_absent(policy, "failurePolicy", "Fail");
}

pub(super) fn match_resources(resources: &mut ObjectMap) {
    if_absent(resources, "matchPolicy", "Equivalent");
    if_absent(resources, "namespaceSelector", empty());
    if_absent(resources, "objectSelector", empty());
}
