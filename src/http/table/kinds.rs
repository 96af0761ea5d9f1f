//! Which built-in kind is printed how; upstream's `pkg/printers/internalversion` is the model.

mod admission;
mod apps;
mod autoscaling;
mod batch;
mod certificates;
mod config;
mod coordination;
mod discovery;
mod dynamic_resources;
mod event;
mod flowcontrol;
mod meta;
mod networking;
mod node;
mod pod;
mod rbac;
mod scheduling;
mod service;
mod storage;
mod volume;

use super::age;
use super::cell::{NAME, PLAIN, cells, date_column, name};
use super::{Column, EmptyRows, Printer};
use crate::tree::Value;

/// Roles, limit ranges, reviews and whatever else upstream has no printer for.
pub static DEFAULT: Printer = Printer {
    columns: &[NAME, CREATED_AT],
    cells: |object, _| cells![name(object), created_at(object)],
    empty: EmptyRows::Null,
    ..PLAIN
};

const CREATED_AT: Column = date_column("Created At", "When the object was created.");

/// The printer of a kind that has its own.
pub fn find(group: &str, kind: &str) -> Option<&'static Printer> {
    match group {
        "" => find_core(kind),
        "apps" => find_apps(kind),
        "batch" => find_batch(kind),
        "networking.k8s.io" => find_networking(kind),
        "storage.k8s.io" => find_storage(kind),
        "admissionregistration.k8s.io" => find_admission(kind),
        "resource.k8s.io" => find_dynamic_resources(kind),
        _ => find_in_small_group(group, kind),
    }
}

fn find_core(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "ComponentStatus" => &config::COMPONENT_STATUS,
        "ConfigMap" => &config::CONFIG_MAP,
        "Endpoints" => &discovery::ENDPOINTS,
        "Event" => &event::EVENT,
        "Namespace" => &config::NAMESPACE,
        "Node" => &node::NODE,
        "PersistentVolume" => &volume::PERSISTENT_VOLUME,
        "PersistentVolumeClaim" => &volume::PERSISTENT_VOLUME_CLAIM,
        "Pod" => &pod::POD,
        "PodTemplate" => &apps::POD_TEMPLATE,
        "ReplicationController" => &apps::REPLICATION_CONTROLLER,
        "ResourceQuota" => &config::RESOURCE_QUOTA,
        "Secret" => &config::SECRET,
        "Service" => &service::SERVICE,
        "ServiceAccount" => &config::SERVICE_ACCOUNT,
        _ => return None,
    })
}

fn find_apps(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "ControllerRevision" => &apps::CONTROLLER_REVISION,
        "DaemonSet" => &apps::DAEMON_SET,
        "Deployment" => &apps::DEPLOYMENT,
        "ReplicaSet" => &apps::REPLICA_SET,
        "StatefulSet" => &apps::STATEFUL_SET,
        _ => return None,
    })
}

fn find_batch(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "CronJob" => &batch::CRON_JOB,
        "Job" => &batch::JOB,
        _ => return None,
    })
}

fn find_networking(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "IPAddress" => &networking::IP_ADDRESS,
        "Ingress" => &networking::INGRESS,
        "IngressClass" => &networking::INGRESS_CLASS,
        "NetworkPolicy" => &networking::NETWORK_POLICY,
        "ServiceCIDR" => &networking::SERVICE_CIDR,
        _ => return None,
    })
}

fn find_storage(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "CSIDriver" => &storage::CSI_DRIVER,
        "CSINode" => &storage::CSI_NODE,
        "StorageClass" => &storage::STORAGE_CLASS,
        "VolumeAttachment" => &storage::VOLUME_ATTACHMENT,
        "VolumeAttributesClass" => &storage::VOLUME_ATTRIBUTES_CLASS,
        _ => return None,
    })
}

fn find_admission(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            &admission::WEBHOOK_CONFIGURATION
        }
        "MutatingAdmissionPolicy" => &admission::MUTATING_POLICY,
        "ValidatingAdmissionPolicy" => &admission::VALIDATING_POLICY,
        "MutatingAdmissionPolicyBinding" | "ValidatingAdmissionPolicyBinding" => &admission::POLICY_BINDING,
        _ => return None,
    })
}

fn find_dynamic_resources(kind: &str) -> Option<&'static Printer> {
    Some(match kind {
        "DeviceClass" | "ResourceClaimTemplate" => &dynamic_resources::NAME_AND_AGE,
        "DeviceTaintRule" => &dynamic_resources::DEVICE_TAINT_RULE,
        "ResourceClaim" => &dynamic_resources::RESOURCE_CLAIM,
        "ResourceSlice" => &dynamic_resources::RESOURCE_SLICE,
        _ => return None,
    })
}

fn find_in_small_group(group: &str, kind: &str) -> Option<&'static Printer> {
    Some(match (group, kind) {
        ("apiextensions.k8s.io", "CustomResourceDefinition") => &meta::CUSTOM_RESOURCE_DEFINITION,
        ("apiregistration.k8s.io", "APIService") => &meta::API_SERVICE,
        ("autoscaling", "HorizontalPodAutoscaler") => &autoscaling::HORIZONTAL_POD_AUTOSCALER,
        ("autoscaling", "Scale") => &autoscaling::SCALE,
        ("certificates.k8s.io", "CertificateSigningRequest") => &certificates::SIGNING_REQUEST,
        ("certificates.k8s.io", "ClusterTrustBundle") => &certificates::CLUSTER_TRUST_BUNDLE,
        ("certificates.k8s.io", "PodCertificateRequest") => &certificates::POD_CERTIFICATE_REQUEST,
        ("coordination.k8s.io", "Lease") => &coordination::LEASE,
        ("coordination.k8s.io", "LeaseCandidate") => &coordination::LEASE_CANDIDATE,
        ("discovery.k8s.io", "EndpointSlice") => &discovery::ENDPOINT_SLICE,
        ("events.k8s.io", "Event") => &event::EVENT,
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => &flowcontrol::FLOW_SCHEMA,
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => &flowcontrol::PRIORITY_LEVEL,
        ("internal.apiserver.k8s.io", "StorageVersion") => &meta::STORAGE_VERSION,
        ("node.k8s.io", "RuntimeClass") => &node::RUNTIME_CLASS,
        ("policy", "PodDisruptionBudget") => &scheduling::POD_DISRUPTION_BUDGET,
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => &rbac::BINDING,
        ("scheduling.k8s.io", "PriorityClass") => &scheduling::PRIORITY_CLASS,
        ("storagemigration.k8s.io", "StorageVersionMigration") => &meta::STORAGE_VERSION_MIGRATION,
        _ => return None,
    })
}

/// RFC 3339 in whole seconds; upstream prints its zero time as a date like any other.
fn created_at(object: &Value) -> String {
    match age::timestamp(&object["metadata"]["creationTimestamp"]) {
        Some(created) => jiff::Timestamp::from_second(created.as_second()).unwrap_or(created).to_string(),
        None => "0001-01-01T00:00:00Z".to_owned(),
    }
}
