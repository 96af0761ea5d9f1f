//! Names of schemas, operations and tags.

use crate::schema::kind::Kind;
use crate::schema::names::{GroupVersion, Gvk};
use crate::schema::resource::ResourceDefinition;
use crate::schema::types::Message;

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub(super) const API_VERSIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions";
pub(super) const API_GROUP: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup";
pub(super) const API_GROUP_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList";
pub(super) const API_RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
/// The name in place of a schema's for answers that are plain text.
pub(super) const TEXT: &str = "string";
pub(super) const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// `io.k8s.api.apps.v1.Deployment`: the Go package of a built-in kind, the reversed group of a custom one.
pub(super) fn schema(kind: &Kind) -> String {
    kind.go().map_or_else(|| untyped(&kind.gvk), |shape| message(shape.types.message(shape.message)))
}

/// The kind of the lists of a resource.
pub(super) fn list_schema(definition: &ResourceDefinition) -> String {
    let gvk = definition.group_version().with_kind(definition.list_kind.clone());
    definition.kind.sibling(&gvk).map_or_else(|| untyped(&gvk), |list| schema(&list))
}

/// `com.example.stable.v1.CronTab`: the reversed group, the version and the kind.
pub(super) fn untyped(gvk: &Gvk) -> String {
    let group = gvk.group().rsplit('.').collect::<Vec<_>>().join(".");
    format!("{group}.{}.{}", gvk.version(), gvk.kind)
}

/// The Go package of a type, turned around as far as its host goes.
pub(super) fn message(message: &Message) -> String {
    let package = message.package.strip_prefix("k8s.io.").unwrap_or(message.package);
    format!("io.k8s.{}.{}", package.replace('_', "-"), message.name)
}

/// `apps_v1`, `rbacAuthorization_v1`.
pub(super) fn tag(version: &GroupVersion) -> String {
    format!("{}_{}", group_tag(version.group()), version.version())
}

/// `apps`, `rbacAuthorization`.
pub(super) fn group_tag(group: &str) -> String {
    let camel = group_camel(group);
    let mut chars = camel.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// `AppsV1`, `RbacAuthorizationV1`: the middle of an operationId.
pub(super) fn group_version(version: &GroupVersion) -> String {
    group_camel(version.group()) + &capitalized(version.version())
}

pub(super) fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

pub(super) fn group_camel(group: &str) -> String {
    if group.is_empty() {
        return "Core".to_owned();
    }
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    short.split(['.', '-']).map(capitalized).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::builtin;

    #[test]
    fn schemas_are_named_after_their_package() {
        let built_in = |gvk| schema(&builtin::kind(&gvk).expect("a kind"));
        assert_eq!(built_in(Gvk::fixed("v1", "Pod")), "io.k8s.api.core.v1.Pod");
        assert_eq!(
            built_in(Gvk::fixed("apiregistration.k8s.io/v1", "APIService")),
            "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
        );
        assert_eq!(built_in(Gvk::fixed("rbac.authorization.k8s.io/v1", "Role")), "io.k8s.api.rbac.v1.Role");
        let custom = schema(&Kind::opaque(Gvk::fixed("stable.example.com/v1", "CronTab")));
        assert_eq!(custom, "com.example.stable.v1.CronTab");
    }

    #[test]
    fn groups_lose_their_common_suffix() {
        assert_eq!(tag(&GroupVersion::fixed("v1")), "core_v1");
        assert_eq!(tag(&GroupVersion::fixed("rbac.authorization.k8s.io/v1")), "rbacAuthorization_v1");
        assert_eq!(
            group_version(&GroupVersion::fixed("internal.apiserver.k8s.io/v1alpha1")),
            "InternalApiserverV1alpha1"
        );
    }
}
