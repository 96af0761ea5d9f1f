//! Tests of `kinds::behavior::gated_fields`.

use rowplane_objects::kinds::behavior::gated_fields::drop_unused;
use rowplane_objects::kinds::built_in::any_version;
use rowplane_values::tree::{Value, json};

fn dropped(group: &str, kind: &str, new: Value, old: Option<Value>) -> Value {
    let object = |value: Value| value.as_object().expect("an object").clone();
    let mut new = object(new);
    drop_unused(any_version(group, kind).strategy.gated_fields, &mut new, old.map(object).as_ref());
    new.into()
}

fn taken_out(group: &str, kind: &str, new: Value, want: Value) {
    assert_eq!(dropped(group, kind, new.clone(), None), want, "create of a {kind}");
    assert_eq!(dropped(group, kind, new.clone(), Some(want.clone())), want, "update of a {kind}");
    assert_eq!(dropped(group, kind, new.clone(), Some(new.clone())), new, "update of a {kind} that has it");
    assert_eq!(dropped(group, kind, want.clone(), Some(new)), want, "update that takes it out of a {kind}");
}

/// Every closed field of a pod, beside one that is open.
fn pod() -> (Value, Value) {
    let container = |closed: bool| {
        let probe = |closed: bool| {
            if closed {
                json!({"httpGet": {"port": 80, "protocol": "HTTP2"}, "grpc": {"port": 81, "mode": "TLS"}})
            } else {
                json!({"httpGet": {"port": 80}, "grpc": {"port": 81}})
            }
        };
        let mut container = json!({
            "name": "a",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": probe(closed),
            "readinessProbe": probe(closed),
            "startupProbe": probe(closed),
            "lifecycle": {"preStop": {"httpGet": {"port": 80}}, "postStart": {"httpGet": {"port": 80}}},
        });
        if closed {
            container["volumeMounts"][0]["bindMountOptions"] = json!(["noexec"]);
            container["lifecycle"]["stopSignal"] = "SIGUSR1".into();
            container["lifecycle"]["preStop"]["httpGet"]["protocol"] = "HTTP1".into();
            container["lifecycle"]["postStart"]["httpGet"]["protocol"] = "HTTP1".into();
        }
        container
    };
    let files = |closed: bool| match closed {
        true => json!({"defaultUser": 1, "items": [{"path": "p", "user": 2}]}),
        false => json!({"items": [{"path": "p"}]}),
    };
    let user = |closed: bool| if closed { json!({"path": "p", "user": 3}) } else { json!({"path": "p"}) };
    let items = |closed: bool| json!({"items": [user(closed)]});
    let spec = |closed: bool| {
        let mut projected = json!({"sources": [{
            "configMap": items(closed),
            "secret": items(closed),
            "downwardAPI": items(closed),
            "serviceAccountToken": user(closed),
            "clusterTrustBundle": user(closed),
            "podCertificate": user(closed),
        }]});
        let mut empty = json!({"medium": "Memory"});
        if closed {
            projected["defaultUser"] = 4.into();
            empty["mode"] = 448.into();
        }
        let mut spec = json!({
            "containers": [container(closed)],
            "initContainers": [container(closed)],
            "ephemeralContainers": [container(closed)],
            "volumes": [
                {"name": "a", "emptyDir": empty},
                {"name": "b", "configMap": files(closed)},
                {"name": "c", "secret": files(closed)},
                {"name": "d", "downwardAPI": files(closed)},
                {"name": "e", "projected": projected},
            ],
        });
        if closed {
            spec["schedulingGroup"] = json!({"podGroupName": "g"});
            spec["evictionResponders"] = json!([{"name": "example.com/r", "priority": 1}]);
        }
        spec
    };
    (spec(true), spec(false))
}

#[test]
fn pods_and_templates_lose_what_is_closed() {
    let (new, want) = pod();
    taken_out("", "Pod", json!({"spec": new}), json!({"spec": want}));
    let template = |spec: &Value| json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": spec}});
    taken_out("", "PodTemplate", template(&new), template(&want));
    for (group, kind) in [
        ("", "ReplicationController"),
        ("apps", "DaemonSet"),
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("batch", "Job"),
    ] {
        taken_out(group, kind, json!({"spec": template(&new)}), json!({"spec": template(&want)}));
    }
    let job = |spec: &Value, scheduled: bool| {
        let mut job = template(spec);
        if scheduled {
            job["scheduling"] = json!({"schedulingPolicy": {"basic": {}}});
        }
        job
    };
    taken_out("batch", "Job", json!({"spec": job(&want, true)}), json!({"spec": job(&want, false)}));
    let cron = |job: Value| json!({"spec": {"schedule": "@daily", "jobTemplate": {"spec": job}}});
    taken_out("batch", "CronJob", cron(job(&new, true)), cron(job(&want, false)));
}

