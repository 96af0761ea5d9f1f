//! Affinity: on which nodes a pod should run, and near which other pods.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_value};
use crate::kinds::behavior::rules::selector;
use crate::kinds::prelude::*;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

pub fn affinity(at: &At<'_, '_>, errors: &mut Errors) {
    let node = at.get("nodeAffinity");
    if node.get(REQUIRED).is_set() {
        node_selector(&node.get(REQUIRED), errors);
    }
    for term in node.get(PREFERRED).items() {
        weight(&term, errors);
        node_term(&term.get("preference"), Values::Any, errors);
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let pods = at.get(name);
        for term in pods.get(REQUIRED).items() {
            pod_term(&term, errors);
        }
        for term in pods.get(PREFERRED).items() {
            weight(&term, errors);
            pod_term(&term.get("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &At<'_, '_>, errors: &mut Errors) {
    let weight = term.get("weight");
    if !(1..=100).contains(&weight.int()) {
        errors.invalid(&weight, weight.int(), "must be in the range 1-100");
    }
}

pub fn node_selector(at: &At<'_, '_>, errors: &mut Errors) {
    let terms = at.get("nodeSelectorTerms");
    errors.present(&terms, "must have at least one node selector term");
    for term in terms.items() {
        node_term(&term, Values::Labels, errors);
    }
}

/// The format of the values of expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    Labels,
    /// Preferences may contain values that no label can have.
    Any,
}

fn node_term(term: &At<'_, '_>, values: Values, errors: &mut Errors) {
    for requirement in term.get("matchExpressions").items() {
        node_requirement(&requirement, values, errors);
    }
    for requirement in term.get("matchFields").items() {
        field_requirement(&requirement, errors);
    }
}

fn node_requirement(requirement: &At<'_, '_>, allowed: Values, errors: &mut Errors) {
    let (operator, values) = (requirement.get("operator"), requirement.get("values"));
    match operator.text() {
        "In" | "NotIn" if values.is_empty() => {
            errors.required(&values, "must be specified when `operator` is 'In' or 'NotIn'");
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.forbidden(&values, why);
        }
        "Gt" | "Lt" if values.len() != 1 => {
            errors.required(&values, "must be specified single value when `operator` is 'Lt' or 'Gt'");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.invalid(&operator, other, "not a valid selector operator"),
    }
    selector::label_name(&requirement.get("key"), errors);
    for value in values.items().filter(|_| allowed == Values::Labels) {
        errors.in_format(&value, label_value);
    }
}

fn field_requirement(requirement: &At<'_, '_>, errors: &mut Errors) {
    let (operator, values, key) =
        (requirement.get("operator"), requirement.get("values"), requirement.get("key"));
    match operator.text() {
        "In" | "NotIn" if values.len() != 1 => {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.required(&values, why);
        }
        "In" | "NotIn" => {}
        other => errors.invalid(&operator, other, "not a valid selector operator"),
    }
    if key.text() != "metadata.name" {
        errors.invalid(&key, key.text(), "not a valid field selector key");
        return;
    }
    for value in values.items() {
        errors.in_format(&value, dns1123_subdomain);
    }
}

fn pod_term(term: &At<'_, '_>, errors: &mut Errors) {
    let labels = term.get("labelSelector");
    selector::validate(&labels, errors);
    selector::validate(&term.get("namespaceSelector"), errors);
    for name in term.get("namespaces").texts() {
        errors.invalid_each(&term.get("namespace"), name, dns1123_label(name));
    }
    label_keys(term, errors);
    let key = term.get("topologyKey");
    errors.present(&key, "can not be empty");
    selector::label_name(&key, errors);
}

/// Validates `matchLabelKeys` and `mismatchLabelKeys`, whose values are taken from the pod itself.
pub fn label_keys(at: &At<'_, '_>, errors: &mut Errors) {
    let labels = at.get("labelSelector");
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = at.get(name);
        if keys.is_empty() {
            continue;
        }
        if !labels.is_set() {
            errors.forbidden(&keys, "must not be specified when labelSelector is not set");
            continue;
        }
        for key in keys.items() {
            selector::label_name(&key, errors);
        }
    }
    let (matching, differing) = (at.get("matchLabelKeys"), at.get("mismatchLabelKeys"));
    let mut seen: BTreeSet<&str> = labels.get("matchLabels").entries().map(|(key, _)| key).collect();
    // Of repeated keys, the last one counts.
    let places: BTreeMap<&str, usize> = matching.texts().zip(0..).collect();
    for requirement in labels.get("matchExpressions").items() {
        let key = requirement.get("key").text();
        if let Some(&index) = places.get(key)
            && seen.contains(key)
        {
            errors.invalid(&at.index(index), key, "exists in both matchLabelKeys and labelSelector");
        }
        seen.insert(key);
    }
    let differing: BTreeSet<&str> = differing.texts().collect();
    for key in matching.items() {
        if differing.contains(key.text()) {
            errors.invalid(&key, key.text(), "exists in both matchLabelKeys and mismatchLabelKeys");
        }
    }
}
