//! Autoscalers (`pkg/apis/autoscaling/{v1,v2}/defaults.go`).

use super::set::{if_absent, if_zero, part};
use crate::fields::{self, ObjectMap};
use crate::tree::{Value, json};

/// The annotation in which `autoscaling/v1` keeps metrics other than CPU usage.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// The default target, in per cent of the pods' requests.
const CPU_UTILIZATION: i64 = 80;

pub(super) fn v1(autoscaler: &mut ObjectMap) {
    let measured = fields::at(autoscaler, &["metadata", "annotations", METRICS]).is_some();
    let Some(spec) = part(autoscaler, "spec") else { return };
    if_absent(spec, "minReplicas", 1);
    if !measured {
        if_absent(spec, "targetCPUUtilizationPercentage", CPU_UTILIZATION);
    }
}

pub(super) fn v2(autoscaler: &mut ObjectMap) {
    let Some(spec) = part(autoscaler, "spec") else { return };
    if_absent(spec, "minReplicas", 1);
    let metric = json!([{
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": CPU_UTILIZATION}},
    }]);
    if_zero(spec, "metrics", metric);
    let Some(behavior) = part(spec, "behavior") else { return };
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    let up = fields::object_mut(behavior, "scaleUp");
    if_absent(up, "stabilizationWindowSeconds", 0);
    rules(up, json!([pods, percent]));
    rules(fields::object_mut(behavior, "scaleDown"), json!([percent]));
}

fn rules(rules: &mut ObjectMap, policies: Value) {
    if_absent(rules, "selectPolicy", "Max");
    if_absent(rules, "policies", policies);
}
