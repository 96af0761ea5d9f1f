//! Converts autoscalers: `autoscaling/v1` has a field only for CPU utilization, and keeps everything else in
//! annotations (`pkg/apis/autoscaling/v1/conversion.go`).

pub mod metrics;

use crate::kinds::behavior::conversion::OtherVersion;
use crate::kinds::prelude::*;
use crate::tree::{Text, json};
use crate::{fields, gotext};

/// The other version, seen from `autoscaling/v1`.
pub const OF_V1: OtherVersion =
    OtherVersion { api_version: "autoscaling/v2", convert_from: to_v1, convert_to: to_v2 };

/// The other version, seen from `autoscaling/v2`.
pub const OF_V2: OtherVersion =
    OtherVersion { api_version: "autoscaling/v1", convert_from: to_v2, convert_to: to_v1 };

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// The target of an autoscaler without metrics (`autoscaling.DefaultCPUUtilization`).
const DEFAULT_CPU: i64 = 80;

pub fn to_v1(mut object: ObjectMap) -> ObjectMap {
    // Annotations of these names that a client of v2 has set would be read back as fields.
    for name in [METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS] {
        take_annotation(&mut object, name);
    }
    spec_to_v1(&mut object);
    status_to_v1(&mut object);
    object
}

fn spec_to_v1(object: &mut ObjectMap) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let mut metrics = take_items(spec, "metrics");
    let behavior = spec.shift_remove("behavior").filter(|behavior| !behavior.is_null());
    // One CPU metric becomes the field; upstream loses further ones.
    let cpu = metrics.iter().enumerate().find_map(|(at, metric)| {
        metrics::cpu_utilization(metric, "target").map(|target| (at, target.clone()))
    });
    if let Some((at, target)) = cpu {
        metrics.remove(at);
        spec.insert("targetCPUUtilizationPercentage", target);
    }
    annotate_items(object, METRICS, &metrics, metrics::flat_specs);
    if let Some(behavior) = behavior {
        annotate(object, BEHAVIOR, &with_keys(behavior, char::to_ascii_uppercase));
    }
}

fn status_to_v1(object: &mut ObjectMap) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { return };
    let current = take_items(status, "currentMetrics");
    let conditions = take_items(status, "conditions");
    for utilization in current.iter().filter_map(|metric| metrics::cpu_utilization(metric, "current")) {
        status.insert("currentCPUUtilizationPercentage", utilization.clone());
    }
    for required in ["currentReplicas", "desiredReplicas"] {
        status.entry(required).or_insert_with(|| 0.into());
    }
    // The annotation also contains the metric that has a field, because the field has no raw value.
    annotate_items(object, CURRENT_METRICS, &current, metrics::flat_statuses);
    annotate_items(object, CONDITIONS, &conditions, |items| items.to_vec().into());
}

pub fn to_v2(mut object: ObjectMap) -> ObjectMap {
    let [others, behavior, current, conditions] =
        [METRICS, BEHAVIOR, CURRENT_METRICS, CONDITIONS].map(|name| take_annotation(&mut object, name));
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        spec_to_v2(spec, others, behavior);
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status_to_v2(status, current, conditions);
    }
    object
}

fn spec_to_v2(spec: &mut ObjectMap, others: Option<Value>, behavior: Option<Value>) {
    let mut metrics = items_of(others).map(|items| metrics::nested_specs(&items)).unwrap_or_default();
    let cpu = spec.shift_remove("targetCPUUtilizationPercentage").filter(|cpu| !cpu.is_null());
    if cpu.is_some() || metrics.is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": cpu.unwrap_or(DEFAULT_CPU.into())});
        metrics.push(json!({"type": "Resource", "resource": {"name": "cpu", "target": target}}));
    }
    spec.insert("metrics", metrics.into());
    let behavior = behavior.map(|behavior| with_keys(behavior, char::to_ascii_lowercase));
    // A behavior without members counts as absent.
    let says_something = |behavior: &Value| behavior.as_object().is_some_and(|object| !object.is_empty());
    if let Some(behavior) = behavior.filter(says_something) {
        spec.insert("behavior", behavior);
    }
}

fn status_to_v2(status: &mut ObjectMap, current: Option<Value>, conditions: Option<Value>) {
    let cpu = status.shift_remove("currentCPUUtilizationPercentage").filter(|cpu| !cpu.is_null());
    let of_field = |cpu| {
        vec![json!({"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": cpu}}})]
    };
    let current = items_of(current).map(|items| metrics::nested_statuses(&items));
    let current = current.or_else(|| cpu.map(of_field)).map_or(Value::Null, Value::from);
    status.insert("currentMetrics", current);
    if let Some(conditions) = items_of(conditions) {
        status.insert("conditions", conditions.into());
    }
    // Version 1 prints the field even if it is zero, version 2 does not.
    if status.get("currentReplicas").is_some_and(|replicas| replicas == 0) {
        status.shift_remove("currentReplicas");
    }
}

fn take_items(parent: &mut ObjectMap, key: &str) -> Vec<Value> {
    match parent.shift_remove(key) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

fn items_of(value: Option<Value>) -> Option<Vec<Value>> {
    match value {
        Some(Value::Array(items)) if !items.is_empty() => Some(items),
        _ => None,
    }
}

/// Removes an annotation and parses it. A text that is not JSON is dropped, as upstream does.
fn take_annotation(object: &mut ObjectMap, name: &str) -> Option<Value> {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut)?;
    let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut)?;
    let text = annotations.shift_remove(name)?;
    if annotations.is_empty() {
        metadata.shift_remove("annotations");
    }
    serde_json::from_str(text.as_str()?).ok()
}

fn annotate_items(object: &mut ObjectMap, name: &str, items: &[Value], encode: impl Fn(&[Value]) -> Value) {
    if !items.is_empty() {
        annotate(object, name, &encode(items));
    }
}

fn annotate(object: &mut ObjectMap, name: &str, value: &Value) {
    let metadata = fields::object_mut(object, "metadata");
    let annotations = fields::object_mut(metadata, "annotations");
    annotations.insert(name, gotext::json(value).into());
}

/// Changes the case of the first letter of all keys. Upstream encodes the behavior with its internal type, whose fields
/// are spelled `ScaleUp`, `Policies`, …; its decoder accepts any case, and treats null as absent.
fn with_keys(value: Value, first: fn(&char) -> char) -> Value {
    match value {
        Value::Object(object) => {
            let rename = |key: Text| {
                let mut rest = key.chars();
                rest.next().map(|c| first(&c)).into_iter().chain(rest).collect::<Text>()
            };
            let present = object.into_iter().filter(|(_, value)| !value.is_null());
            present.map(|(key, value)| (rename(key), with_keys(value, first))).collect::<ObjectMap>().into()
        }
        Value::Array(items) => items.into_iter().map(|item| with_keys(item, first)).collect(),
        other => other,
    }
}
