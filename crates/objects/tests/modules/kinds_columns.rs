//! Cells of the columns of kinds: what holds for every kind here, single kinds in the submodules.

mod api_kinds;
mod pods;
mod small_kinds;
mod workloads;

use jiff::Timestamp;
use rowplane_objects::kinds::behavior::columns::{DEFAULT, Printer, TablePrinter};
use rowplane_objects::kinds::built_in;
use rowplane_values::tree::{Value, json};

fn built_in_printer(group: &str, kind: &str) -> &'static Printer {
    built_in::any_version(group, kind).columns
}

fn printer_for(group: &str, kind: &str) -> TablePrinter {
    TablePrinter::BuiltIn(built_in_printer(group, kind))
}

/// Every kind that has a printer of its own.
const KINDS: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "Event"),
    ("", "Namespace"),
    ("", "Node"),
    ("", "PersistentVolume"),
    ("", "PersistentVolumeClaim"),
    ("", "Pod"),
    ("", "PodTemplate"),
    ("", "ReplicationController"),
    ("", "ResourceQuota"),
    ("", "Secret"),
    ("", "Service"),
    ("", "ServiceAccount"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
    ("apiregistration.k8s.io", "APIService"),
    ("apps", "ControllerRevision"),
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("certificates.k8s.io", "CertificateSigningRequest"),
    ("certificates.k8s.io", "ClusterTrustBundle"),
    ("certificates.k8s.io", "PodCertificateRequest"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("events.k8s.io", "Event"),
    ("flowcontrol.apiserver.k8s.io", "FlowSchema"),
    ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"),
    ("internal.apiserver.k8s.io", "StorageVersion"),
    ("networking.k8s.io", "Ingress"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("node.k8s.io", "RuntimeClass"),
    ("policy", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("resource.k8s.io", "DeviceClass"),
    ("resource.k8s.io", "DeviceTaintRule"),
    ("resource.k8s.io", "ResourceClaim"),
    ("resource.k8s.io", "ResourceClaimTemplate"),
    ("resource.k8s.io", "ResourceSlice"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("networking.k8s.io", "IPAddress"),
    ("storage.k8s.io", "CSIDriver"),
    ("storage.k8s.io", "CSINode"),
    ("storage.k8s.io", "StorageClass"),
    ("storage.k8s.io", "VolumeAttachment"),
    ("storage.k8s.io", "VolumeAttributesClass"),
    ("storagemigration.k8s.io", "StorageVersionMigration"),
];

/// The moment at which all tests look at their objects.
fn now() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a timestamp")
}

/// Created one hour before [`now`].
const HOUR_AGO: &str = "2026-07-01T11:00:00Z";

/// Checks the cells of objects named `x` that are one hour old.
fn assert_cells(group: &str, kind: &str, cases: &[(Value, Value)]) {
    for (object, expected) in cases {
        let mut object = object.clone();
        let mut metadata = json!({"name": "x", "creationTimestamp": HOUR_AGO});
        if let (Value::Object(all), Some(own)) = (&mut metadata, object["metadata"].as_object()) {
            all.extend(own.clone());
        }
        object["metadata"] = metadata;
        let cells = printer_for(group, kind).cells(&object, now());
        assert_eq!(&Value::Array(cells), expected, "{kind}: {object}");
    }
}

#[test]
fn any_json_gives_a_cell_per_column() {
    for &(group, kind) in KINDS.iter().chain([&("", "LimitRange")]) {
        let printer = printer_for(group, kind);
        // Upstream's rows of IPAddress hold a cell more than there are columns.
        let width = built_in_printer(group, kind).columns.len() + usize::from(kind == "IPAddress");
        for object in hostile_objects() {
            assert_eq!(printer.cells(&object, now()).len(), width, "{kind}: {object}");
            printer.conditions(&object);
        }
    }
}

/// Objects whose every field that a printer reads has a wrong type, in several ways.
fn hostile_objects() -> Vec<Value> {
    let mut objects = vec![
        json!({}),
        json!(null),
        json!([1]),
        json!({"spec": 1, "status": [], "metadata": "x"}),
        json!({"metadata": {"name": 1, "creationTimestamp": {}, "labels": [], "ownerReferences": [1]}}),
    ];
    for filler in [
        json!([1]),
        json!([[]]),
        json!(["a", null]),
        json!({"a": 1}),
        json!("x"),
        json!(-1.5),
        json!(i64::MIN),
    ] {
        let fields = [
            "conditions",
            "containers",
            "initContainers",
            "containerStatuses",
            "initContainerStatuses",
            "ports",
            "rules",
            "metrics",
            "currentMetrics",
            "ingress",
            "addresses",
            "nodeInfo",
            "limited",
            "template",
            "selector",
            "podSelector",
            "paramRef",
            "parentRef",
            "scaleTargetRef",
            "claimRef",
            "capacity",
            "clusterIPs",
            "externalIPs",
            "loadBalancer",
            "readinessGates",
            "hard",
            "used",
            "versions",
            "names",
            "startTime",
            "replicas",
            "readyReplicas",
            "accessModes",
            "resource",
            "taint",
            "storageVersions",
        ];
        let half =
            Value::Object(fields.into_iter().map(|field| (field.to_owned(), filler.clone())).collect());
        let mut object =
            json!({"spec": half, "status": half, "metadata": half, "involvedObject": half, "series": half});
        for field in
            ["subsets", "endpoints", "subjects", "webhooks", "data", "conditions", "ports", "capacity"]
        {
            object[field] = filler.clone();
        }
        objects.push(object);
    }
    objects
}

#[test]
fn each_kind_has_one_name_column_first() {
    for &(group, kind) in KINDS.iter().chain([&("", "LimitRange")]) {
        let columns = built_in_printer(group, kind).columns;
        assert!(columns.iter().any(|column| column.name == "Name"), "{kind}");
        assert!(columns.iter().all(|column| !column.description.is_empty()), "{kind}");
        assert_eq!(columns[0].name == "Name", kind != "Event", "{kind}");
    }
}

#[test]
fn listed_kinds_have_printers_of_their_own() {
    for (group, kind) in KINDS {
        assert!(!std::ptr::eq(built_in_printer(group, kind), &DEFAULT), "{group}/{kind}");
    }
    assert!(std::ptr::eq(built_in_printer("", "LimitRange"), &DEFAULT));
}

#[test]
fn flow_schemas_are_listed_in_the_order_of_matching() {
    let schema = |name: &str, precedence: i64| json!({"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}});
    let schemas = [schema("c", 9), schema("b", 9), schema("z", 1)];
    let printer = printer_for("flowcontrol.apiserver.k8s.io", "FlowSchema");
    let order = printer.order().expect("FlowSchemas have an order");
    let mut sorted: Vec<&Value> = schemas.iter().collect();
    sorted.sort_by(|a, b| order(a, b));
    let names: Vec<&Value> = sorted.iter().map(|schema| &schema["metadata"]["name"]).collect();
    assert_eq!(names, ["z", "b", "c"]);
}
