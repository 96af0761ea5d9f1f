//! All plugins of kube-apiserver's, in the order in which it calls them (`AllOrderedPlugins`), and which of them are on.
//!
//! To add a plugin: write its file, with an `impl Admission`, and put [`Stock::Here`] into its line in [`PLUGINS`].

use super::Admission;
use super::certificates::{
    CertificateApproval, CertificateSigning, CertificateSubjectRestriction, ClusterTrustBundleAttest,
};
use super::claim_resize::PersistentVolumeClaimResize;
use super::classes::{DefaultIngressClass, DefaultStorageClass};
use super::configuration::{Configuration, TolerationSeconds};
use super::deny::AlwaysDeny;
use super::dynamic::hooks::{MutatingAdmissionWebhook, ValidatingAdmissionWebhook};
use super::dynamic::policies::{MutatingAdmissionPolicy, ValidatingAdmissionPolicy};
use super::event_rate_limit::EventRateLimit;
use super::external_ips::DenyServiceExternalIPs;
use super::limits::LimitRanger;
use super::namespace::NamespaceLifecycle;
use super::namespace_exists::{NamespaceAutoProvision, NamespaceExists};
use super::node_restriction::NodeRestriction;
use super::owner_references::OwnerReferencesPermissionEnforcement;
use super::pods::always_pull::AlwaysPullImages;
use super::pods::anti_affinity::LimitPodHardAntiAffinityTopology;
use super::pods::extended_resources::ExtendedResourceToleration;
use super::pods::image_policy::ImagePolicyWebhook;
use super::pods::node_selector::PodNodeSelector;
use super::pods::priority::Priority;
use super::pods::resize::{NodeDeclaredFeatureValidator, PodResizeValidator};
use super::pods::runtime_class::RuntimeClass;
use super::pods::security::PodSecurity;
use super::pods::service_account::ServiceAccount;
use super::pods::toleration_restriction::PodTolerationRestriction;
use super::pods::tolerations::{DefaultTolerationSeconds, TaintNodesByCondition};
use super::pods::topology_labels::PodTopologyLabels;
use super::protection::StorageObjectInUseProtection;
use super::resource_quota::ResourceQuota;
use crate::tree::Value;

/// A plugin of kube-apiserver's.
pub(super) struct Plugin {
    pub name: &'static str,
    /// Whether it is on unless somebody switches it off.
    pub is_default: bool,
    pub stock: Stock,
}

/// The server's implementation of a plugin.
pub(super) enum Stock {
    /// The plugin, made for each server.
    Here(Make),
    /// The plugin has nothing to do: without alpha features, or at all.
    Idle,
}

/// Makes a plugin. The configuration is the one that `--admission-control-config-file` has for it. The error ends the
/// start.
pub(super) type Make = fn(TolerationSeconds, Option<&Configuration>) -> Result<Box<dyn Admission>, String>;

use Stock::{Here, Idle};

const fn on(name: &'static str, stock: Stock) -> Plugin {
    Plugin { name, is_default: true, stock }
}

const fn off(name: &'static str, stock: Stock) -> Plugin {
    Plugin { name, is_default: false, stock }
}

