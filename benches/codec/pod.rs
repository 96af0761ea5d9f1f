//! A Pod as it is found in a busy cluster: made by a ReplicaSet, scheduled, running, and owned by three managers.

use rowplane::tree::{Map, Value, json};

/// About 5 KB of JSON with one container, about 14 KB with four.
pub fn pod(name: &str, containers: usize) -> Map {
    let containers: Vec<String> = (0..containers).map(|n| format!("server-{n}")).collect();
    let tolerations = ["not-ready", "unreachable"].map(|taint| {
        json!({"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            "key": format!("node.kubernetes.io/{taint}")})
    });
    let pod = json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata(name, &containers),
        "spec": {
            "volumes": [
                {"name": "config", "configMap": {"name": "web-settings", "defaultMode": 420}},
                {"name": "kube-api-access-x7k2p", "projected": {"defaultMode": 420, "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                ]}},
            ],
            "containers": containers.iter().map(|name| container(name)).collect::<Vec<_>>(),
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "web",
            "serviceAccount": "web",
            "nodeName": "worker-17.europe.example.com",
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "schedulerName": "default-scheduler",
            "tolerations": tolerations,
            "priority": 0,
            "enableServiceLinks": true,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": status(&containers),
    });
    let Value::Object(pod) = pod else { unreachable!("made as an object above") };
    pod
}

fn metadata(name: &str, containers: &[String]) -> Value {
    let applied: Map = containers
        .iter()
        .map(|name| {
            let fields =
                [".", "f:image", "f:imagePullPolicy", "f:name", "f:resources", "f:terminationMessagePath"];
            (format!("k:{{\"name\":\"{name}\"}}"), set(&fields))
        })
        .collect();
    let conditions: Map = CONDITIONS
        .iter()
        .map(|kind| {
            let fields = [".", "f:lastProbeTime", "f:lastTransitionTime", "f:status", "f:type"];
            (format!("k:{{\"type\":\"{kind}\"}}"), set(&fields))
        })
        .collect();
    let entry = |manager: &str, time: &str, fields: Value| {
        json!({"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    json!({
        "name": name,
        "generateName": "web-5d8c7b6f94-",
        "namespace": "default",
        "uid": "4f1e0d6c-2b7a-4c1f-9a57-0d1f8f7f3b11",
        "creationTimestamp": "2026-03-04T05:06:07Z",
        "labels": {"app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop",
            "pod-template-hash": "5d8c7b6f94"},
        "annotations": {"prometheus.io/port": "9090", "prometheus.io/scrape": "true"},
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d8c7b6f94",
            "uid": "9d3b6d0e-5a7b-4a0f-8f53-6f0a4f4b7a52", "controller": true, "blockOwnerDeletion": true}],
        "managedFields": [
            entry("kube-controller-manager", "2026-03-04T05:06:07Z", json!({
                "f:metadata": {"f:generateName": {}, "f:labels": set(&[".", "f:app.kubernetes.io/name"])},
                "f:spec": {"f:containers": applied, "f:dnsPolicy": {}, "f:restartPolicy": {}}})),
            entry("kubelet", "2026-03-04T05:06:21Z", json!({
                "f:status": {"f:conditions": conditions, "f:containerStatuses": {}, "f:hostIP": {}, "f:phase": {}}})),
        ],
    })
}

fn set(fields: &[&str]) -> Value {
    fields.iter().map(|field| ((*field).to_owned(), json!({}))).collect::<Map>().into()
}

fn container(name: &str) -> Value {
    let probe = |path: &str, period: u32| {
        json!({"httpGet": {"path": path, "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1,
            "periodSeconds": period, "successThreshold": 1, "failureThreshold": 3})
    };
    let from_field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    json!({
        "name": name,
        "image": format!("registry.example.com/shop/{name}:v1.42.7"),
        "args": ["--listen=:8080", "--metrics=:9090", "--log-level=info"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"},
            {"name": "metrics", "containerPort": 9090, "protocol": "TCP"}],
        "env": [from_field("POD_NAME", "metadata.name"), from_field("POD_IP", "status.podIP"),
            {"name": "DATABASE", "value": "postgres://shop@database.shop.svc.cluster.local/shop"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "database", "key": "password"}}}],
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
        "volumeMounts": [{"name": "config", "readOnly": true, "mountPath": "/etc/shop"},
            {"name": "kube-api-access-x7k2p", "readOnly": true,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "livenessProbe": probe("/healthz", 10),
        "readinessProbe": probe("/readyz", 5),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
        "securityContext": {"capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false},
    })
}

const CONDITIONS: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

fn status(containers: &[String]) -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastProbeTime": null, "lastTransitionTime": "2026-03-04T05:06:21Z"});
    let container = |name: &String| {
        let digest = "3f1c9b0a5de7420c8b5c0f7cf6a1e0d94b7a2c6be0c1f88d5a9e6b7c4d3f2e10";
        json!({"name": name, "state": {"running": {"startedAt": "2026-03-04T05:06:20Z"}}, "lastState": {}, "ready": true,
            "restartCount": 0, "image": format!("registry.example.com/shop/{name}:v1.42.7"),
            "imageID": format!("registry.example.com/shop/{name}@sha256:{digest}"),
            "containerID": format!("containerd://{digest}"), "started": true})
    };
    json!({
        "phase": "Running",
        "conditions": CONDITIONS.map(condition),
        "hostIP": "10.20.30.40",
        "hostIPs": [{"ip": "10.20.30.40"}],
        "podIP": "10.244.17.9",
        "podIPs": [{"ip": "10.244.17.9"}],
        "startTime": "2026-03-04T05:06:07Z",
        "containerStatuses": containers.iter().map(container).collect::<Vec<_>>(),
        "qosClass": "Burstable",
    })
}
