//! Tests of `kinds::behavior::strategy`.

use rowplane_objects::fields::ObjectMap;
use rowplane_objects::kinds::behavior::names::NameFormat;
use rowplane_objects::kinds::behavior::part::Part;
use rowplane_objects::kinds::behavior::strategy::status::StatusRule;
use rowplane_objects::kinds::behavior::strategy::{Strategy, Writer};
use rowplane_objects::kinds::built_in::{self, behavior};
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::resource::{Nature, ResourceDefinition, Storage, Subresource, Verb};
use rowplane_objects::user::User;
use rowplane_objects::warnings::Warnings;
use rowplane_values::tree::{Value, json};

const NOW: &str = "2026-07-01T10:00:00Z";

fn definition(group: &str, kind: &str) -> ResourceDefinition {
    let all = built_in::definitions();
    all.into_iter().rev().find(|d| d.group().as_str() == group && d.kind_name().as_str() == kind).unwrap()
}

fn strategy(group: &str, kind: &str) -> Strategy {
    behavior(&definition(group, kind)).strategy
}

fn custom(status: bool) -> Strategy {
    let mut definition = definition("apps", "Deployment");
    definition.kind = Kind::opaque(Gvk::fixed("example.com/v1", "Widget"));
    let subresource =
        Subresource { name: "status".into(), verbs: vec![Verb::Update], kind: None, nature: Nature::Object };
    definition.subresources = if status { vec![subresource] } else { vec![] };
    behavior(&definition).strategy
}

fn object(value: Value) -> ObjectMap {
    value.as_object().unwrap().clone()
}

fn user() -> User {
    User { name: "alice".into(), groups: vec!["devs".into()], ..User::default() }
}

fn created(group: &str, kind: &str, value: Value) -> Value {
    let mut object = object(value);
    strategy(group, kind)
        .prepare_create(&mut object, &Writer { user: &user(), warnings: &Warnings::default(), now: NOW });
    object.into()
}

fn updated(strategy: Strategy, new: Value, old: Value) -> Value {
    let mut new = object(new);
    strategy.prepare_update(
        &mut new,
        &object(old),
        &Writer { user: &user(), warnings: &Warnings::default(), now: NOW },
    );
    new.into()
}

fn status_updated(strategy: Strategy, new: Value, old: Value) -> Value {
    let mut new = object(new);
    strategy.prepare_status_update(
        &mut new,
        &object(old),
        &Writer { user: &user(), warnings: &Warnings::default(), now: NOW },
    );
    new.into()
}

#[test]
fn creation() {
    let cases = [
        (("", "ConfigMap"), json!({"metadata": {"generation": 7}}), json!({"metadata": {"generation": 7}})),
        (
            ("apps", "Deployment"),
            json!({"status": {"replicas": 9}}),
            json!({"metadata": {"generation": 1}, "status": {}}),
        ),
        (
            ("", "Node"),
            json!({"status": {"capacity": {"cpu": "1"}}}),
            json!({"status": {"capacity": {"cpu": "1"}}}),
        ),
        (
            ("", "Namespace"),
            json!({"metadata": {"name": "n"}, "status": {"phase": "Terminating"}}),
            json!({
                "metadata": {"name": "n", "labels": {"kubernetes.io/metadata.name": "n"}},
                "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
            }),
        ),
        (
            ("", "Namespace"),
            json!({"spec": {"finalizers": ["a"]}}),
            json!({"spec": {"finalizers": ["a", "kubernetes"]}, "status": {"phase": "Active"}}),
        ),
        (
            ("", "Pod"),
            json!({"spec": {}, "status": {"phase": "Running"}}),
            json!({"metadata": {"generation": 1}, "spec": {}, "status": {"phase": "Pending", "qosClass": "BestEffort"}}),
        ),
        (
            ("", "PersistentVolume"),
            json!({}),
            json!({"status": {"phase": "Pending", "lastPhaseTransitionTime": NOW}}),
        ),
        (
            ("certificates.k8s.io", "CertificateSigningRequest"),
            json!({"spec": {"username": "root", "uid": "0", "extra": {"a": []}}, "status": {"certificate": "x"}}),
            json!({"spec": {"username": "alice", "groups": ["devs"]}, "status": {}}),
        ),
        (("", "Pod"), json!({"spec": 3, "status": "x", "metadata": []}), {
            json!({"spec": 3, "metadata": {"generation": 1}, "status": {"phase": "Pending", "qosClass": "BestEffort"}})
        }),
    ];
    for ((group, kind), sent, want) in cases {
        assert_eq!(created(group, kind, sent), want, "{kind}");
    }
}

