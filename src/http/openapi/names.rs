//! Names of schemas, operations and tags.

use crate::schema::names::api_version;
use crate::schema::registry::Origin;
use crate::schema::types::{Message, Types};

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
pub(super) const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";
pub(super) const API_VERSIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIVersions";
pub(super) const API_GROUP: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroup";
pub(super) const API_GROUP_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIGroupList";
pub(super) const API_RESOURCE_LIST: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList";
pub(super) const VERSION_INFO: &str = "io.k8s.apimachinery.pkg.version.Info";

/// `io.k8s.api.apps.v1.Deployment`: the Go package of a built-in kind, the reversed group of a custom one.
pub(super) fn schema(origin: Origin, group: &str, version: &str, kind: &str) -> String {
    let types = Types::built_in();
    let known = match origin {
        Origin::BuiltIn => types.kind(&api_version(group, version), kind),
        Origin::Custom => None,
    };
    match known {
        Some(id) => message(types.message(id)),
        None => format!("{}.{version}.{kind}", group.rsplit('.').collect::<Vec<_>>().join(".")),
    }
}

/// The Go package of a type, turned around as far as its host goes.
pub(super) fn message(message: &Message) -> String {
    let package = message.package.strip_prefix("k8s.io.").unwrap_or(&message.package);
    format!("io.k8s.{}.{}", package.replace('_', "-"), message.name)
}

/// `apps_v1`, `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    format!("{}_{version}", group_tag(group))
}

/// `apps`, `rbacAuthorization`.
pub(super) fn group_tag(group: &str) -> String {
    let camel = group_camel(group);
    let mut chars = camel.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

/// `AppsV1`, `RbacAuthorizationV1`: the middle of an operationId.
pub(super) fn group_version(group: &str, version: &str) -> String {
    group_camel(group) + &capitalized(version)
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

    #[test]
    fn schemas_are_named_after_their_package() {
        let built_in = |group, version, kind| schema(Origin::BuiltIn, group, version, kind);
        assert_eq!(built_in("", "v1", "Pod"), "io.k8s.api.core.v1.Pod");
        assert_eq!(
            built_in("apiregistration.k8s.io", "v1", "APIService"),
            "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
        );
        assert_eq!(built_in("rbac.authorization.k8s.io", "v1", "Role"), "io.k8s.api.rbac.v1.Role");
        let custom = schema(Origin::Custom, "stable.example.com", "v1", "CronTab");
        assert_eq!(custom, "com.example.stable.v1.CronTab");
    }

    #[test]
    fn groups_lose_their_common_suffix() {
        assert_eq!(tag("", "v1"), "core_v1");
        assert_eq!(tag("rbac.authorization.k8s.io", "v1"), "rbacAuthorization_v1");
        assert_eq!(group_version("internal.apiserver.k8s.io", "v1alpha1"), "InternalApiserverV1alpha1");
    }
}
