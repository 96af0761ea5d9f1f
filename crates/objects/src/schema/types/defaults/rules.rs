//! Assigns rules to structs.

use super::{
    Rule, admission, autoscaling, core, flowcontrol, networking, pod, scheduling, service, storage, workloads,
};

/// The rule of an upstream struct; `package` is written like `k8s.io.api.apps.v1`.
pub(super) fn of(package: &str, name: &str) -> Option<Rule> {
    if package.starts_with("k8s.io.apiextensions_apiserver.")
        || package.starts_with("k8s.io.kube_aggregator.")
    {
        return extension(name);
    }
    Some(match (package.strip_prefix("k8s.io.api.")?, name) {
        ("core.v1", name) => return core_group(name),
        ("apps.v1", "Deployment") => workloads::deployment,
        ("apps.v1", "DaemonSet") => workloads::daemon_set,
        ("apps.v1", "StatefulSet") => workloads::stateful_set,
        ("apps.v1", "ReplicaSet") => workloads::replica_set,
        ("batch.v1", "Job") => workloads::job,
        ("batch.v1", "CronJob") => workloads::cron_job,
        ("batch.v1", "PodFailurePolicyOnPodConditionsPattern") => workloads::pod_condition_pattern,
        ("autoscaling.v1", "HorizontalPodAutoscaler") => autoscaling::v1,
        ("autoscaling.v2", "HorizontalPodAutoscaler") => autoscaling::v2,
        ("networking.v1", "NetworkPolicyPort") => networking::policy_port,
        ("networking.v1", "NetworkPolicy") => networking::policy,
        ("networking.v1", "IngressClass") => networking::ingress_class,
        ("discovery.v1", "EndpointPort") => networking::endpoint_port,
        ("rbac.v1", "ClusterRoleBinding" | "RoleBinding") => scheduling::role_binding,
        ("rbac.v1", "Subject") => scheduling::subject,
        ("scheduling.v1", "PriorityClass") => scheduling::priority_class,
        ("storage.v1", "StorageClass") => storage::class,
        ("storage.v1", "CSIDriver") => storage::csi_driver,
        ("admissionregistration.v1", "ValidatingWebhook") => admission::validating_webhook,
        ("admissionregistration.v1", "MutatingWebhook") => admission::mutating_webhook,
        ("admissionregistration.v1" | "admissionregistration.v1beta1", "Rule") => admission::rule,
        ("admissionregistration.v1", "ServiceReference") => admission::service_reference,
        (
            "admissionregistration.v1" | "admissionregistration.v1beta1",
            "ValidatingAdmissionPolicySpec" | "MutatingAdmissionPolicySpec",
        ) => admission::policy,
        ("admissionregistration.v1" | "admissionregistration.v1beta1", "MatchResources") => {
            admission::match_resources
        }
        ("flowcontrol.v1", "FlowSchemaSpec") => flowcontrol::flow_schema,
        ("flowcontrol.v1", "ExemptPriorityLevelConfiguration") => flowcontrol::exempt,
        ("flowcontrol.v1", "LimitedPriorityLevelConfiguration") => flowcontrol::limited,
        ("flowcontrol.v1", "QueuingConfiguration") => flowcontrol::queuing,
        ("resource.v1", "ExactDeviceRequest" | "DeviceSubRequest") => scheduling::device_request,
        ("resource.v1", "DeviceTaint") => scheduling::device_taint,
        _ => return None,
    })
}

fn extension(name: &str) -> Option<Rule> {
    Some(match name {
        "CustomResourceDefinition" => admission::custom_resource_definition,
        "CustomResourceDefinitionSpec" => admission::custom_resource,
        "ServiceReference" => admission::service_reference,
        _ => return None,
    })
}

fn core_group(name: &str) -> Option<Rule> {
    Some(match name {
        "Pod" => pod::pod,
        "PodSpec" => pod::spec,
        "PodStatus" => pod::status,
        "Container" | "EphemeralContainer" => pod::container,
        "Probe" => pod::probe,
        "HTTPGetAction" => pod::http_get,
        "Volume" => pod::volume,
        "SecretVolumeSource"
        | "ConfigMapVolumeSource"
        | "DownwardAPIVolumeSource"
        | "ProjectedVolumeSource" => pod::file_mode,
        "ServiceAccountTokenProjection" => pod::token_projection,
        "HostPathVolumeSource" => pod::host_path,
        "ObjectFieldSelector" => pod::field_selector,
        "ReplicationController" => workloads::replication_controller,
        "Service" => service::service,
        "Secret" => core::secret,
        "Endpoints" => core::endpoints,
        "Namespace" => core::namespace,
        "NamespaceStatus" => core::namespace_status,
        "NodeSpec" => core::node,
        "NodeStatus" => core::node_status,
        "LimitRangeItem" => core::limit_range_item,
        "PersistentVolume" => storage::persistent_volume,
        "PersistentVolumeClaim" => storage::claim,
        "PersistentVolumeClaimSpec" => storage::claim_spec,
        _ => return None,
    })
}
