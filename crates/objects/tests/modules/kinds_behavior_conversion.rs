//! Tests of `kinds::behavior::conversion`.

use rowplane_objects::codec::protobuf;
use rowplane_objects::kinds::GROUPS;
use rowplane_objects::kinds::built_in::find;
use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::{GroupVersion, Gvk};
use rowplane_values::tree::{Value, json};

fn convert(value: &Value, from: Gvk, to: &str) -> Value {
    let other =
        find(&GroupVersion::parse(to).unwrap().with_kind(from.kind.clone())).unwrap().other_version.unwrap();
    assert_eq!(other.api_version, from.api_version().as_str());
    other.convert_from(value.as_object().unwrap().clone(), to).into()
}

fn to_v1(value: &Value) -> Value {
    convert(value, Gvk::fixed("autoscaling/v2", "HorizontalPodAutoscaler"), "autoscaling/v1")
}

fn to_v2(value: &Value) -> Value {
    convert(value, Gvk::fixed("autoscaling/v1", "HorizontalPodAutoscaler"), "autoscaling/v2")
}

#[test]
fn versions_that_look_different_know_each_other() {
    let mut pairs = 0;
    for group in GROUPS {
        let versions = group.versions.iter();
        for (version, kind) in
            versions.flat_map(|version| version.kinds.iter().map(move |kind| (version, kind)))
        {
            let Some(other) = kind.other_version else { continue };
            let other = GroupVersion::parse(other.api_version).unwrap().with_kind(kind.definition.kind);
            let back = find(&other).unwrap().other_version.unwrap();
            assert_eq!(back.api_version, GroupVersion::new(group.name, version.name).api_version().as_str());
            pairs += 1;
        }
    }
    assert_eq!(pairs, 8);
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
    let own = convert(&core, Gvk::fixed("v1", "Event"), "events.k8s.io/v1");
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
    assert_eq!(convert(&own, Gvk::fixed("events.k8s.io/v1", "Event"), "v1"), core);
}

#[test]
fn fields_of_the_other_version_do_not_get_across() {
    let event = json!({"note": "mine", "message": "smuggled"});
    let want = json!({"message": "mine", "apiVersion": "v1"});
    assert_eq!(convert(&event, Gvk::fixed("events.k8s.io/v1", "Event"), "v1"), want);
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
        let text = v1["metadata"]["annotations"][&format!("autoscaling.alpha.kubernetes.io/{name}")].as_str();
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

/// An object as it comes back from its types, with all that is always there.
fn typed(value: &Value) -> Value {
    let object = value.as_object().unwrap();
    let kind = builtin::kind(&Gvk::of(object).unwrap()).unwrap();
    let raw = protobuf::encode(&kind, object).unwrap();
    protobuf::decode(&kind, &raw).unwrap().into()
}

fn without_zeros(value: Value) -> Value {
    match value {
        Value::Array(items) => items.into_iter().map(without_zeros).collect(),
        Value::Object(object) => {
            let absent = |value: &Value| {
                value.is_null() || *value == "0" || value.as_array().is_some_and(Vec::is_empty)
            };
            let members = object.into_iter().filter(|(_, value)| !absent(value));
            Value::Object(members.map(|(name, value)| (name, without_zeros(value))).collect())
        }
        scalar => scalar,
    }
}

/// Annotations that hold JSON, decoded: spelling is not part of it, nor the zeros, nulls and empty lists that
/// stand for absence there.
fn comparable(value: &Value) -> Value {
    let mut value = typed(value);
    let annotations = value["metadata"]["annotations"].as_object_mut().into_iter().flatten();
    for (_, text) in annotations.filter(|(name, _)| name.starts_with("autoscaling.alpha.kubernetes.io/")) {
        *text = without_zeros(serde_json::from_str(text.as_str().unwrap()).unwrap());
    }
    value
}

/// Upstream's conversions of random objects; `tests/upstream/defaults/conversions` makes them.
#[test]
fn as_upstream_converts() {
    #[derive(serde::Deserialize)]
    struct Line {
        from: Value,
        to: Value,
        back: Value,
    }
    let mut count = 0;
    for line in include_str!("../../src/kinds/behavior/conversion/upstream.jsonl").lines() {
        let Line { from, to, back } = serde_json::from_str(line).unwrap();
        let claimed = |value: &Value| Gvk::of(value.as_object().unwrap()).unwrap();
        let (here, there) = (claimed(&from), claimed(&to));
        let converted = convert(&from, here.clone(), there.api_version());
        assert_eq!(comparable(&converted), comparable(&to), "{from}");
        assert_eq!(comparable(&convert(&to, there, here.api_version())), comparable(&back), "{to}");
        count += 1;
    }
    assert_eq!(count, 80);
}
