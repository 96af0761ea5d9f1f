//! Controllers of pods, their autoscalers and their volumes.

use rowplane_values::tree::{Value, json};

use super::{HOUR_AGO, assert_cells};

fn template() -> Value {
    json!({"metadata": {"labels": {"b": "2", "a": "1"}}, "spec": {
        "containers": [{"name": "c", "image": "i"}, {"name": "d", "image": "j"}], "nodeSelector": {"os": "linux"}}})
}

#[test]
fn controllers() {
    let spec = json!({"replicas": 3, "template": template(), "selector": {"matchLabels": {"app": "web"}}});
    let status = json!({"replicas": 2, "readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1});
    let object = json!({"spec": spec, "status": status});
    assert_cells(
        "apps",
        "ReplicaSet",
        &[(object.clone(), json!(["x", 3, 2, 1, "60m", "c,d", "i,j", "app=web"]))],
    );
    assert_cells("apps", "StatefulSet", &[(object.clone(), json!(["x", "1/3", "60m", "c,d", "i,j"]))]);
    assert_cells(
        "apps",
        "Deployment",
        &[
            (object, json!(["x", "1/3", 2, 1, "60m", "c,d", "i,j", "app=web"])),
            (json!({"spec": {"replicas": 0}}), json!(["x", "0/0", 0, 0, "60m", "", "", ""])),
            (
                json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "?"}]}}}),
                json!(["x", "0/0", 0, 0, "60m", "", "", "<invalid>"]),
            ),
        ],
    );
    assert_cells(
        "",
        "ReplicationController",
        &[(
            json!({"spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}}),
            json!(["x", 1, 0, 0, "60m", "", "", "a=1,b=2"]),
        )],
    );
    assert_cells(
        "",
        "PodTemplate",
        &[(json!({"template": template()}), json!(["x", "c,d", "i,j", "a=1,b=2"]))],
    );
}

#[test]
fn daemon_sets() {
    let status = json!({"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
        "updatedNumberScheduled": 2, "numberAvailable": 1});
    assert_cells(
        "apps",
        "DaemonSet",
        &[(
            json!({"spec": {"template": template(), "selector": {}}, "status": status}),
            json!(["x", 5, 4, 3, 2, 1, "os=linux", "60m", "c,d", "i,j", "<none>"]),
        )],
    );
}

#[test]
fn controller_revisions() {
    let owned = |api_version: &str| {
        json!({"revision": 4, "metadata": {"ownerReferences": [{"kind": "Other", "name": "o"},
            {"apiVersion": api_version, "kind": "StatefulSet", "name": "web", "controller": true}]}})
    };
    assert_cells(
        "apps",
        "ControllerRevision",
        &[
            (owned("apps/v1"), json!(["x", "statefulset.apps/web", 4, "60m"])),
            (owned("v1"), json!(["x", "statefulset/web", 4, "60m"])),
            (json!({}), json!(["x", "<none>", 0, "60m"])),
        ],
    );
}

#[test]
fn jobs() {
    let job = |spec: Value, status: Value| json!({"spec": spec, "status": status});
    let status = |conditions: Value| json!({"succeeded": 1, "startTime": HOUR_AGO, "conditions": conditions});
    let is = |type_: &str| json!({"type": type_, "status": "True"});
    let cells = |status: &str, completions: &str, duration: &str| {
        json!(["x", status, completions, duration, "60m", "", "", "<none>"])
    };
    assert_cells(
        "batch",
        "Job",
        &[
            (job(json!({}), json!({})), cells("Running", "0/1", "")),
            (job(json!({"parallelism": 3}), status(json!([]))), cells("Running", "1/1 of 3", "60m")),
            (
                job(json!({"completions": 2}), status(json!([is("SuccessCriteriaMet")]))),
                cells("SuccessCriteriaMet", "1/2", "60m"),
            ),
            (
                job(json!({}), status(json!([is("FailureTarget"), is("Suspended")]))),
                cells("Suspended", "1/1", "60m"),
            ),
            (job(json!({}), status(json!([is("Failed"), is("Complete")]))), cells("Complete", "1/1", "60m")),
            (
                job(json!({}), json!({"startTime": HOUR_AGO, "completionTime": "2026-07-01T11:01:30Z"})),
                cells("Running", "0/1", "90s"),
            ),
            (
                json!({"metadata": {"deletionTimestamp": HOUR_AGO}, "status": status(json!([is("Suspended")]))}),
                cells("Terminating", "1/1", "60m"),
            ),
        ],
    );
}

#[test]
fn cron_jobs() {
    let spec = json!({"schedule": "* * * * *", "timeZone": "Etc/UTC", "suspend": false,
        "jobTemplate": {"spec": {"template": template()}}});
    assert_cells(
        "batch",
        "CronJob",
        &[
            (
                json!({"spec": spec, "status": {"active": [{}, {}], "lastScheduleTime": "2026-07-01T11:59:30Z"}}),
                json!(["x", "* * * * *", "Etc/UTC", "False", 2, "30s", "60m", "c,d", "i,j", "<none>"]),
            ),
            (json!({}), json!(["x", "", "<none>", "<unset>", 0, "<none>", "60m", "", "", "<none>"])),
        ],
    );
}

#[test]
fn autoscalers() {
    let autoscaler = |metrics: Value, current: Value| {
        json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}, "minReplicas": 1, "maxReplicas": 5,
            "metrics": metrics}, "status": {"currentReplicas": 2, "currentMetrics": current}})
    };
    let cells = |targets: &str| json!(["x", "Deployment/web", targets, "1", 5, 2, "60m"]);
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 80}}});
    let memory = json!({"type": "ContainerResource", "containerResource": {"name": "memory", "target": {"averageValue": "1Gi"}}});
    let pods = json!({"type": "Pods", "pods": {"target": {"averageValue": "10"}}});
    let external = json!({"type": "External", "external": {"target": {"averageValue": "7"}}});
    let object = json!({"type": "Object", "object": {"target": {"value": "9"}}});
    assert_cells(
        "autoscaling",
        "HorizontalPodAutoscaler",
        &[
            (autoscaler(json!([]), json!([])), cells("<none>")),
            (autoscaler(json!([cpu]), json!([])), cells("cpu: <unknown>/80%")),
            (
                autoscaler(
                    json!([cpu, memory]),
                    json!([
                        {"resource": {"current": {"averageUtilization": 41}}},
                        {"containerResource": {"current": {"averageValue": "512Mi"}}},
                    ]),
                ),
                cells("cpu: 41%/80%, memory: 512Mi/1Gi"),
            ),
            (
                autoscaler(
                    json!([external, object]),
                    json!([
                        {"external": {"current": {"averageValue": "3"}}}, {"object": {"current": {"value": "4"}}},
                    ]),
                ),
                cells("3/7 (avg), 4/9"),
            ),
            (
                autoscaler(json!([pods, cpu, memory]), json!([])),
                cells("<unknown>/10, cpu: <unknown>/80% + 1 more..."),
            ),
            (autoscaler(json!([{"type": "Moon"}]), json!([])), cells("<unknown type>")),
            (
                json!({"spec": {"targetCPUUtilizationPercentage": 70}, "status": {"currentCPUUtilizationPercentage": 7}}),
                json!(["x", "/", "cpu: 7%/70%", "<unset>", 0, 0, "60m"]),
            ),
        ],
    );
}