pub(super) static PLUGINS: [Plugin; 40] = [
    off("AlwaysAdmit", Idle),
    off("NamespaceAutoProvision", Here(|_, _| Ok(Box::new(NamespaceAutoProvision)))),
    on("NamespaceLifecycle", Here(|_, _| Ok(Box::new(NamespaceLifecycle)))),
    off("NamespaceExists", Here(|_, _| Ok(Box::new(NamespaceExists)))),
    off("LimitPodHardAntiAffinityTopology", Here(|_, _| Ok(Box::new(LimitPodHardAntiAffinityTopology)))),
    on("LimitRanger", Here(|_, _| Ok(Box::new(LimitRanger)))),
    on("ServiceAccount", Here(|_, _| Ok(Box::new(ServiceAccount)))),
    off("NodeRestriction", Here(|_, _| Ok(Box::new(NodeRestriction)))),
    on("TaintNodesByCondition", Here(|_, _| Ok(Box::new(TaintNodesByCondition)))),
    off("AlwaysPullImages", Here(|_, _| Ok(Box::new(AlwaysPullImages)))),
    off("ImagePolicyWebhook", Here(|_, configuration| Ok(Box::new(ImagePolicyWebhook::new(configuration)?)))),
    on("PodSecurity", Here(|_, configuration| Ok(Box::new(PodSecurity::new(content(configuration))?)))),
    off(
        "PodNodeSelector",
        Here(|_, configuration| Ok(Box::new(PodNodeSelector::new(content(configuration))))),
    ),
    on("Priority", Here(|_, _| Ok(Box::new(Priority)))),
    on(
        "DefaultTolerationSeconds",
        Here(|tolerations, _| Ok(Box::new(DefaultTolerationSeconds(tolerations)))),
    ),
    off(
        "PodTolerationRestriction",
        Here(|_, configuration| Ok(Box::new(PodTolerationRestriction::new(content(configuration))))),
    ),
    off(
        "EventRateLimit",
        Here(|_, configuration| Ok(Box::new(EventRateLimit::new(content(configuration))?))),
    ),
    off("ExtendedResourceToleration", Here(|_, _| Ok(Box::new(ExtendedResourceToleration)))),
    on("DefaultStorageClass", Here(|_, _| Ok(Box::new(DefaultStorageClass)))),
    on("StorageObjectInUseProtection", Here(|_, _| Ok(Box::new(StorageObjectInUseProtection)))),
    on("PodGroupProtection", Idle),
    off(
        "OwnerReferencesPermissionEnforcement",
        Here(|_, _| Ok(Box::new(OwnerReferencesPermissionEnforcement))),
    ),
    on("PersistentVolumeClaimResize", Here(|_, _| Ok(Box::new(PersistentVolumeClaimResize)))),
    on("RuntimeClass", Here(|_, _| Ok(Box::new(RuntimeClass)))),
    on("CertificateApproval", Here(|_, _| Ok(Box::new(CertificateApproval)))),
    on("CertificateSigning", Here(|_, _| Ok(Box::new(CertificateSigning)))),
    on("ClusterTrustBundleAttest", Here(|_, _| Ok(Box::new(ClusterTrustBundleAttest)))),
    on("CertificateSubjectRestriction", Here(|_, _| Ok(Box::new(CertificateSubjectRestriction)))),
    on("DefaultIngressClass", Here(|_, _| Ok(Box::new(DefaultIngressClass)))),
    off("DenyServiceExternalIPs", Here(|_, _| Ok(Box::new(DenyServiceExternalIPs)))),
    on("PodTopologyLabels", Here(|_, _| Ok(Box::new(PodTopologyLabels)))),
    on("NodeDeclaredFeatureValidator", Here(|_, _| Ok(Box::new(NodeDeclaredFeatureValidator)))),
    on("JobValidation", Idle),
    on("PodResizeValidator", Here(|_, _| Ok(Box::new(PodResizeValidator)))),
    on(
        "MutatingAdmissionPolicy",
        Here(|_, configuration| Ok(Box::new(MutatingAdmissionPolicy::new(configuration)?))),
    ),
    on(
        "MutatingAdmissionWebhook",
        Here(|_, configuration| Ok(Box::new(MutatingAdmissionWebhook::new(configuration)?))),
    ),
    on(
        "ValidatingAdmissionPolicy",
        Here(|_, configuration| Ok(Box::new(ValidatingAdmissionPolicy::new(configuration)?))),
    ),
    on(
        "ValidatingAdmissionWebhook",
        Here(|_, configuration| Ok(Box::new(ValidatingAdmissionWebhook::new(configuration)?))),
    ),
    on("ResourceQuota", Here(|_, configuration| Ok(Box::new(ResourceQuota::new(content(configuration))?)))),
    off("AlwaysDeny", Here(|_, _| Ok(Box::new(AlwaysDeny)))),
];

/// The content of a plugin's configuration in the file.
fn content(configuration: Option<&Configuration>) -> Option<&Value> {
    configuration.map(|configuration| &configuration.content)
}

/// The plugin of a name.
pub(super) fn find(name: &str) -> Option<&'static Plugin> {
    PLUGINS.iter().find(|plugin| plugin.name == name)
}

/// The names of all plugins of upstream's.
pub fn all() -> Vec<&'static str> {
    PLUGINS.iter().map(|plugin| plugin.name).collect()
}
