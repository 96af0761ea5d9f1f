//! Policies, certificates, storage drivers, devices and the API's own kinds.

use rowplane_values::tree::{Value, json};

use super::{HOUR_AGO, assert_cells};

#[test]
fn admission() {
    let group = "admissionregistration.k8s.io";
    assert_cells(
        group,
        "ValidatingWebhookConfiguration",
        &[(json!({"webhooks": [{}, {}]}), json!(["x", 2, "60m"]))],
    );
    assert_cells(
        group,
        "ValidatingAdmissionPolicy",
        &[
            (
                json!({"spec": {"validations": [{}], "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}}),
                json!(["x", 1, "v1/ConfigMap", "60m"]),
            ),
            (json!({}), json!(["x", 0, "<unset>", "60m"])),
        ],
    );
    assert_cells(
        group,
        "MutatingAdmissionPolicy",
        &[(json!({"spec": {"mutations": [{}]}}), json!(["x", 1, "<unset>", "60m"]))],
    );
    let binding = |param_ref: Value| json!({"spec": {"policyName": "p", "paramRef": param_ref}});
    assert_cells(
        group,
        "ValidatingAdmissionPolicyBinding",
        &[
            (binding(Value::Null), json!(["x", "p", "<unset>", "60m"])),
            (binding(json!({"name": "n"})), json!(["x", "p", "*/n", "60m"])),
            (binding(json!({"name": "n", "namespace": "ns"})), json!(["x", "p", "ns/n", "60m"])),
            (
                binding(json!({"selector": {}})),
                json!([
                    "x",
                    "p",
                    "&LabelSelector{MatchLabels:map[string]string{},MatchExpressions:[]LabelSelectorRequirement{},}",
                    "60m"
                ]),
            ),
        ],
    );
}

#[test]
fn bindings_of_roles() {
    let subjects = json!([{"kind": "User", "name": "u", "namespace": "no"}, {"kind": "Group", "name": "g"},
        {"kind": "ServiceAccount", "name": "s", "namespace": "ns"}, {"kind": "User", "name": "v"}]);
    assert_cells(
        "rbac.authorization.k8s.io",
        "RoleBinding",
        &[(
            json!({"roleRef": {"kind": "Role", "name": "r"}, "subjects": subjects}),
            json!(["x", "Role/r", "60m", "u, v", "g", "ns/s"]),
        )],
    );
}

#[test]
fn certificates() {
    let group = "certificates.k8s.io";
    let request = |conditions: Value, certificate: &str| {
        json!({"spec": {"signerName": "s", "username": "u", "expirationSeconds": 86400},
            "status": {"conditions": conditions, "certificate": certificate}})
    };
    let cells = |state: &str| json!(["x", "60m", "s", "u", "24h", state]);
    assert_cells(
        group,
        "CertificateSigningRequest",
        &[
            (request(json!([]), ""), cells("Pending")),
            (request(json!([{"type": "Approved"}]), "YQ=="), cells("Approved,Issued")),
            (
                request(json!([{"type": "Approved"}, {"type": "Denied"}, {"type": "Failed"}]), ""),
                cells("Denied,Failed"),
            ),
            (json!({}), json!(["x", "60m", "<none>", "", "<none>", "Pending"])),
        ],
    );
    assert_cells(group, "ClusterTrustBundle", &[(json!({}), json!(["x", "<none>"]))]);
    assert_cells(
        group,
        "PodCertificateRequest",
        &[(
            json!({"spec": {"podName": "p", "serviceAccountName": "s", "nodeName": "n", "signerName": "g"},
            "status": {"conditions": [{"type": "Issued"}, {"type": "Other"}]}}),
            json!(["x", "p", "s", "n", "g", "Issued"]),
        )],
    );
}

#[test]
fn storage() {
    let group = "storage.k8s.io";
    let default = json!({"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}});
    assert_cells(
        group,
        "StorageClass",
        &[
            (
                json!({"metadata": default, "provisioner": "p", "reclaimPolicy": "Retain", "allowVolumeExpansion": true,
                "volumeBindingMode": "WaitForFirstConsumer"}),
                json!(["x", "p", "Retain", "WaitForFirstConsumer", true, "60m"]),
            ),
            (json!({}), json!(["x", "", "Delete", "Immediate", false, "60m"])),
        ],
    );
    assert_cells(
        group,
        "CSIDriver",
        &[
            (json!({}), json!(["x", true, false, false, "<unset>", false, "<none>", "60m"])),
            (
                json!({"spec": {"attachRequired": false, "tokenRequests": [{"audience": "a"}, {"audience": "b"}],
                "volumeLifecycleModes": ["Persistent", "Ephemeral"]}}),
                json!(["x", false, false, false, "a,b", false, "Persistent,Ephemeral", "60m"]),
            ),
        ],
    );
    assert_cells(
        group,
        "VolumeAttachment",
        &[(
            json!({"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}, "status": {"attached": true}}),
            json!(["x", "a", "v", "n", true, "60m"]),
        )],
    );
}

#[test]
fn flow_control() {
    let group = "flowcontrol.apiserver.k8s.io";
    assert_cells(
        group,
        "FlowSchema",
        &[
            (
                json!({"spec": {"priorityLevelConfiguration": {"name": "pl"}, "matchingPrecedence": 5,
                "distinguisherMethod": {"type": "ByUser"}}, "status": {"conditions": [{"type": "Dangling", "status": "False"}]}}),
                json!(["x", "pl", 5, "ByUser", "60m", "False"]),
            ),
            (json!({}), json!(["x", "", 0, "<none>", "60m", "?"])),
        ],
    );
    let queuing = json!({"queues": 64, "handSize": 8, "queueLengthLimit": 50});
    assert_cells(
        group,
        "PriorityLevelConfiguration",
        &[
            (
                json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 30, "limitResponse": {"queuing": queuing}}}}),
                json!(["x", "Limited", 30, 64, 8, 50, "60m"]),
            ),
            (
                json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}}),
                json!(["x", "Limited", 0, "<none>", "<none>", "<none>", "60m"]),
            ),
            (
                json!({"spec": {"type": "Exempt"}}),
                json!(["x", "Exempt", "<none>", "<none>", "<none>", "<none>", "60m"]),
            ),
        ],
    );
}

