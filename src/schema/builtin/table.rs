//! One row per resource and version.
//!
//! Short names, categories and subresources are those of upstream's discovery documents. Behaviour is that of
//! upstream's strategies (`pkg/registry/<group>/<kind>/strategy.go` and `storage/storage.go`).

use super::super::resource::{Behavior, Scope};

/// The rows of a group version.
pub(super) type GroupVersion = (&'static str, &'static str, &'static [Row]);

/// What distinguishes a resource from the plain one: stored in its own version, all verbs, no extras.
pub(super) struct Row {
    pub plural: &'static str,
    pub kind: &'static str,
    pub scope: Scope,
    pub short_names: &'static [&'static str],
    pub category: Option<&'static str>,
    pub subresources: &'static [&'static str],
    pub keeping: Keeping,
    pub behavior: Behavior,
}

/// Where the objects are kept.
pub(super) enum Keeping {
    Own,
    /// Under the same plural in another apiVersion.
    SharedWith(&'static str),
    Nothing,
}

const STATUS: &[&str] = &["status"];
const SCALE_STATUS: &[&str] = &["scale", "status"];

const fn row(plural: &'static str, kind: &'static str, scope: Scope) -> Row {
    Row {
        plural,
        kind,
        scope,
        short_names: &[],
        category: None,
        subresources: &[],
        keeping: Keeping::Own,
        behavior: Behavior {
            generation: false,
            unconditional_update: true,
            create_on_update: false,
            returns_deleted: false,
            orphans_by_default: false,
        },
    }
}

const fn namespaced(plural: &'static str, kind: &'static str) -> Row {
    row(plural, kind, Scope::Namespaced)
}

const fn cluster(plural: &'static str, kind: &'static str) -> Row {
    row(plural, kind, Scope::Cluster)
}

impl Row {
    const fn short(mut self, names: &'static [&'static str]) -> Self {
        self.short_names = names;
        self
    }

    const fn category(mut self, name: &'static str) -> Self {
        self.category = Some(name);
        self
    }

    const fn sub(mut self, names: &'static [&'static str]) -> Self {
        self.subresources = names;
        self
    }

    const fn shared(mut self, version: &'static str) -> Self {
        self.keeping = Keeping::SharedWith(version);
        self
    }

    const fn not_stored(mut self) -> Self {
        self.keeping = Keeping::Nothing;
        self
    }

    const fn generation(mut self) -> Self {
        self.behavior.generation = true;
        self
    }

    const fn conditional(mut self) -> Self {
        self.behavior.unconditional_update = false;
        self
    }

    const fn creates_on_update(mut self) -> Self {
        self.behavior.create_on_update = true;
        self
    }

    const fn returns_deleted(mut self) -> Self {
        self.behavior.returns_deleted = true;
        self
    }

    const fn orphans(mut self) -> Self {
        self.behavior.orphans_by_default = true;
        self
    }
}

pub(super) const GROUP_VERSIONS: &[GroupVersion] = &[
    ("", "v1", CORE_V1),
    ("admissionregistration.k8s.io", "v1", ADMISSIONREGISTRATION_V1),
    ("apiextensions.k8s.io", "v1", APIEXTENSIONS_V1),
    ("apiregistration.k8s.io", "v1", APIREGISTRATION_V1),
    ("apps", "v1", APPS_V1),
    ("authentication.k8s.io", "v1", AUTHENTICATION_V1),
    ("authorization.k8s.io", "v1", AUTHORIZATION_V1),
    ("autoscaling", "v1", AUTOSCALING_V1),
    ("autoscaling", "v2", AUTOSCALING_V2),
    ("batch", "v1", BATCH_V1),
    ("certificates.k8s.io", "v1", CERTIFICATES_V1),
    ("coordination.k8s.io", "v1", COORDINATION_V1),
    ("discovery.k8s.io", "v1", DISCOVERY_V1),
    ("events.k8s.io", "v1", EVENTS_V1),
    ("flowcontrol.apiserver.k8s.io", "v1", FLOWCONTROL_V1),
    ("internal.apiserver.k8s.io", "v1alpha1", INTERNAL_V1ALPHA1),
    ("networking.k8s.io", "v1", NETWORKING_V1),
    ("node.k8s.io", "v1", NODE_V1),
    ("policy", "v1", POLICY_V1),
    ("rbac.authorization.k8s.io", "v1", RBAC_V1),
    ("resource.k8s.io", "v1", RESOURCE_V1),
    ("scheduling.k8s.io", "v1", SCHEDULING_V1),
    ("storage.k8s.io", "v1", STORAGE_V1),
    ("storagemigration.k8s.io", "v1", STORAGEMIGRATION_V1),
];

