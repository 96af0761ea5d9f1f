//! Which kind follows which rules.

use super::apps::{daemon_set, deployment, replica_set, revision, stateful_set};
use super::batch::{cron_job, job};
use super::config::{config_map, limit_range, namespace, node, quota, secret};
use super::devices::{claim as claim_of_devices, claim_status, class as class_of_devices, slice, taint};
use super::errors::Errors;
use super::metadata::finalizers;
use super::networking::{address, endpoint_slice, endpoints, ingress, ingress_class, policy, service};
use super::storage::{attachment, capacity, class, csi_driver, csi_node, volume};
use super::{
    OfChange, OfNew, Rules, admission_policy, api_service, autoscaling, claim, disruption_budget, event,
    extension, flow, lease, pod, pod_certificate, priority_class, rbac, runtime_class, signing_request,
    storage_migration, storage_version, trust_bundle, webhook,
};
use crate::api::ObjectMap;
use crate::schema::resource::ResourceDefinition;

/// Kinds that are not checked yet, and those of others.
const NONE: Rules = Rules { metadata: any, create: any, update: None, status: any_change, whole: any };

fn any(_: &ObjectMap, _: &mut Errors) {}

fn any_change(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

/// Rules of kinds whose status has none, or that have no status.
const fn plain(create: OfNew, update: OfChange) -> Rules {
    with_status(create, update, any_change)
}

const fn with_status(create: OfNew, update: OfChange, status: OfChange) -> Rules {
    Rules { metadata: finalizers, create, update: Some(update), status, whole: any }
}

/// Rules that do not look at what was there before.
const fn timeless(create: OfNew) -> Rules {
    timeless_with_status(create, any_change)
}

const fn timeless_with_status(create: OfNew, status: OfChange) -> Rules {
    Rules { metadata: finalizers, create, update: None, status, whole: any }
}

pub(super) fn rules(definition: &ResourceDefinition) -> Rules {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("", kind) => core(kind),
        ("apps", kind) => apps(kind),
        ("batch", "Job") => with_status(job::create, job::update, job::status),
        ("batch", "CronJob") => plain(cron_job::create, cron_job::update),
        ("networking.k8s.io", kind) => networking(kind),
        ("storage.k8s.io", kind) => storage(kind),
        ("rbac.authorization.k8s.io", kind) => rbac(kind),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            with_status(autoscaling::create, autoscaling::update, autoscaling::status)
        }
        ("policy", "PodDisruptionBudget") => {
            timeless_with_status(disruption_budget::create, disruption_budget::status)
        }
        ("events.k8s.io", "Event") => Rules { metadata: any, ..plain(event::create, event::update) },
        ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            with_status(extension::create, extension::update, extension::status)
        }
        ("apiregistration.k8s.io", "APIService") => {
            timeless_with_status(api_service::create, api_service::status)
        }
        ("coordination.k8s.io", "Lease") => timeless(lease::create),
        ("scheduling.k8s.io", "PriorityClass") => plain(priority_class::create, priority_class::update),
        ("node.k8s.io", "RuntimeClass") => plain(runtime_class::create, runtime_class::update),
        ("discovery.k8s.io", "EndpointSlice") => plain(endpoint_slice::create, endpoint_slice::update),
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
            timeless_with_status(admission_policy::validating, admission_policy::status)
        }
        ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
            timeless(admission_policy::validating_binding)
        }
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => timeless(admission_policy::mutating),
        ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
            timeless(admission_policy::mutating_binding)
        }
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => {
            // The one place where upstream asks nothing of finalizers.
            Rules { metadata: any, ..plain(webhook::create, webhook::update) }
        }
        ("resource.k8s.io", kind) => devices(kind),
        ("certificates.k8s.io", "ClusterTrustBundle") => plain(trust_bundle::create, trust_bundle::update),
        ("certificates.k8s.io", "PodCertificateRequest") => {
            with_status(pod_certificate::create, pod_certificate::update, pod_certificate::status)
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => {
            with_status(signing_request::create, signing_request::update, signing_request::status)
        }
        ("internal.apiserver.k8s.io", "StorageVersion") => {
            with_status(storage_version::create, storage_version::update, storage_version::status)
        }
        ("storagemigration.k8s.io", "StorageVersionMigration") => {
            with_status(storage_migration::create, storage_migration::update, storage_migration::status)
        }
        ("flowcontrol.apiserver.k8s.io", "FlowSchema") => timeless_with_status(flow::schema, flow::status),
        ("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration") => {
            timeless_with_status(flow::level, flow::status)
        }
        _ => NONE,
    }
}

