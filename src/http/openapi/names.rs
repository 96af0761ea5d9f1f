//! Names of schemas, operations and tags.

use crate::schema::registry::Origin;

pub(super) const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
pub(super) const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
pub(super) const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
pub(super) const PATCH: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";

/// `io.k8s.api.apps.v1.Deployment`: the Go package of a built-in kind, the reversed group of a custom one.
pub(super) fn schema(origin: Origin, group: &str, version: &str, kind: &str) -> String {
    let package = match (origin, group) {
        (Origin::Custom, _) => group.rsplit('.').collect::<Vec<_>>().join("."),
        (_, "") => "io.k8s.api.core".to_owned(),
        (_, "internal.apiserver.k8s.io") => "io.k8s.api.apiserverinternal".to_owned(),
        (_, "apiextensions.k8s.io") => "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions".to_owned(),
        (_, "apiregistration.k8s.io") => "io.k8s.kube-aggregator.pkg.apis.apiregistration".to_owned(),
        _ => format!("io.k8s.api.{}", group.split('.').next().unwrap_or(group)),
    };
    format!("{package}.{version}.{kind}")
}

/// `apps_v1`, `rbacAuthorization_v1`.
pub(super) fn tag(group: &str, version: &str) -> String {
    let camel = group_camel(group);
    let mut chars = camel.chars();
    let first = chars.next().map(|c| c.to_ascii_lowercase());
    format!("{}{}_{version}", first.map(String::from).unwrap_or_default(), chars.as_str())
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

fn group_camel(group: &str) -> String {
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