const CORE_V1: &[Row] = &[
    namespaced("bindings", "Binding").not_stored(),
    namespaced("configmaps", "ConfigMap").short(&["cm"]),
    namespaced("endpoints", "Endpoints").short(&["ep"]).creates_on_update(),
    namespaced("events", "Event").short(&["ev"]).creates_on_update(),
    namespaced("limitranges", "LimitRange").short(&["limits"]).creates_on_update(),
    cluster("namespaces", "Namespace").short(&["ns"]).sub(&["finalize", "status"]).returns_deleted(),
    cluster("nodes", "Node").short(&["no"]).sub(STATUS),
    namespaced("persistentvolumeclaims", "PersistentVolumeClaim")
        .short(&["pvc"])
        .sub(STATUS)
        .returns_deleted(),
    cluster("persistentvolumes", "PersistentVolume").short(&["pv"]).sub(STATUS).returns_deleted(),
    namespaced("pods", "Pod")
        .short(&["po"])
        .category("all")
        .sub(&["binding", "ephemeralcontainers", "eviction", "resize", "status"])
        .generation()
        .returns_deleted(),
    namespaced("podtemplates", "PodTemplate").generation().returns_deleted(),
    namespaced("replicationcontrollers", "ReplicationController")
        .short(&["rc"])
        .category("all")
        .sub(SCALE_STATUS)
        .generation()
        .orphans(),
    namespaced("resourcequotas", "ResourceQuota").short(&["quota"]).sub(STATUS).returns_deleted(),
    namespaced("secrets", "Secret"),
    namespaced("serviceaccounts", "ServiceAccount").short(&["sa"]).returns_deleted(),
    namespaced("services", "Service")
        .short(&["svc"])
        .category("all")
        .sub(STATUS)
        .creates_on_update()
        .returns_deleted(),
];

