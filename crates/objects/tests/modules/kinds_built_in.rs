//! Tests of `built_in`.

use std::any::type_name;
use std::collections::HashSet;

use k8s_openapi as k8s;
use rowplane_objects::kinds::built_in::definitions;
use rowplane_objects::schema::names::{GroupVersion, Gvk, Gvr};
use rowplane_objects::schema::resource::{ResourceDefinition, Storage, Verb};

fn find(name: &Gvr) -> ResourceDefinition {
    definitions().into_iter().find(|d| d.gvr() == *name).unwrap_or_else(|| panic!("{name} is missing"))
}

fn check<T: k8s::Resource>() {
    let found = find(&GroupVersion::new(T::GROUP, T::VERSION).with_plural(T::URL_PATH_SEGMENT));
    assert_eq!(found.kind_name(), T::KIND);
    let namespaced = type_name::<T::Scope>() == type_name::<k8s::NamespaceResourceScope>();
    assert_eq!(found.namespaced(), namespaced, "{}", T::KIND);
}

macro_rules! check_all {
    ($($path:path),* $(,)?) => {{ $(check::<$path>();)* [$(stringify!($path)),*].len() }};
}

#[test]
fn agrees_with_the_published_types() {
    use k8s::api::{
        admissionregistration::{v1 as admission, v1beta1 as admission_beta},
        apiserverinternal::v1alpha1 as internal,
        apps::v1 as apps,
        authentication::v1 as authn,
        authorization::v1 as authz,
        autoscaling,
        batch::v1 as batch,
        certificates::v1 as certificates,
        coordination::v1 as coordination,
        core::v1 as core,
        discovery::v1 as discovery,
        events::v1 as events,
        flowcontrol::v1 as flowcontrol,
        networking::v1 as networking,
        node::v1 as node,
        policy::v1 as policy,
        rbac::v1 as rbac,
        resource::v1 as resource,
        scheduling::v1 as scheduling,
        storage::v1 as storage,
        storagemigration::v1 as storagemigration,
    };
    use k8s::apiextensions_apiserver::pkg::apis::apiextensions::v1 as apiextensions;
    use k8s::kube_aggregator::pkg::apis::apiregistration::v1 as apiregistration;

    let checked = check_all!(
        core::Binding,
        core::ComponentStatus,
        core::ConfigMap,
        core::Endpoints,
        core::Event,
        core::LimitRange,
        core::Namespace,
        core::Node,
        core::PersistentVolumeClaim,
        core::PersistentVolume,
        core::Pod,
        core::PodTemplate,
        core::ReplicationController,
        core::ResourceQuota,
        core::Secret,
        core::ServiceAccount,
        core::Service,
        admission::MutatingAdmissionPolicy,
        admission::MutatingAdmissionPolicyBinding,
        admission::MutatingWebhookConfiguration,
        admission::ValidatingAdmissionPolicy,
        admission::ValidatingAdmissionPolicyBinding,
        admission::ValidatingWebhookConfiguration,
        admission_beta::MutatingAdmissionPolicy,
        admission_beta::MutatingAdmissionPolicyBinding,
        apiextensions::CustomResourceDefinition,
        apiregistration::APIService,
        apps::ControllerRevision,
        apps::DaemonSet,
        apps::Deployment,
        apps::ReplicaSet,
        apps::StatefulSet,
        authn::SelfSubjectReview,
        authn::TokenReview,
        authz::LocalSubjectAccessReview,
        authz::SelfSubjectAccessReview,
        authz::SelfSubjectRulesReview,
        authz::SubjectAccessReview,
        autoscaling::v1::HorizontalPodAutoscaler,
        autoscaling::v2::HorizontalPodAutoscaler,
        batch::CronJob,
        batch::Job,
        certificates::CertificateSigningRequest,
        certificates::ClusterTrustBundle,
        certificates::PodCertificateRequest,
        coordination::Lease,
        discovery::EndpointSlice,
        events::Event,
        flowcontrol::FlowSchema,
        flowcontrol::PriorityLevelConfiguration,
        internal::StorageVersion,
        networking::IngressClass,
        networking::Ingress,
        networking::IPAddress,
        networking::NetworkPolicy,
        networking::ServiceCIDR,
        node::RuntimeClass,
        policy::PodDisruptionBudget,
        rbac::ClusterRoleBinding,
        rbac::ClusterRole,
        rbac::RoleBinding,
        rbac::Role,
        resource::DeviceClass,
        resource::DeviceTaintRule,
        resource::ResourceClaim,
        resource::ResourceClaimTemplate,
        resource::ResourceSlice,
        scheduling::PriorityClass,
        storage::CSIDriver,
        storage::CSINode,
        storage::CSIStorageCapacity,
        storage::StorageClass,
        storage::VolumeAttachment,
        storage::VolumeAttributesClass,
        storagemigration::StorageVersionMigration,
    );
    assert_eq!(checked, definitions().len(), "a definition is not compared");
}

