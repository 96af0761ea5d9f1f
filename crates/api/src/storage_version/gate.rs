//! The gate before writes. Until this server has registered how it encodes resources, only those writes pass that
//! persist nothing, or that other parts need in order to start (upstream's `WithStorageVersionPrecondition`).

use tokio::sync::watch;

use crate::error::Error;
use crate::request::Request;
use crate::schema::resource::Verb;
use crate::user::{MASTERS, User};

/// A gate that opens once. Clones share its state.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<State>);

#[derive(Clone, Debug)]
enum State {
    /// `last_error` is why the last attempt to register failed.
    Closed {
        tried: bool,
        last_error: Option<String>,
    },
    Open,
}

impl Gate {
    /// An open gate, for servers that do not register.
    pub fn open() -> Self {
        Self(watch::Sender::new(State::Open))
    }

    pub fn closed() -> Self {
        Self(watch::Sender::new(State::Closed { tried: false, last_error: None }))
    }

    /// Opens the gate, since the server has registered.
    pub fn registered(&self) {
        self.0.send_replace(State::Open);
    }

    /// Notes a failed attempt to register, with the error if registration itself has caused it. An open gate stays
    /// open.
    pub fn failed(&self, error: Option<String>) {
        self.0.send_if_modified(|state| match state {
            State::Closed { tried, last_error } => {
                *tried = true;
                if error.is_some() {
                    *last_error = error;
                }
                true
            }
            State::Open => false,
        });
    }

    /// Returns once the gate is open.
    pub async fn opened(&self) {
        let _ = self.0.subscribe().wait_for(|state| matches!(state, State::Open)).await;
    }

    /// Returns once the gate is open or an attempt to open it has failed.
    pub async fn tried(&self) {
        let tried = |state: &State| matches!(state, State::Open | State::Closed { tried: true, .. });
        let _ = self.0.subscribe().wait_for(tried).await;
    }

    /// Accepts a write, or fails with a text that says what it waits for.
    pub fn admit(&self, write: &Request<'_>) -> Result<(), Error> {
        let state = self.0.borrow();
        let State::Closed { last_error, .. } = &*state else { return Ok(()) };
        if is_needed_to_start(write) {
            return Ok(());
        }
        let resource = write.target.resource.group_resource();
        Err(Error::not_registered(&resource, last_error.as_deref()))
    }
}

fn is_needed_to_start(write: &Request<'_>) -> bool {
    let definition = &write.target.resource.definition;
    match (definition.group().as_str(), &*definition.plural) {
        ("internal.apiserver.k8s.io", "storageversions") => true,
        ("", "namespaces") => {
            write.verb == Verb::Create
                && write.user.name == User::apiserver().name
                && write.user.is_in(MASTERS)
        }
        ("coordination.k8s.io", "leases") => write.target.namespace == "kube-system",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Target;
    use crate::catalog::Served;
    use crate::codec::at_rest::StorageMediaType;
    use crate::kinds::built_in;
    use crate::schema::names::Gvr;
    use crate::schema::registry::Registry;
    use crate::storage::ResourceId;

    fn resources() -> Served {
        let registry = Arc::new(Registry::new(built_in::definitions()));
        let ids = registry.stored().zip(1..).map(|((name, _), id)| (name.clone(), ResourceId(id))).collect();
        Served::new(registry.clone(), &ids, StorageMediaType::default(), crate::concerns::of_definition)
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
}
