use super::*;
use crate::kinds::built_in;
use crate::schema::resource::Scope;

fn built_in() -> Registry {
    Registry::new(built_in::definitions())
}

fn custom(group: &str, version: &str, plural: &str, kind: &str) -> ResourceDefinition {
    let mut definition = (*built_in().lookup("", "v1", "configmaps").unwrap()).clone();
    definition.group = group.into();
    definition.version = version.into();
    definition.plural = plural.into();
    definition.kind = kind.into();
    definition.storage = Storage::Table {
        resource: GroupResource::new(group, plural),
        api_version: format!("{group}/v1").into(),
    };
    definition
}

#[test]
fn groups_come_by_priority() {
    let registry = built_in();
    let names: Vec<&str> = registry.groups().iter().map(|g| &*g.name).collect();
    assert_eq!(names[..4], ["apiregistration.k8s.io", "", "apps", "events.k8s.io"]);
    let at = |name: &str| names.iter().position(|n| *n == name).unwrap();
    assert_eq!(at("apiextensions.k8s.io"), at("admissionregistration.k8s.io") + 1, "ties go by name");
    assert_eq!(names.last(), Some(&"storagemigration.k8s.io"));
    assert!(registry.groups().iter().all(|g| g.origin == Origin::BuiltIn), "a group has no priority");
}

#[test]
fn versions_are_kube_aware() {
    let mut versions =
        ["foo10", "v1", "v1alpha1", "v10", "v11alpha2", "v11beta2", "v2", "v3beta1", "foo1", "v02"];
    versions.sort_by(|a, b| order::compare_versions(a, b));
    let expected =
        ["v10", "v2", "v1", "v11beta2", "v3beta1", "v11alpha2", "v1alpha1", "foo1", "foo10", "v02"];
    assert_eq!(versions, expected);
    let registry = built_in();
    let autoscaling = registry.group("autoscaling").unwrap();
    assert_eq!(autoscaling.versions.iter().map(|v| &*v.version).collect::<Vec<_>>(), ["v2", "v1"]);
}

#[test]
fn lookups_agree() {
    let registry = built_in();
    let pods = registry.lookup("", "v1", "pods").unwrap();
    assert_eq!((&*pods.kind, pods.scope), ("Pod", Scope::Namespaced));
    assert!(Arc::ptr_eq(&pods, &registry.by_kind("", "v1", "Pod").unwrap()));
    assert!(Arc::ptr_eq(&pods, &registry.for_storage(&GroupResource::new("", "pods")).unwrap()));
    assert!(registry.lookup("", "v1", "pod").is_none() && registry.lookup("apps", "v1", "pods").is_none());
    assert!(registry.group_version_exists("apps", "v1") && !registry.group_version_exists("apps", "v2"));
    assert_eq!(registry.definitions().count(), built_in::definitions().len());
}

#[test]
fn shared_storage_yields_the_stored_version() {
    let registry = built_in();
    let events = registry.for_storage(&GroupResource::new("", "events")).unwrap();
    assert_eq!(events.api_version(), "v1");
    assert!(registry.for_storage(&GroupResource::new("events.k8s.io", "events")).is_none());
    let scalers = registry.for_storage(&GroupResource::new("autoscaling", "horizontalpodautoscalers"));
    assert_eq!(scalers.unwrap().api_version(), "autoscaling/v2");
}

#[test]
fn custom_resources_come_last_and_cannot_replace() {
    let mut definitions = built_in::definitions();
    definitions.push(custom("example.com", "v1beta1", "widgets", "Widget"));
    definitions.push(custom("example.com", "v1", "widgets", "Widget"));
    definitions.push(custom("", "v1", "pods", "Impostor"));
    let registry = Registry::new(definitions);
    let last = registry.groups().last().unwrap();
    assert_eq!((&*last.name, last.origin), ("example.com", Origin::Custom));
    assert_eq!(&*last.versions[0].version, "v1");
    assert_eq!(&*registry.lookup("", "v1", "pods").unwrap().kind, "Pod");
    let stored = registry.for_storage(&GroupResource::new("example.com", "widgets")).unwrap();
    assert_eq!(&*stored.version, "v1");
}
