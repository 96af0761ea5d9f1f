use serde_json::{Value, json};

use super::*;

fn convert(value: &Value, from: &str, to: &str, kind: &str) -> Value {
    conversion(from, to, kind).unwrap().convert(value.as_object().unwrap().clone()).into()
}

fn to_v1(value: &Value) -> Value {
    convert(value, "autoscaling/v2", "autoscaling/v1", "HorizontalPodAutoscaler")
}

fn to_v2(value: &Value) -> Value {
    convert(value, "autoscaling/v1", "autoscaling/v2", "HorizontalPodAutoscaler")
}

#[test]
fn there_is_a_way_only_where_versions_differ() {
    assert!(conversion("v1", "v1", "Event").is_none());
    assert!(conversion("v1", "v1", "Pod").is_none());
    assert!(conversion("autoscaling/v2", "v1", "Event").is_none());
}

#[test]
fn events_there_and_back() {
    let core = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"},
        "involvedObject": {"kind": "Pod"}, "reason": "r", "message": "m", "source": {"component": "c"},
        "firstTimestamp": "a", "lastTimestamp": null, "count": 3, "type": "Normal", "eventTime": "t",
        "series": {"count": 1}, "action": "x", "related": {"kind": "Node"},
        "reportingComponent": "rc", "reportingInstance": "ri",
    });
    let own = convert(&core, "v1", "events.k8s.io/v1", "Event");
    assert_eq!(
        own,
        json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
            "regarding": {"kind": "Pod"}, "reason": "r", "note": "m", "deprecatedSource": {"component": "c"},
            "deprecatedFirstTimestamp": "a", "deprecatedLastTimestamp": null, "deprecatedCount": 3,
            "type": "Normal", "eventTime": "t", "series": {"count": 1}, "action": "x",
            "related": {"kind": "Node"}, "reportingController": "rc", "reportingInstance": "ri",
        })
    );
    assert_eq!(convert(&own, "events.k8s.io/v1", "v1", "Event"), core);
}

#[test]
fn fields_of_the_other_version_do_not_get_across() {
    let event = json!({"note": "mine", "message": "smuggled"});
    let want = json!({"message": "mine", "apiVersion": "v1"});
    assert_eq!(convert(&event, "events.k8s.io/v1", "v1", "Event"), want);
}

fn full_autoscaler() -> Value {
    let selector = json!({"matchLabels": {"a": "b"}});
    json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "h", "annotations": {"own": "text"}},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"},
            "minReplicas": 1, "maxReplicas": 5,
            "metrics": [
                {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
                {"type": "Pods", "pods": {"metric": {"name": "p", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "1"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "i"}, "metric": {"name": "o"}, "target": {"type": "Value", "value": "2k"}}},
                {"type": "Object", "object": {"describedObject": {"kind": "Ingress", "name": "i"}, "metric": {"name": "o"}, "target": {"type": "AverageValue", "averageValue": "2k"}}},
                {"type": "External", "external": {"metric": {"name": "e", "selector": selector}, "target": {"type": "AverageValue", "averageValue": "3"}}},
                {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": {"type": "Utilization", "averageUtilization": 7}}},
                {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
            ],
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 0, "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
        },
        "status": {
            "observedGeneration": 3, "currentReplicas": 2, "desiredReplicas": 3,
            "currentMetrics": [
                {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 50, "averageValue": "10m"}}},
                {"type": "External", "external": {"metric": {"name": "e"}, "current": {"averageValue": "3"}}},
            ],
            "conditions": [{"type": "AbleToScale", "status": "True", "message": "a<b"}],
        },
    })
}

#[test]
fn autoscalers_there_and_back() {
    let v2 = full_autoscaler();
    let v1 = to_v1(&v2);
    assert_eq!(v1["spec"]["targetCPUUtilizationPercentage"], 60);
    assert_eq!(v1["spec"].get("metrics"), None);
    assert_eq!(
        v1["status"],
        json!({"observedGeneration": 3, "currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 50})
    );
    let annotation = |name: &str| -> Value {
        let text = v1["metadata"]["annotations"][format!("autoscaling.alpha.kubernetes.io/{name}")].as_str();
        serde_json::from_str(text.unwrap()).unwrap()
    };
    assert_eq!(
        annotation("behavior"),
        json!({"ScaleUp": {"StabilizationWindowSeconds": 0, "SelectPolicy": "Max",
            "Policies": [{"Type": "Pods", "Value": 4, "PeriodSeconds": 15}]}})
    );
    let metrics = annotation("metrics");
    assert_eq!(metrics[0]["resource"], json!({"name": "memory", "targetAverageValue": "1Gi"}));
    assert_eq!(metrics[4]["external"]["metricSelector"], json!({"matchLabels": {"a": "b"}}));
    assert_eq!(annotation("conditions"), v2["status"]["conditions"]);
    assert_eq!(annotation("current-metrics")[0]["resource"]["currentAverageValue"], "10m");
    assert_eq!(to_v2(&v1), v2);
    assert_eq!(to_v1(&to_v2(&v1)), v1);
}

#[test]
fn small_autoscalers() {
    let cpu = |percent: i64| json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}]);
    let plain = to_v2(&json!({"spec": {"maxReplicas": 1}}));
    assert_eq!(plain["spec"]["metrics"], cpu(80));
    let v2 = to_v2(
        &json!({"spec": {"targetCPUUtilizationPercentage": 40}, "status": {"currentReplicas": 0, "desiredReplicas": 0, "currentCPUUtilizationPercentage": 9}}),
    );
    assert_eq!(v2["spec"], json!({"metrics": cpu(40)}));
    assert_eq!(
        v2["status"],
        json!({"desiredReplicas": 0, "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 9}}}]})
    );
}

#[test]
fn annotations_of_the_wrong_sort_are_dropped() {
    let key = "autoscaling.alpha.kubernetes.io/metrics";
    let broken =
        json!({"metadata": {"annotations": {key: "{"}}, "spec": {"targetCPUUtilizationPercentage": 40}});
    assert_eq!(to_v2(&broken)["metadata"], json!({}));
    let smuggled = json!({"metadata": {"annotations": {key: "[]", "x": "y"}}, "spec": {"metrics": []}});
    assert_eq!(to_v1(&smuggled)["metadata"], json!({"annotations": {"x": "y"}}));
    for nonsense in [
        json!({}),
        json!({"spec": 1, "status": [], "metadata": "x"}),
        json!({"spec": {"metrics": [1, {"type": 2, "resource": 3}]}}),
    ] {
        to_v2(&to_v1(&nonsense));
        to_v1(&to_v2(&nonsense));
    }
}
