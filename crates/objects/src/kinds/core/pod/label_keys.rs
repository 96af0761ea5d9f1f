//! Scheduling terms that name labels of the pod itself: when a pod is created, its values of these labels are written
//! into the terms' selectors (`pkg/registry/core/pod/strategy.go`).

use crate::fields;
use crate::kinds::prelude::*;
use crate::tree::json;

pub fn apply(pod: &mut ObjectMap) {
    let labels =
        fields::at(pod, &["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    each(spec, "topologySpreadConstraints", |constraint| {
        select(constraint, &[("matchLabelKeys", "In")], &labels)
    });
    let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) else { return };
    for name in ["podAffinity", "podAntiAffinity"] {
        let Some(affinity) = affinity.get_mut(name).and_then(Value::as_object_mut) else { continue };
        let keys = [("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")];
        each(affinity, "preferredDuringSchedulingIgnoredDuringExecution", |weighted| {
            if let Some(Value::Object(term)) = weighted.get_mut("podAffinityTerm") {
                select(term, &keys, &labels);
            }
        });
        each(affinity, "requiredDuringSchedulingIgnoredDuringExecution", |term| select(term, &keys, &labels));
    }
}

fn each(parent: &mut ObjectMap, list: &str, mut change: impl FnMut(&mut ObjectMap)) {
    let items = parent.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
    items.filter_map(Value::as_object_mut).for_each(&mut change);
}

/// Adds requirements to a term's selector. An absent selector selects nothing, and stays absent.
fn select(term: &mut ObjectMap, keys: &[(&str, &str)], labels: &ObjectMap) {
    let requirements: Vec<Value> = keys
        .iter()
        .flat_map(|(field, operator)| fields::items(term, &[field]).iter().map(move |key| (key, operator)))
        .filter_map(|(key, operator)| {
            let value = labels.get(key.as_str()?)?;
            Some(json!({"key": key, "operator": operator, "values": [value]}))
        })
        .collect();
    let Some(Value::Object(selector)) = term.get_mut("labelSelector") else { return };
    if requirements.is_empty() {
        return;
    }
    match selector.get_mut("matchExpressions") {
        Some(Value::Array(expressions)) => expressions.extend(requirements),
        _ => {
            selector.insert("matchExpressions", requirements.into());
        }
    }
}