#[test]
fn jobs_get_a_selector() {
    let job = created("batch", "Job", json!({"metadata": {"name": "j", "uid": "u"}}));
    let uid = "batch.kubernetes.io/controller-uid";
    assert_eq!(job["spec"]["selector"], json!({"matchLabels": {uid: "u"}}));
    assert_eq!(
        job["spec"]["template"]["metadata"]["labels"],
        json!({"job-name": "j", "controller-uid": "u", "batch.kubernetes.io/job-name": "j", uid: "u"})
    );
    assert_eq!(
        created("batch", "Job", json!({"spec": {"manualSelector": true}}))["spec"]["selector"],
        json!(null)
    );
}

#[test]
fn definitions_remember_the_stored_version() {
    let strategy = strategy("apiextensions.k8s.io", "CustomResourceDefinition");
    let spec = json!({"versions": [{"name": "v1"}, {"name": "v2", "storage": true}]});
    let sent = json!({"spec": spec, "status": {}});
    let stored = json!({"spec": spec, "status": {"storedVersions": ["v1"]}, "metadata": {"generation": 1}});
    let after = updated(strategy, sent, stored);
    assert_eq!(after["status"]["storedVersions"], json!(["v1", "v2"]));
    assert_eq!(after["metadata"]["generation"], 1);
}

#[test]
fn generations() {
    let deployment = strategy("apps", "Deployment");
    let old = || json!({"metadata": {"generation": 3}, "spec": {"a": 1, "list": []}, "status": {"b": 1}});
    let cases = [
        (deployment, json!({"spec": {"a": 1}, "status": {"b": 2}}), 3),
        (deployment, json!({"spec": {"a": 2}}), 4),
        (deployment, json!({"spec": {"a": 1, "c": {}}}), 4),
        (deployment, json!({"metadata": {"generation": 9, "labels": {"a": "b"}}, "spec": {"a": 1}}), 3),
        (deployment, json!({"metadata": {"annotations": {}}, "spec": {"a": 1}}), 3),
        (deployment, json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"a": 1}}), 4),
        (
            strategy("apps", "ReplicaSet"),
            json!({"metadata": {"annotations": {"a": "b"}}, "spec": {"a": 1}}),
            3,
        ),
        (
            strategy("discovery.k8s.io", "EndpointSlice"),
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"a": 1}, "status": {"b": 1}}),
            4,
        ),
        (strategy("scheduling.k8s.io", "PriorityClass"), json!({"spec": {"a": 2}}), 3),
        (strategy("", "ConfigMap"), json!({"spec": {"a": 2}}), 3),
        (custom(true), json!({"spec": {"a": 1, "list": []}, "status": {"b": 2}}), 3),
        (custom(false), json!({"spec": {"a": 1, "list": []}, "status": {"b": 2}}), 4),
        (custom(true), json!({"spec": {"a": 1}}), 4),
    ];
    for (strategy, new, want) in cases {
        let text = new.to_string();
        assert_eq!(updated(strategy, new, old())["metadata"]["generation"], want, "{text}");
    }
}

#[test]
fn daemon_sets_count_their_templates() {
    let strategy = strategy("apps", "DaemonSet");
    let key = "deprecated.daemonset.template.generation";
    let old = created("apps", "DaemonSet", json!({"spec": {"template": {"a": 1}}}));
    assert_eq!(old["metadata"]["annotations"], json!({key: "1"}));
    let same = updated(strategy, json!({"spec": {"template": {"a": 1}}}), old.clone());
    assert_eq!(same, old);
    let changed = updated(strategy, json!({"spec": {"template": {"a": 2}}}), old);
    assert_eq!(changed["metadata"], json!({"generation": 2, "annotations": {key: "2"}}));
}