fn core(kind: &str) -> Rules {
    match kind {
        "Pod" => Rules { whole: pod::whole, ..with_status(pod::create, pod::update, pod::status) },
        "ReplicationController" => timeless_with_status(replica_set::controller, replica_set::status),
        "Service" => with_status(service::create, service::update, service::status),
        "Endpoints" => plain(endpoints::create, endpoints::update),
        "ConfigMap" => plain(config_map::create, config_map::update),
        "Secret" => plain(secret::create, secret::update),
        "Event" => Rules { metadata: any, ..timeless(event::old) },
        "ServiceAccount" => timeless(any),
        "LimitRange" => timeless(limit_range::create),
        "ResourceQuota" => with_status(quota::create, quota::update, quota::status),
        "Namespace" => Rules {
            whole: namespace::finalized,
            ..with_status(namespace::create, namespace::update, namespace::status)
        },
        "Node" => with_status(node::create, node::update, node::status),
        "PersistentVolume" => plain(volume::create, volume::update),
        "PodTemplate" => timeless(pod::lone_template),
        "PersistentVolumeClaim" => with_status(claim::create, claim::update, claim::status),
        _ => NONE,
    }
}

fn networking(kind: &str) -> Rules {
    match kind {
        "Ingress" => with_status(ingress::create, ingress::update, ingress::status),
        "IngressClass" => plain(ingress_class::create, ingress_class::update),
        "NetworkPolicy" => plain(policy::create, policy::update),
        "IPAddress" => plain(address::create, address::update),
        "ServiceCIDR" => plain(address::create_range, address::update_range),
        _ => NONE,
    }
}

fn storage(kind: &str) -> Rules {
    match kind {
        "StorageClass" => plain(class::create, class::update),
        "VolumeAttributesClass" => plain(class::create_attributes, class::update_attributes),
        "CSIDriver" => plain(csi_driver::create, csi_driver::update),
        "CSINode" => plain(csi_node::create, csi_node::update),
        "CSIStorageCapacity" => plain(capacity::create, capacity::update),
        "VolumeAttachment" => with_status(attachment::create, attachment::update, attachment::update),
        _ => NONE,
    }
}

fn devices(kind: &str) -> Rules {
    match kind {
        "DeviceClass" => plain(class_of_devices::create, class_of_devices::update),
        "DeviceTaintRule" => with_status(taint::create_rule, taint::update_rule, taint::rule_status),
        "ResourceClaim" => {
            with_status(claim_of_devices::create, claim_of_devices::update, claim_status::update)
        }
        "ResourceClaimTemplate" => {
            plain(claim_of_devices::create_template, claim_of_devices::update_template)
        }
        "ResourceSlice" => plain(slice::create, slice::update),
        _ => NONE,
    }
}

fn rbac(kind: &str) -> Rules {
    match kind {
        "Role" => timeless(rbac::role),
        "ClusterRole" => timeless(rbac::cluster_role),
        "RoleBinding" => plain(rbac::create_binding, rbac::update_binding),
        "ClusterRoleBinding" => plain(rbac::create_cluster_binding, rbac::update_cluster_binding),
        _ => NONE,
    }
}

fn apps(kind: &str) -> Rules {
    match kind {
        "Deployment" => with_status(deployment::create, deployment::update, deployment::status),
        "ReplicaSet" => with_status(replica_set::create, replica_set::update, replica_set::status),
        "StatefulSet" => with_status(stateful_set::create, stateful_set::update, stateful_set::status),
        "DaemonSet" => with_status(daemon_set::create, daemon_set::update, daemon_set::status),
        "ControllerRevision" => plain(revision::create, revision::update),
        _ => NONE,
    }
}
