//! Tests of `schema::registry`.

use std::sync::Arc;

use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::kind::Kind;
use rowplane_objects::schema::names::GroupResource;
use rowplane_objects::schema::names::GroupVersion;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::schema::names::Gvr;
use rowplane_objects::schema::registry::Registry;
use rowplane_objects::schema::registry::order::compare_versions;
use rowplane_objects::schema::resource::Origin;
use rowplane_objects::schema::resource::ResourceDefinition;
use rowplane_objects::schema::resource::Scope;
use rowplane_objects::schema::resource::Storage;

fn built_in() -> Registry {
    Registry::new(built_in::definitions())
}

fn custom(gvk: Gvk, plural: &str) -> ResourceDefinition {
    let mut definition = (*built_in().lookup(&Gvr::fixed("v1", "configmaps")).unwrap()).clone();
    let group = gvk.group().clone();
    definition.kind = Kind::opaque(gvk);
    (definition.origin, definition.group_priority) = (Origin::Custom, 1_000);
    definition.plural = plural.into();
    definition.storage = Storage::Table {
        resource: GroupResource::new(&group, plural),
        version: GroupVersion::new(&group, "v1"),
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
    assert!(registry.groups().iter().all(|g| g.origin == Origin::BuiltIn));
}

#[test]
fn versions_are_kube_aware() {
    let mut versions =
        ["foo10", "v1", "v1alpha1", "v10", "v11alpha2", "v11beta2", "v2", "v3beta1", "foo1", "v02"];
    versions.sort_by(|a, b| compare_versions(a, b));
    let expected =
        ["v10", "v2", "v1", "v11beta2", "v3beta1", "v11alpha2", "v1alpha1", "foo1", "foo10", "v02"];
    assert_eq!(versions, expected);
    let registry = built_in();
    let autoscaling = registry.group("autoscaling").unwrap();
    assert_eq!(autoscaling.versions.iter().map(|v| v.version()).collect::<Vec<_>>(), ["v2", "v1"]);
}

#[test]
fn lookups_agree() {
    let registry = built_in();
    let pods = registry.lookup(&Gvr::fixed("v1", "pods")).unwrap();
    assert_eq!((pods.kind_name().as_str(), pods.scope), ("Pod", Scope::Namespaced));
    assert!(Arc::ptr_eq(&pods, &registry.by_kind(&Gvk::fixed("v1", "Pod")).unwrap()));
    assert!(Arc::ptr_eq(&pods, &registry.for_storage(&GroupResource::new("", "pods")).unwrap()));
    assert!(
        registry.lookup(&Gvr::fixed("v1", "pod")).is_none()
            && registry.lookup(&Gvr::fixed("apps/v1", "pods")).is_none()
    );
    assert!(
        registry.version(&GroupVersion::fixed("apps/v1")).is_some()
            && registry.version(&GroupVersion::fixed("apps/v2")).is_none()
    );
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
    definitions.push(custom(Gvk::fixed("example.com/v1beta1", "Widget"), "widgets"));
    definitions.push(custom(Gvk::fixed("example.com/v1", "Widget"), "widgets"));
    definitions.push(custom(Gvk::fixed("v1", "Impostor"), "pods"));
    let registry = Registry::new(definitions);
    let last = registry.groups().last().unwrap();
    assert_eq!((&*last.name, last.origin), ("example.com", Origin::Custom));
    assert_eq!(last.versions[0].version(), "v1");
    assert_eq!(registry.lookup(&Gvr::fixed("v1", "pods")).unwrap().kind_name(), "Pod");
    let stored = registry.for_storage(&GroupResource::new("example.com", "widgets")).unwrap();
    assert_eq!(stored.version(), "v1");
}

#[test]
fn changes_leave_what_would_be_built_anew() {
    let widgets = |version: &'static str| Arc::new(custom(Gvk::fixed(version, "Widget"), "widgets"));
    let (old, new) = (widgets("example.com/v1"), widgets("example.com/v1"));
    let (beta, other) = (widgets("example.com/v1beta1"), widgets("other.com/v1"));
    let first = Registry::of(built_in::definitions().into_iter().map(Arc::new));
    let built_in: Vec<_> = first.definitions().cloned().collect();
    /// Definitions that are removed and added, and those that are left besides the built-in ones.
    type Step<'a> = [&'a [&'a Arc<ResourceDefinition>]; 3];
    let steps: [Step<'_>; 6] = [
        [&[], &[&old, &beta], &[&old, &beta]],
        [&[], &[&other, &new], &[&old, &beta, &other]],
        [&[&old], &[&new], &[&new, &beta, &other]],
        [&[&new], &[], &[&beta, &other]],
        [&[&beta], &[&old], &[&old, &other]],
        [&[&old, &other], &[], &[]],
    ];
    let mut registry = first.clone();
    for [removed, added, left] in steps {
        registry = registry.with_changes(removed.iter().copied(), added.iter().copied().cloned());
        let anew = Registry::of(built_in.iter().chain(left.iter().copied()).cloned());
        let shown = |registry: &Registry| {
            let definitions: Vec<_> = registry.definitions().map(Arc::as_ptr).collect();
            let groups: Vec<_> = registry.groups().iter().map(|group| group.name.clone()).collect();
            let mut stored: Vec<_> =
                registry.stored().map(|(name, found)| (name.clone(), Arc::as_ptr(found))).collect();
            stored.sort_unstable();
            (definitions, groups, stored)
        };
        assert_eq!(shown(&registry), shown(&anew));
    }
    let shared = first.groups().iter().zip(registry.groups());
    assert!(
        shared.into_iter().all(|(before, after)| Arc::ptr_eq(before, after)),
        "untouched groups are shared"
    );
}