#[test]
fn a_signal_was_all_of_a_lifecycle() {
    let pod = |container: Value| json!({"spec": {"containers": [container]}});
    let signal = json!({"name": "a", "lifecycle": {"stopSignal": "SIGTERM"}});
    taken_out("", "Pod", pod(signal), pod(json!({"name": "a"})));
    let empty = pod(json!({"name": "a", "lifecycle": {}}));
    assert_eq!(dropped("", "Pod", empty.clone(), None), empty);
}

#[test]
fn a_feature_in_use_is_open_everywhere_and_no_other_is() {
    let pod = |volumes: Value| json!({"spec": {"containers": [], "volumes": volumes}});
    let old = pod(json!([{"name": "a", "secret": {"defaultUser": 1}}]));
    let new = pod(json!([{"name": "a", "configMap": {"items": [{"user": 2}]}, "emptyDir": {"mode": 448}}]));
    let want = pod(json!([{"name": "a", "configMap": {"items": [{"user": 2}]}, "emptyDir": {}}]));
    assert_eq!(dropped("", "Pod", new, Some(old)), want);
    let lease = |spec: Value| json!({"spec": spec});
    let both = lease(json!({"strategy": "OldestEmulationVersion", "preferredHolder": "a"}));
    let one = lease(json!({"strategy": "OldestEmulationVersion"}));
    taken_out("coordination.k8s.io", "Lease", both.clone(), lease(json!({})));
    assert_eq!(dropped("coordination.k8s.io", "Lease", both, Some(one.clone())), one);
}

#[test]
fn other_kinds_lose_what_is_closed() {
    taken_out(
        "",
        "Node",
        json!({"spec": {"podCIDR": "10.0.0.0/24", "podPreemptionPolicy": {"disableResizePreemption": ["a.com/b"]}}}),
        json!({"spec": {"podCIDR": "10.0.0.0/24"}}),
    );
    taken_out(
        "",
        "PersistentVolumeClaim",
        json!({"status": {"phase": "Bound", "healthStatus": {"healthConditions": []}}}),
        json!({"status": {"phase": "Bound"}}),
    );
    taken_out(
        "storage.k8s.io",
        "CSINode",
        json!({"status": {"storageHealth": [{"name": "d"}]}}),
        json!({"status": {}}),
    );
    let mount = |mount: Value| json!([{"name": "a", "volumeMounts": [mount]}]);
    let image = mount(json!({"name": "v", "volumeStatus": {"image": {"imageRef": "r"}}}));
    let none = mount(json!({"name": "v"}));
    taken_out(
        "",
        "Pod",
        json!({"status": {
            "containerStatuses": image, "initContainerStatuses": image, "ephemeralContainerStatuses": image,
            "nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}],
            "volumeHealth": [{"name": "v"}],
        }}),
        json!({"status": {
            "containerStatuses": none, "initContainerStatuses": none, "ephemeralContainerStatuses": none,
        }}),
    );
}

#[test]
fn devices_lose_what_is_closed() {
    taken_out(
        "resource.k8s.io",
        "ResourceSlice",
        json!({"spec": {
            "driver": "d.example.com",
            "partitionTypeAttribute": "d.example.com/profile",
            "skipNodeOperations": ["*"],
            "devices": [{
                "name": "a",
                "attributes": {"x": {"int": 1}, "y": {"ints": [1]}, "z": {"bools": [true], "strings": ["s"], "versions": ["1.0.0"]}},
                "consumesCounters": [{"counterSet": "s", "compatibilityGroups": ["g"]}],
                "nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "8"}}},
            }],
        }}),
        json!({"spec": {
            "driver": "d.example.com",
            "devices": [{
                "name": "a",
                "attributes": {"x": {"int": 1}, "y": {}, "z": {}},
                "consumesCounters": [{"counterSet": "s"}],
            }],
        }}),
    );
    let derived = json!([{"name": "derived/x", "expression": "1"}]);
    let spec = |exactly: Value| {
        json!({"devices": {"requests": [
            {"name": "a", "exactly": exactly},
            {"name": "b", "firstAvailable": [exactly]},
        ]}})
    };
    let new = spec(json!({"deviceClassName": "c", "derivedAttributes": derived}));
    let want = spec(json!({"deviceClassName": "c"}));
    taken_out("resource.k8s.io", "ResourceClaim", json!({"spec": new}), json!({"spec": want}));
    taken_out(
        "resource.k8s.io",
        "ResourceClaimTemplate",
        json!({"spec": {"spec": new}}),
        json!({"spec": {"spec": want}}),
    );
    let status = |result: Value| json!({"status": {"allocation": {"devices": {"results": [result]}}}});
    taken_out(
        "resource.k8s.io",
        "ResourceClaim",
        status(json!({"request": "a", "skipNodeOperations": ["*"]})),
        status(json!({"request": "a"})),
    );
}

#[test]
fn wrong_types_count_as_absent() {
    for odd in [json!({"spec": 1}), json!({"spec": {"containers": "x", "volumes": {"a": [1]}}}), json!({})] {
        assert_eq!(dropped("", "Pod", odd.clone(), None), odd);
    }
    let null = json!({"spec": {"schedulingGroup": null}});
    assert_eq!(dropped("", "Pod", null.clone(), None), null);
}
