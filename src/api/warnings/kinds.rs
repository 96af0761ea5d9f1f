//! Which kind says what.

use super::{Advice, OfChange, OfNew, metadata, network, node_labels, pod, quota, tls, volume, workloads};
use crate::schema::resource::ResourceDefinition;

/// The same of new objects and of new versions.
const fn always(create: OfNew, update: OfChange) -> Advice {
    Advice { create: Some(create), update: Some(update), status: None }
}

pub(super) fn advice(definition: &ResourceDefinition) -> Advice {
    match (definition.group().as_str(), definition.kind_name().as_str()) {
        ("", kind) => core(kind),
        ("apps", kind) => apps(kind),
        ("batch", "Job") => always(workloads::job, workloads::job_update),
        ("batch", "CronJob") => always(workloads::cron_job, workloads::cron_job_update),
        ("discovery.k8s.io", "EndpointSlice") => {
            always(network::new_slice, |new, _, to| network::slice(new, to))
        }
        ("networking.k8s.io", "Ingress") => {
            Advice { create: Some(network::ingress), update: None, status: Some(network::load_balancer) }
        }
        ("networking.k8s.io", "NetworkPolicy") => {
            always(network::policy, |new, _, to| network::policy(new, to))
        }
        ("node.k8s.io", "RuntimeClass") => {
            always(node_labels::runtime_class, |new, _, to| node_labels::runtime_class(new, to))
        }
        ("storage.k8s.io", "StorageClass") => {
            always(node_labels::storage_class, |new, _, to| node_labels::storage_class(new, to))
        }
        ("storage.k8s.io", "CSIStorageCapacity") => {
            always(node_labels::capacity, |new, _, to| node_labels::capacity(new, to))
        }
        ("storage.k8s.io", "CSIDriver") => always(volume::csi_driver, volume::csi_driver_update),
        ("resource.k8s.io", "ResourceSlice") => {
            always(metadata::slice, |new, _, to| metadata::slice(new, to))
        }
        ("admissionregistration.k8s.io", _) => {
            always(metadata::manifest, |new, _, to| metadata::manifest(new, to))
        }
        _ => Advice::default(),
    }
}

fn core(kind: &str) -> Advice {
    match kind {
        "Pod" => Advice { create: Some(pod::create), update: None, status: Some(pod::status) },
        "PodTemplate" => always(workloads::pod_template, workloads::pod_template_update),
        "ReplicationController" => always(workloads::controller, workloads::controller_update),
        "Service" => {
            let advice = always(network::service, |new, _, to| network::service(new, to));
            Advice { status: Some(network::load_balancer), ..advice }
        }
        "Endpoints" => always(network::endpoints, |new, _, to| network::endpoints(new, to)),
        "Node" => always(network::node, |new, _, to| network::node(new, to)),
        "PersistentVolume" => always(volume::volume, |new, _, to| volume::volume(new, to)),
        "PersistentVolumeClaim" => always(volume::claim, |new, _, to| volume::claim(new, to)),
        "ResourceQuota" => Advice { create: Some(quota::create), ..Advice::default() },
        "Secret" => always(tls::secret, |new, _, to| tls::secret(new, to)),
        "ServiceAccount" => always(metadata::account, metadata::account_update),
        _ => Advice::default(),
    }
}

fn apps(kind: &str) -> Advice {
    match kind {
        "Deployment" | "ReplicaSet" => always(workloads::named_template, workloads::template_update),
        "StatefulSet" => always(workloads::stateful_set, workloads::stateful_set_update),
        "DaemonSet" => always(workloads::template, workloads::daemon_set_update),
        _ => Advice::default(),
    }
}
