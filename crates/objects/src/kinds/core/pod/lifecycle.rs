//! The start and end of a pod's life (`pkg/registry/core/pod/strategy.go`).

use crate::fields;
use crate::kinds::core::pod::{label_keys, qos};
use crate::kinds::prelude::*;
use crate::tree::json;

/// `v1.DefaultTerminationGracePeriodSeconds`, which is upstream's default for every pod.
const DEFAULT_GRACE: i64 = 30;

pub fn prepare_create(object: &mut ObjectMap, now: &str) {
    let class = qos::class(object);
    fields::object_mut(object, "status").insert("qosClass", class.into());
    label_keys::apply(object);
    if fields::items(object, &["spec", "schedulingGates"]).is_empty() {
        return;
    }
    let condition = json!({
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": null,
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    });
    fields::object_mut(object, "status").insert("conditions", vec![condition].into());
}

/// Restores fields that an old kubelet does not send.
pub fn prepare_status_update(new: &mut ObjectMap, old: &ObjectMap) {
    let empty = ObjectMap::new();
    let stored = fields::object(old, "status").unwrap_or(&empty);
    if fields::text(new, &["status", "qosClass"]).is_empty() {
        fields::restore(fields::object_mut(new, "status"), stored, "qosClass");
    }
    keep_claims(fields::object_mut(new, "status"), stored);
    keep_observed_generation(fields::object_mut(new, "status"), stored);
    let mut unused: Vec<&ObjectMap> =
        fields::items(stored, &["conditions"]).iter().filter_map(Value::as_object).collect();
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions"));
    let conditions = conditions.and_then(Value::as_array_mut).into_iter().flatten();
    for condition in conditions.filter_map(Value::as_object_mut) {
        // Matched one by one, since a type may occur repeatedly.
        let same = unused.iter().position(|old| old.get("type") == condition.get("type"));
        if let Some(at) = same {
            keep_observed_generation(condition, unused.remove(at));
        }
    }
}

/// Restores what became of claims where a client leaves it out that does not know it; an empty list takes it away.
fn keep_claims(new: &mut ObjectMap, old: &ObjectMap) {
    for name in
        ["resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses"]
    {
        match new.get(name) {
            None | Some(Value::Null) => fields::restore(new, old, name),
            Some(Value::Array(statuses)) if statuses.is_empty() => drop(new.shift_remove(name)),
            Some(_) => {}
        }
    }
}

fn keep_observed_generation(new: &mut ObjectMap, old: &ObjectMap) {
    let sent = new.get("observedGeneration").and_then(Value::as_i64).unwrap_or(0);
    if sent == 0 && old.contains_key("observedGeneration") {
        fields::restore(new, old, "observedGeneration");
    }
}

/// `CheckGracefulDelete`: a pod that does not run on a node needs no grace period.
pub fn graceful_period(object: &ObjectMap, requested: Option<i64>) -> i64 {
    let own = fields::at(object, &["spec", "terminationGracePeriodSeconds"]).and_then(Value::as_i64);
    let scheduled = !fields::text(object, &["spec", "nodeName"]).is_empty();
    let ended = matches!(fields::text(object, &["status", "phase"]), "Failed" | "Succeeded");
    let period = match requested.or(own).unwrap_or(DEFAULT_GRACE) {
        _ if !scheduled || ended => 0,
        period => period,
    };
    if period < 0 { 1 } else { period }
}
