//! Tests of `storage_version::gate`.

use std::sync::Arc;

use rowplane_api::Target;
use rowplane_api::catalog::Served;
use rowplane_api::error::Error;
use rowplane_api::request::Request;
use rowplane_api::storage_version::gate::Gate;
use rowplane_objects::codec::at_rest::StorageMediaType;
use rowplane_objects::kinds::built_in;
use rowplane_objects::schema::names::Gvr;
use rowplane_objects::schema::registry::Registry;
use rowplane_objects::schema::resource::Verb;
use rowplane_objects::user::MASTERS;
use rowplane_objects::user::User;
use rowplane_store::storage::ResourceId;

fn resources() -> Served {
    let registry = Arc::new(Registry::new(built_in::definitions()));
    let ids = registry.stored().zip(1..).map(|((name, _), id)| (name.clone(), ResourceId(id))).collect();
    Served::new(registry.clone(), &ids, StorageMediaType::default(), rowplane_api::concerns::of_definition)
}

fn admit(gate: &Gate, resource: &Gvr, namespace: &str, user: &User) -> Result<(), Error> {
    let resources = resources();
    let resource = resources.get(resource).expect("a resource");
    let target = Target { resource, namespace, name: "" };
    gate.admit(&Request { user, ..Request::own(Verb::Create, target) })
}

#[test]
fn storage_version_22_23_what_passes_a_closed_gate() {
    let gate = Gate::closed();
    let admin = User { name: "admin".to_owned(), groups: vec![MASTERS.to_owned()], ..User::default() };
    let (namespaces, leases) =
        (Gvr::fixed("v1", "namespaces"), Gvr::fixed("coordination.k8s.io/v1", "leases"));
    for (resource, namespace, user, passes) in [
        (Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"), "", &admin, true),
        (leases.clone(), "kube-system", &admin, true),
        (leases.clone(), "default", &admin, false),
        (namespaces.clone(), "", &User::apiserver(), true),
        (namespaces.clone(), "", &admin, false),
        (Gvr::fixed("v1", "pods"), "kube-system", &admin, false),
        (Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions"), "", &admin, false),
    ] {
        assert_eq!(admit(&gate, &resource, namespace, user).is_ok(), passes, "{resource:?} {namespace}");
    }
    gate.registered();
    gate.failed(Some("late".to_owned()));
    assert!(admit(&gate, &Gvr::fixed("v1", "pods"), "default", &admin).is_ok());
}

#[test]
fn storage_version_21_27_the_text_of_a_refusal() {
    let gate = Gate::closed();
    let text =
        |resource: &Gvr| admit(&gate, resource, "", &User::default()).map_err(|error| error.to_string());
    let configmaps = Gvr::fixed("v1", "configmaps");
    let refused = |resource: &str, error: &str| {
        Err(format!(
            "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
        ))
    };
    assert_eq!(text(&configmaps), refused("configmaps", "<nil>"));
    gate.failed(None);
    assert_eq!(text(&Gvr::fixed("apps/v1", "deployments")), refused("deployments.apps", "<nil>"));
    gate.failed(Some("no".to_owned()));
    gate.failed(None);
    assert_eq!(text(&configmaps), refused("configmaps", "no"));
}
