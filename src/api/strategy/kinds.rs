//! Which kind follows which rules: the exceptions, by group and kind.

use super::closed;
use super::generation::Generation;
use super::status::{RESET, StatusMetadata, StatusRule};
use super::{Special, Strategy};
use crate::api::meta::NameFormat;
use crate::schema::builtin;
use crate::schema::resource::ResourceDefinition;

pub(super) fn strategy(definition: &ResourceDefinition) -> Strategy {
    if !builtin::has_group(definition.group()) {
        return custom(definition);
    }
    let status = definition.subresource("status").is_some();
    Strategy {
        names: names(definition),
        status: if status { status_rule(definition) } else { StatusRule::Open },
        status_metadata: status_metadata(definition),
        generation: if definition.behavior.generation {
            generation(definition)
        } else {
            Generation::Untouched
        },
        special: special(definition),
        closed: closed::fields(definition.group(), definition.kind_name()),
    }
}

/// apiextensions-apiserver `customresource/strategy.go`.
fn custom(definition: &ResourceDefinition) -> Strategy {
    let status = definition.subresource("status").is_some();
    Strategy {
        names: NameFormat::Dns1123Subdomain,
        status: if status { StatusRule::Dropped } else { StatusRule::Open },
        status_metadata: StatusMetadata::Closed,
        generation: Generation::Custom { status: !status },
        special: Special::Nothing,
        closed: &[],
    }
}

fn names(definition: &ResourceDefinition) -> NameFormat {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("rbac.authorization.k8s.io", _)
        // `version.group`, which ends with a dot for the core group.
        | ("apiregistration.k8s.io", _)
        // Anything goes for requests; bundles are named after a signer: `example.com:signer:name`.
        | ("certificates.k8s.io", "CertificateSigningRequest" | "ClusterTrustBundle")
        // `group.resource`, which is a rule of its own.
        | ("internal.apiserver.k8s.io", _)
        // IPv6 addresses have colons.
        | ("networking.k8s.io", "IPAddress")
        // Upstream's validation of budgets and of old events does not look at the name.
        | ("policy", _)
        | ("", "Event") => NameFormat::PathSegment,
        // Services: RelaxedServiceNameValidation is GA in v1.37 (KEP-5311).
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => NameFormat::Dns1123Label,
        _ => NameFormat::Dns1123Subdomain,
    }
}

/// The texts are the zero values of the status types, as `encoding/json` prints those of `k8s.io/api`.
fn status_rule(definition: &ResourceDefinition) -> StatusRule {
    StatusRule::Reset(match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("", "Node") => return StatusRule::Born,
        ("", "Namespace") => r#"{"phase":"Active"}"#,
        ("", "Pod" | "PersistentVolume" | "PersistentVolumeClaim") => r#"{"phase":"Pending"}"#,
        ("", "Service") | ("networking.k8s.io", "Ingress") => r#"{"loadBalancer":{}}"#,
        ("", "ReplicationController") | ("apps", "ReplicaSet") => r#"{"replicas":0}"#,
        ("apps", "StatefulSet") => r#"{"replicas":0,"availableReplicas":0}"#,
        ("apps", "DaemonSet") => {
            r#"{"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0}"#
        }
        ("autoscaling", _) if definition.version() == "v1" => r#"{"currentReplicas":0,"desiredReplicas":0}"#,
        ("autoscaling", _) => r#"{"desiredReplicas":0,"currentMetrics":null}"#,
        ("policy", _) => r#"{"disruptionsAllowed":0,"currentHealthy":0,"desiredHealthy":0,"expectedPods":0}"#,
        ("storage.k8s.io", "VolumeAttachment") => r#"{"attached":false}"#,
        ("apiextensions.k8s.io", _) => {
            r#"{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":null}"#
        }
        _ => "{}",
    })
}

fn status_metadata(definition: &ResourceDefinition) -> StatusMetadata {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        // Old kubelets corrupt them.
        ("", "Pod") => StatusMetadata::Except(&["ownerReferences"]),
        ("apps", "Deployment") => StatusMetadata::Except(&["labels"]),
        ("flowcontrol.apiserver.k8s.io", _) => StatusMetadata::Closed,
        (
            "admissionregistration.k8s.io"
            | "apiextensions.k8s.io"
            | "apiregistration.k8s.io"
            | "internal.apiserver.k8s.io"
            | "resource.k8s.io"
            | "storage.k8s.io"
            | "storagemigration.k8s.io",
            _,
        )
        | ("certificates.k8s.io", "PodCertificateRequest")
        | ("networking.k8s.io", "ServiceCIDR") => RESET,
        _ => StatusMetadata::Open,
    }
}

fn generation(definition: &ResourceDefinition) -> Generation {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("apps", "Deployment") => Generation::ContentAnd("annotations"),
        ("discovery.k8s.io", "EndpointSlice") => Generation::ContentAnd("labels"),
        ("scheduling.k8s.io", "PriorityClass") => Generation::CreateOnly,
        _ => Generation::Content,
    }
}

fn special(definition: &ResourceDefinition) -> Special {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("", "Namespace") => Special::Namespace,
        ("", "Pod") => Special::Pod,
        ("", "PersistentVolume") => Special::PersistentVolume,
        ("", "PersistentVolumeClaim") => Special::PersistentVolumeClaim,
        ("", "Service") => Special::Service,
        ("", "ReplicationController") => Special::ReplicationController,
        ("", "LimitRange") => Special::LimitRange,
        ("discovery.k8s.io", "EndpointSlice") => Special::EndpointSlice,
        ("resource.k8s.io", "ResourceClaim") => Special::ResourceClaim,
        ("batch", "Job") => Special::Job,
        ("apps", "DaemonSet") => Special::DaemonSet,
        ("certificates.k8s.io", "CertificateSigningRequest") => Special::CertificateSigningRequest,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => Special::CustomResourceDefinition,
        ("apiregistration.k8s.io", "APIService") => Special::ApiService,
        ("" | "events.k8s.io", "Event") => Special::Event,
        _ => Special::Nothing,
    }
}