#[test]
fn devices() {
    let claim = |deleting: bool, status: Value| {
        let metadata = if deleting { json!({"deletionTimestamp": HOUR_AGO}) } else { json!({}) };
        json!({"metadata": metadata, "status": status})
    };
    assert_cells(
        "resource.k8s.io",
        "ResourceClaim",
        &[
            (claim(false, json!({})), json!(["x", "pending", "60m"])),
            (claim(false, json!({"allocation": {}})), json!(["x", "allocated", "60m"])),
            (
                claim(false, json!({"allocation": {}, "reservedFor": [{}]})),
                json!(["x", "allocated,reserved", "60m"]),
            ),
            (claim(true, json!({})), json!(["x", "deleted", "60m"])),
            (
                claim(true, json!({"allocation": {}, "reservedFor": [{}]})),
                json!(["x", "deleted,allocated,reserved", "60m"]),
            ),
        ],
    );
    assert_cells(
        "resource.k8s.io",
        "DeviceTaintRule",
        &[
            (
                json!({"spec": {"taint": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": HOUR_AGO}}}),
                json!(["x", "k", "v", "NoExecute", "60m", "60m"]),
            ),
            (json!({}), json!(["x", "", "", "", "", "60m"])),
        ],
    );
}

#[test]
fn scheduling() {
    assert_cells(
        "policy",
        "PodDisruptionBudget",
        &[
            (
                json!({"spec": {"minAvailable": 2}, "status": {"disruptionsAllowed": 1}}),
                json!(["x", "2", "N/A", 1, "60m"]),
            ),
            (json!({"spec": {"maxUnavailable": "25%"}}), json!(["x", "N/A", "25%", 0, "60m"])),
        ],
    );
    assert_cells(
        "scheduling.k8s.io",
        "PriorityClass",
        &[(
            json!({"value": 1000, "globalDefault": true, "preemptionPolicy": "Never"}),
            json!(["x", 1000, true, "60m", "Never"]),
        )],
    );
}

#[test]
fn bookkeeping() {
    let service = |service: Value, condition: Value| json!({"spec": {"service": service}, "status": {"conditions": [condition]}});
    assert_cells(
        "apiregistration.k8s.io",
        "APIService",
        &[
            (
                service(Value::Null, json!({"type": "Available", "status": "True", "reason": "Local"})),
                json!(["x", "Local", "True", "60m"]),
            ),
            (
                service(
                    json!({"namespace": "ns", "name": "s"}),
                    json!({"type": "Available", "status": "False", "reason": "Gone"}),
                ),
                json!(["x", "ns/s", "False (Gone)", "60m"]),
            ),
            (json!({}), json!(["x", "Local", "Unknown", "60m"])),
        ],
    );
    assert_cells(
        "internal.apiserver.k8s.io",
        "StorageVersion",
        &[(
            json!({"status": {"storageVersions": [{"apiServerID": "a", "encodingVersion": "v1"}]}}),
            json!(["x", "<unset>", "a=v1", "60m"]),
        )],
    );
    assert_cells(
        "storagemigration.k8s.io",
        "StorageVersionMigration",
        &[
            (
                json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}}}),
                json!(["x", "deployments.apps", "Unknown"]),
            ),
            (
                json!({"spec": {"resource": {"resource": "pods"}}, "status": {"conditions": [
                    {"type": "Running", "status": "False"}, {"type": "Succeeded", "status": "True"},
                    {"type": "Other", "status": "True"}]}}),
                json!(["x", "pods.", "Succeeded"]),
            ),
        ],
    );
    let versions = json!([{"name": "v1beta1", "served": true}, {"name": "v1alpha1"}, {"name": "v1", "served": true, "storage": true}]);
    assert_cells(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        &[(
            json!({"spec": {"scope": "Namespaced", "group": "g", "versions": versions, "names": {"kind": "K", "shortNames": ["a", "b"]}},
            "status": {"conditions": [{"type": "Established", "status": "True"}]}}),
            json!(["x", "Namespaced", "v1(storage),v1beta1", HOUR_AGO, "g", "K", "a,b", true]),
        )],
    );
}
