//! Who waits behind whom: flow schemas and priority levels (`pkg/apis/flowcontrol/validation`).

use std::collections::BTreeSet;

use super::at::At;
use super::errors::{Errors, Verbatim};
use super::format::{dns1123_label, dns1123_subdomain};
use crate::api::ObjectMap;
use crate::gotext;

const PRECEDENCE_MAX: i64 = 10_000;
const QUEUES_MAX: i64 = 10_000_000;
/// What a hash has for choosing queues.
const HASH_BITS: u32 = 60;
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

pub fn schema(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let precedence = spec.get("matchingPrecedence");
    // Defaulting puts a thousand in the place of zero.
    let number = if precedence.int() == 0 { 1000 } else { precedence.int() };
    if number <= 0 {
        errors.invalid(&precedence, number, "must be a positive value");
    }
    if number > PRECEDENCE_MAX {
        errors.invalid(&precedence, number, &format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if number == 1 && metadata.get("name").text() != "exempt" {
        let why = "only the schema named 'exempt' may have matchingPrecedence 1";
        errors.invalid(&precedence, number, why);
    }
    let method = spec.get("distinguisherMethod");
    let kind = method.get("type");
    if method.is_set() && !matches!(kind.text(), "ByNamespace" | "ByUser") {
        let shown = format!("{{\"Type\":{}}}", gotext::json(&kind.text().into()));
        errors.not_supported(&kind, Verbatim(shown), &["ByNamespace", "ByUser"]);
    }
    let level = spec.dig(&["priorityLevelConfiguration", "name"]);
    if level.text().is_empty() {
        errors.required(&level, "must reference a priority level");
    } else {
        errors.in_format(&level, dns1123_subdomain);
    }
    for one in spec.get("rules").items() {
        rule(&one, errors);
    }
    status(object, object, errors);
}

/// Of both kinds: each condition once.
pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let status = At::member(new, "status");
    let mut seen = BTreeSet::new();
    for condition in status.get("conditions").items() {
        let kind = condition.get("type");
        if !seen.insert(kind.text()) {
            errors.duplicate(&kind, kind.text());
        }
        if kind.text().is_empty() {
            errors.required(&kind, "");
        }
    }
}

fn rule(rule: &At<'_, '_>, errors: &mut Errors) {
    let subjects = rule.get("subjects");
    if subjects.is_empty() {
        errors.required(&subjects, "subjects must contain at least one value");
    }
    for one in subjects.items() {
        subject(&one, errors);
    }
    let (resources, others) = (rule.get("resourceRules"), rule.get("nonResourceRules"));
    if resources.is_empty() && others.is_empty() {
        errors.required(rule, "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
    for one in resources.items() {
        resource_rule(&one, errors);
    }
    for one in others.items() {
        non_resource_rule(&one, errors);
    }
}

fn subject(at: &At<'_, '_>, errors: &mut Errors) {
    const KINDS: [(&str, &str); 3] =
        [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = at.get("kind");
    if !KINDS.iter().any(|(known, _)| *known == kind.text()) {
        return errors.not_supported(&kind, kind.text(), &["Group", "ServiceAccount", "User"]);
    }
    for (name, field) in KINDS {
        let one = at.get(field);
        if name != kind.text() {
            if one.is_set() {
                errors.forbidden(&one, &format!("{field} is forbidden when subject kind is not '{name}'"));
            }
        } else if !one.is_set() {
            errors.required(&one, &format!("{field} is required when subject kind is '{name}'"));
        } else {
            let own = one.get("name");
            if own.text().is_empty() {
                errors.required(&own, "");
            } else if name == "ServiceAccount" && own.text() != "*" {
                errors.in_format(&own, dns1123_subdomain);
            }
            if name == "ServiceAccount" {
                let namespace = one.get("namespace");
                if namespace.text().is_empty() {
                    errors.required(&namespace, "must specify namespace for service account");
                } else {
                    errors.in_format(&namespace, dns1123_label);
                }
            }
        }
    }
}

fn has_wildcard(list: &At<'_, '_>) -> bool {
    list.texts().any(|text| text == "*")
}

fn verbs(list: &At<'_, '_>, errors: &mut Errors) {
    if list.is_empty() {
        errors.required(list, "verbs must contain at least one value");
    } else if has_wildcard(list) {
        alone(list, "verbs", errors);
    } else if list.texts().any(|verb| !VERBS.contains(&verb)) {
        errors.not_supported(list, list.value(), &VERBS);
    }
}

/// A wildcard stands for all there are.
fn alone(list: &At<'_, '_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 {
        errors.invalid(list, list.value(), &format!("if '*' is present, must not specify other {what}"));
    }
}

fn resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(&rule.get("verbs"), errors);
    let lists = [
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ];
    for (name, missing, what) in lists {
        let list = rule.get(name);
        if list.is_empty() {
            errors.required(&list, missing);
        } else if has_wildcard(&list) {
            alone(&list, what, errors);
        }
    }
    let namespaces = rule.get("namespaces");
    if namespaces.is_empty() && !rule.get("clusterScope").flag() {
        let why = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.required(&namespaces, why);
    } else if has_wildcard(&namespaces) {
        alone(&namespaces, "namespaces", errors);
    } else {
        for namespace in namespaces.items() {
            for message in dns1123_label(namespace.text()) {
                let why = format!("each member of this list must be '*' or a DNS-1123 label; {message}");
                errors.invalid(&namespace, namespace.text(), &why);
            }
        }
    }
}

fn non_resource_rule(rule: &At<'_, '_>, errors: &mut Errors) {
    verbs(&rule.get("verbs"), errors);
    let urls = rule.get("nonResourceURLs");
    if urls.is_empty() {
        errors.required(&urls, "nonResourceURLs must contain at least one value");
    } else if has_wildcard(&urls) {
        alone(&urls, "non-resource URLs", errors);
    } else {
        for url in urls.items() {
            if let Some(why) = bad_url(url.text()) {
                errors.invalid(&url, url.text(), why);
            }
        }
    }
}

fn bad_url(path: &str) -> Option<&'static str> {
    let stars = path.matches('*').count();
    match path {
        "" => Some("must not be empty"),
        "/" => None,
        _ if !path.starts_with('/') => Some("must start with slash"),
        _ if path.contains(' ') => Some("must not contain white-space"),
        _ if path.contains("//") => Some("must not contain double slash"),
        _ if stars > 1 || (stars == 1 && !path.ends_with("/*")) => {
            Some("wildcard can only do suffix matching")
        }
        _ => None,
    }
}

pub fn level(object: &ObjectMap, errors: &mut Errors) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    const PRESERVE: &str = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    let annotations = metadata.get("annotations");
    if annotations.key(PRESERVE).is_set() {
        errors.forbidden(&annotations, &format!("annotation '{PRESERVE}' is forbidden"));
    }
    let (kind, limited, exempt) = (spec.get("type"), spec.get("limited"), spec.get("exempt"));
    if (metadata.get("name").text() == "exempt") != (kind.text() == "Exempt") {
        errors.invalid(&kind, kind.text(), "must be 'Exempt' if and only if `name` is 'exempt'");
    }
    match kind.text() {
        "Exempt" => {
            if limited.is_set() {
                errors.forbidden(&limited, "must be nil if the type is not Limited");
            }
            shares(&exempt, errors);
        }
        "Limited" => {
            if exempt.is_set() {
                errors.forbidden(&exempt, "must be nil if the type is Limited");
            }
            if limited.is_set() {
                self::limited(&limited, errors);
            } else {
                errors.required(&limited, "must not be empty when type is Limited");
            }
        }
        "" => errors.required(&kind, ""),
        other => errors.not_supported(&kind, other, &["Exempt", "Limited"]),
    }
    status(object, object, errors);
}

fn shares(at: &At<'_, '_>, errors: &mut Errors) {
    let (nominal, lendable) = (at.get("nominalConcurrencyShares"), at.get("lendablePercent"));
    if nominal.int() < 0 {
        errors.invalid(&nominal, nominal.int(), "must be a non-negative integer");
    }
    if lendable.is_set() {
        errors.within(&lendable, 0, 100);
    }
}

fn limited(at: &At<'_, '_>, errors: &mut Errors) {
    shares(at, errors);
    let response = at.get("limitResponse");
    let (kind, queuing) = (response.get("type"), response.get("queuing"));
    match kind.text() {
        "Reject" => {
            if queuing.is_set() {
                errors.forbidden(&queuing, "must be nil if limited.limitResponse.type is not Limited");
            }
        }
        "Queue" if queuing.is_set() => queues(&queuing, errors),
        "Queue" => errors.required(&queuing, "must not be empty if limited.limitResponse.type is Limited"),
        "" => errors.required(&kind, ""),
        other => errors.not_supported(&kind, other, &["Queue", "Reject"]),
    }
    let borrowing = at.get("borrowingLimitPercent");
    if borrowing.int() < 0 {
        errors.invalid(&borrowing, borrowing.int(), "if specified, must be a non-negative integer");
    }
}

fn queues(at: &At<'_, '_>, errors: &mut Errors) {
    let (length, queues, hand) = (at.get("queueLengthLimit"), at.get("queues"), at.get("handSize"));
    // What defaulting puts in the place of zero.
    let or = |at: &At<'_, '_>, default| if at.int() == 0 { default } else { at.int() };
    let (length_number, count, size) = (or(&length, 50), or(&queues, 64), or(&hand, 8));
    if length_number < 0 {
        errors.invalid(&length, length_number, "must be positive");
    }
    if count < 0 {
        errors.invalid(&queues, count, "must be positive");
    } else if count > QUEUES_MAX {
        errors.invalid(&queues, count, &format!("must not be greater than {QUEUES_MAX}"));
    }
    if size < 0 {
        errors.invalid(&hand, size, "must be positive");
    } else if size > count {
        errors.invalid(&hand, size, &format!("should not be greater than queues ({count})"));
    } else if entropy_bits(count, size) > HASH_BITS {
        let why = format!(
            "required entropy bits of deckSize {count} and handSize {size} should not be greater than {HASH_BITS}"
        );
        errors.invalid(&hand, size, &why);
    }
}

/// How many bits it takes to choose so many of so many.
fn entropy_bits(deck: i64, hand: i64) -> u32 {
    (((deck as f64).log2() * hand as f64).ceil()) as u32
}