#[test]
fn names_are_unique_within_a_group_version() {
    let mut taken = HashSet::new();
    for d in definitions() {
        let names =
            [&d.plural, &d.singular].into_iter().chain(&d.short_names).cloned().collect::<HashSet<_>>();
        for name in names {
            assert!(
                taken.insert(d.group_version().with_kind(name.clone())),
                "{} {name} twice",
                d.api_version()
            );
        }
        assert!(taken.insert(d.gvk().clone()), "{} twice", d.gvk());
    }
}

#[test]
fn every_definition_is_sane() {
    for d in definitions() {
        assert!(d.plural.chars().all(|c| c.is_ascii_lowercase()), "{}", d.plural);
        assert!(d.kind_name().starts_with(|c: char| c.is_ascii_uppercase()), "{}", d.gvk());
        assert!(d.verbs.is_sorted() && !d.verbs.is_empty(), "{}", d.plural);
        assert!(d.subresources.is_sorted_by_key(|s| s.name.clone()), "{}", d.plural);
        let is_stored = d.verbs.contains(&Verb::Watch);
        assert_eq!(d.storage == Storage::Virtual, !is_stored, "{}", d.plural);
    }
}

#[test]
fn shared_storage_has_one_version() {
    let table =
        |stored: Gvr| Storage::Table { resource: stored.group_resource(), version: stored.group_version };
    for version in [GroupVersion::fixed("v1"), GroupVersion::fixed("events.k8s.io/v1")] {
        assert_eq!(find(&version.with_plural("events")).storage, table(Gvr::fixed("v1", "events")));
    }
    for version in [GroupVersion::fixed("autoscaling/v1"), GroupVersion::fixed("autoscaling/v2")] {
        let stored = table(Gvr::fixed("autoscaling/v2", "horizontalpodautoscalers"));
        assert_eq!(find(&version.with_plural("horizontalpodautoscalers")).storage, stored);
    }
}

#[test]
fn exceptions_are_known() {
    let namespaces = find(&Gvr::fixed("v1", "namespaces"));
    assert!(!namespaces.allows(Verb::DeleteCollection) && namespaces.allows(Verb::Delete));
    assert_eq!(namespaces.subresource("finalize").unwrap().verbs, [Verb::Update]);
    assert!(find(&Gvr::fixed("v1", "services")).allows(Verb::DeleteCollection));
    assert_eq!(&*find(&Gvr::fixed("v1", "endpoints")).singular, "endpoints");
    assert!(find(&Gvr::fixed("batch/v1", "jobs")).behavior.orphans_by_default);
    assert!(!find(&Gvr::fixed("apps/v1", "deployments")).behavior.orphans_by_default);
    assert!(!find(&Gvr::fixed("coordination.k8s.io/v1", "leases")).behavior.unconditional_update);
    let scale =
        find(&Gvr::fixed("apps/v1", "deployments")).subresource("scale").unwrap().kind.clone().unwrap();
    assert_eq!(scale.gvk, Gvk::fixed("autoscaling/v1", "Scale"));
}