const ADMISSIONREGISTRATION_V1: &[Row] = &[
    admission("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
    admission("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    admission("mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    admission("validatingadmissionpolicies", "ValidatingAdmissionPolicy").sub(STATUS),
    admission("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    admission("validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
];

const fn admission(plural: &'static str, kind: &'static str) -> Row {
    cluster(plural, kind).category("api-extensions").generation().conditional()
}

const APIEXTENSIONS_V1: &[Row] = &[cluster("customresourcedefinitions", "CustomResourceDefinition")
    .short(&["crd", "crds"])
    .category("api-extensions")
    .sub(STATUS)
    .generation()
    .conditional()];

const APIREGISTRATION_V1: &[Row] =
    &[cluster("apiservices", "APIService").category("api-extensions").sub(STATUS).conditional()];

const APPS_V1: &[Row] = &[
    namespaced("controllerrevisions", "ControllerRevision"),
    namespaced("daemonsets", "DaemonSet").short(&["ds"]).category("all").sub(STATUS).generation(),
    namespaced("deployments", "Deployment").short(&["deploy"]).category("all").sub(SCALE_STATUS).generation(),
    namespaced("replicasets", "ReplicaSet").short(&["rs"]).category("all").sub(SCALE_STATUS).generation(),
    namespaced("statefulsets", "StatefulSet").short(&["sts"]).category("all").sub(SCALE_STATUS).generation(),
];

const AUTHENTICATION_V1: &[Row] = &[
    cluster("selfsubjectreviews", "SelfSubjectReview").not_stored(),
    cluster("tokenreviews", "TokenReview").not_stored(),
];

const AUTHORIZATION_V1: &[Row] = &[
    namespaced("localsubjectaccessreviews", "LocalSubjectAccessReview").not_stored(),
    cluster("selfsubjectaccessreviews", "SelfSubjectAccessReview").not_stored(),
    cluster("selfsubjectrulesreviews", "SelfSubjectRulesReview").not_stored(),
    cluster("subjectaccessreviews", "SubjectAccessReview").not_stored(),
];

const AUTOSCALING_V1: &[Row] = &[autoscaler().shared("autoscaling/v2")];

const AUTOSCALING_V2: &[Row] = &[autoscaler()];

const fn autoscaler() -> Row {
    namespaced("horizontalpodautoscalers", "HorizontalPodAutoscaler")
        .short(&["hpa"])
        .category("all")
        .sub(STATUS)
        .generation()
}

const BATCH_V1: &[Row] = &[
    namespaced("cronjobs", "CronJob").short(&["cj"]).category("all").sub(STATUS).generation(),
    namespaced("jobs", "Job").category("all").sub(STATUS).generation().orphans(),
];

const CERTIFICATES_V1: &[Row] = &[
    cluster("certificatesigningrequests", "CertificateSigningRequest")
        .short(&["csr"])
        .sub(&["approval", "status"]),
    cluster("clustertrustbundles", "ClusterTrustBundle").conditional(),
    namespaced("podcertificaterequests", "PodCertificateRequest").sub(STATUS).conditional(),
];

const COORDINATION_V1: &[Row] = &[namespaced("leases", "Lease").creates_on_update().conditional()];

const DISCOVERY_V1: &[Row] = &[namespaced("endpointslices", "EndpointSlice").generation()];

const EVENTS_V1: &[Row] = &[namespaced("events", "Event").short(&["ev"]).creates_on_update().shared("v1")];

const FLOWCONTROL_V1: &[Row] = &[
    cluster("flowschemas", "FlowSchema").sub(STATUS).generation(),
    cluster("prioritylevelconfigurations", "PriorityLevelConfiguration").sub(STATUS).generation(),
];

const INTERNAL_V1ALPHA1: &[Row] = &[cluster("storageversions", "StorageVersion").sub(STATUS).conditional()];

const NETWORKING_V1: &[Row] = &[
    cluster("ingressclasses", "IngressClass").generation(),
    namespaced("ingresses", "Ingress").short(&["ing"]).sub(STATUS).generation(),
    cluster("ipaddresses", "IPAddress").short(&["ip"]),
    namespaced("networkpolicies", "NetworkPolicy").short(&["netpol"]).generation(),
    cluster("servicecidrs", "ServiceCIDR").sub(STATUS),
];

const NODE_V1: &[Row] = &[cluster("runtimeclasses", "RuntimeClass").creates_on_update().conditional()];

const POLICY_V1: &[Row] = &[namespaced("poddisruptionbudgets", "PodDisruptionBudget")
    .short(&["pdb"])
    .sub(STATUS)
    .generation()
    .conditional()];

const RBAC_V1: &[Row] = &[
    cluster("clusterrolebindings", "ClusterRoleBinding").creates_on_update(),
    cluster("clusterroles", "ClusterRole").creates_on_update(),
    namespaced("rolebindings", "RoleBinding").creates_on_update(),
    namespaced("roles", "Role").creates_on_update(),
];

const RESOURCE_V1: &[Row] = &[
    cluster("deviceclasses", "DeviceClass").generation().returns_deleted(),
    cluster("devicetaintrules", "DeviceTaintRule").sub(STATUS).generation().conditional().returns_deleted(),
    namespaced("resourceclaims", "ResourceClaim").sub(STATUS).returns_deleted(),
    namespaced("resourceclaimtemplates", "ResourceClaimTemplate").returns_deleted(),
    cluster("resourceslices", "ResourceSlice").generation().returns_deleted(),
];

const SCHEDULING_V1: &[Row] = &[cluster("priorityclasses", "PriorityClass").short(&["pc"]).generation()];

const STORAGE_V1: &[Row] = &[
    cluster("csidrivers", "CSIDriver").generation().conditional().returns_deleted(),
    cluster("csinodes", "CSINode").sub(STATUS).conditional().returns_deleted(),
    namespaced("csistoragecapacities", "CSIStorageCapacity").conditional(),
    cluster("storageclasses", "StorageClass").short(&["sc"]).returns_deleted(),
    cluster("volumeattachments", "VolumeAttachment").sub(STATUS).conditional().returns_deleted(),
    cluster("volumeattributesclasses", "VolumeAttributesClass").short(&["vac"]).returns_deleted(),
];

const STORAGEMIGRATION_V1: &[Row] =
    &[cluster("storageversionmigrations", "StorageVersionMigration").sub(STATUS).conditional()];