#[test]
fn volumes_and_claims() {
    let volume = json!({"spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain", "claimRef": {"namespace": "ns", "name": "c"},
        "storageClassName": "fast", "volumeMode": "Block"}, "status": {"phase": "Bound"}});
    assert_cells(
        "",
        "PersistentVolume",
        &[
            (
                volume,
                json!([
                    "x", "5Gi", "RWO,RWX", "Retain", "Bound", "ns/c", "fast", "<unset>", "", "60m", "Block"
                ]),
            ),
            (
                json!({"metadata": {"deletionTimestamp": HOUR_AGO, "annotations": {
                "volume.beta.kubernetes.io/storage-class": "old"}}, "spec": {"storageClassName": "new"}}),
                json!(["x", "0", "", "", "Terminating", "", "old", "<unset>", "", "60m", "<unset>"]),
            ),
        ],
    );
    let status =
        json!({"phase": "Bound", "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOncePod"]});
    assert_cells(
        "",
        "PersistentVolumeClaim",
        &[
            (
                json!({"spec": {"volumeName": "v", "volumeAttributesClassName": "gold"}, "status": status}),
                json!(["x", "Bound", "v", "5Gi", "RWOP", "", "gold", "60m", "<unset>"]),
            ),
            (json!({"status": status}), json!(["x", "Bound", "", "", "", "", "<unset>", "60m", "<unset>"])),
        ],
    );
}