#[test]
fn main_updates_keep_the_status() {
    let old =
        || json!({"metadata": {"name": "n"}, "spec": {"finalizers": ["kubernetes"]}, "status": {"a": 1}});
    let namespace =
        updated(strategy("", "Namespace"), json!({"metadata": {"name": "n"}, "status": {}}), old());
    assert_eq!(namespace["status"], json!({"a": 1}));
    assert_eq!(namespace["spec"], json!({"finalizers": ["kubernetes"]}));
    assert_eq!(updated(strategy("", "Node"), json!({"status": {}}), old())["status"], json!({"a": 1}));
    assert_eq!(updated(custom(true), json!({"status": {}}), json!({})), json!({"metadata": {}}));
    assert_eq!(updated(strategy("", "ConfigMap"), json!({"status": {}}), old())["status"], json!({}));
}

#[test]
fn status_updates_keep_the_rest() {
    let new = || {
        json!({
            "metadata": {"name": "n", "labels": {"a": "new"}, "finalizers": ["new"], "ownerReferences": ["new"],
                "generation": 9, "resourceVersion": "5", "managedFields": ["new"]},
            "spec": "new", "more": "new", "status": "new",
        })
    };
    let old = || {
        json!({
            "metadata": {"name": "n", "labels": {"a": "old"}, "generation": 2, "resourceVersion": "5",
                "annotations": {"a": "old"}, "managedFields": ["old"]},
            "spec": "old", "status": "old",
        })
    };
    let metadata = |labels: &str, finalizers: bool, owners: bool, annotations: bool| {
        let mut metadata = json!({"name": "n", "labels": {"a": labels}, "generation": 2,
            "resourceVersion": "5", "managedFields": ["new"]});
        for (field, value, present) in [
            ("finalizers", json!(["new"]), finalizers),
            ("ownerReferences", json!(["new"]), owners),
            ("annotations", json!({"a": "old"}), annotations),
        ] {
            if present {
                metadata[field] = value;
            }
        }
        metadata
    };
    let cases = [
        (strategy("apps", "ReplicaSet"), metadata("new", true, true, false)),
        (strategy("apps", "Deployment"), metadata("old", true, true, false)),
        (strategy("resource.k8s.io", "ResourceClaim"), metadata("old", false, false, true)),
        (custom(true), metadata("old", false, false, true)),
    ];
    for (strategy, metadata) in cases {
        let want = json!({"metadata": metadata, "spec": "old", "status": "new"});
        assert_eq!(status_updated(strategy, new(), old()), want, "{strategy:?}");
    }
    let pod = status_updated(strategy("", "Pod"), json!({"status": {"conditions": [{"type": "A"}]}}), {
        json!({"status": {"qosClass": "Burstable", "observedGeneration": 3,
            "conditions": [{"type": "A", "observedGeneration": 2}]}})
    });
    assert_eq!(
        pod["status"],
        json!({"conditions": [{"type": "A", "observedGeneration": 2}], "qosClass": "Burstable", "observedGeneration": 3})
    );
}

#[test]
fn nobody_approves_through_the_status() {
    let strategy = strategy("certificates.k8s.io", "CertificateSigningRequest");
    let conditions = |sent: Value, stored: Value| {
        let new = json!({"status": {"conditions": sent}});
        status_updated(strategy, new, json!({"status": {"conditions": stored}}))["status"]["conditions"]
            .clone()
    };
    let condition = |kind: &str| {
        let at = "2001-01-01T00:00:00Z";
        json!({"type": kind, "lastUpdateTime": at, "lastTransitionTime": at})
    };
    let (approved, failed) = (condition("Approved"), condition("Failed"));
    let mut reason = approved.clone();
    reason["reason"] = "another".into();
    assert_eq!(conditions(json!([failed, reason]), json!([approved])), json!([failed, approved]));
    // What is more or less is left to validation, which refuses it.
    assert_eq!(conditions(json!([approved, failed]), json!(null)), json!([approved, failed]));
    assert_eq!(conditions(json!([failed]), json!([approved])), json!([failed]));
}

#[test]
fn volumes_tell_when_they_moved() {
    let strategy = strategy("", "PersistentVolume");
    let old = || json!({"status": {"phase": "Pending", "lastPhaseTransitionTime": "then"}});
    let moved = status_updated(
        strategy,
        json!({"status": {"phase": "Bound", "lastPhaseTransitionTime": "then"}}),
        old(),
    );
    assert_eq!(moved["status"]["lastPhaseTransitionTime"], NOW);
    let same = status_updated(strategy, old(), old());
    assert_eq!(same["status"]["lastPhaseTransitionTime"], "then");
}

#[test]
fn finalizing() {
    let namespace = strategy("", "Namespace");
    let mut new = object(json!({"metadata": {}, "spec": {"finalizers": []}, "status": {"phase": "x"}}));
    let old = object(
        json!({"metadata": {}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"}}),
    );
    assert!(!namespace.finalized(&old));
    let writer = Writer { user: &user(), warnings: &Warnings::default(), now: NOW };
    namespace.prepare_part_update(Part::Finalize, &mut new, &old, &writer);
    assert_eq!(new["status"], json!({"phase": "Terminating"}));
    assert!(namespace.finalized(&new));
    assert!(strategy("", "Pod").finalized(&old));
}

#[test]
fn graceful_periods() {
    let pod = strategy("", "Pod");
    let running = json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}});
    let cases = [
        (running.clone(), None, 5),
        (running.clone(), Some(7), 7),
        (running, Some(-7), 1),
        (json!({"spec": {"nodeName": "n"}}), None, 30),
        (json!({"spec": {}}), Some(7), 0),
        (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Failed"}}), Some(7), 0),
        (json!({"spec": {"nodeName": "n"}, "status": {"phase": "Succeeded"}}), None, 0),
    ];
    for (value, requested, want) in cases {
        assert_eq!(pod.graceful_period(&object(value), requested), Some(want));
    }
    assert_eq!(strategy("", "Node").graceful_period(&ObjectMap::new(), Some(7)), None);
}

#[test]
fn names() {
    use NameFormat::{Dns1123Label, Dns1123Subdomain, OfRules, PathSegment};
    let cases = [
        ("rbac.authorization.k8s.io", "ClusterRole", PathSegment),
        ("apiregistration.k8s.io", "APIService", PathSegment),
        ("certificates.k8s.io", "ClusterTrustBundle", OfRules),
        ("networking.k8s.io", "IPAddress", OfRules),
        ("internal.apiserver.k8s.io", "StorageVersion", OfRules),
        ("", "Namespace", Dns1123Label),
        ("", "Service", Dns1123Label),
        ("", "Event", PathSegment),
        ("events.k8s.io", "Event", Dns1123Subdomain),
        ("", "Pod", Dns1123Subdomain),
    ];
    for (group, kind, want) in cases {
        assert_eq!(strategy(group, kind).names, want, "{kind}");
    }
    assert_eq!(custom(true).names, Dns1123Subdomain);
}

#[test]
fn every_status_text_is_json() {
    for definition in built_in::definitions() {
        if definition.storage == Storage::Virtual {
            continue;
        }
        if let StatusRule::Reset(text) = behavior(&definition).strategy.status {
            assert!(serde_json::from_str::<ObjectMap>(text).is_ok(), "{text}");
        }
    }
}

#[test]
fn the_time_of_a_devices_taint_is_that_of_its_effect() {
    let rule = |effect: &str, added: &str| json!({"spec": {"taint": {"key": "k", "effect": effect, "timeAdded": added}}});
    let (before, given) = ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z");
    for (effect, added, want) in [
        ("NoExecute", before, NOW),
        ("NoExecute", given, given),
        ("NoSchedule", before, before),
        ("NoSchedule", given, given),
    ] {
        let strategy = strategy("resource.k8s.io", "DeviceTaintRule");
        let new = updated(strategy, rule(effect, added), rule("NoSchedule", before));
        assert_eq!(new["spec"]["taint"]["timeAdded"], want, "{effect} {added}");
    }
}
