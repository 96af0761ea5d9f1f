//! The gate before writes: until this server has registered how it encodes resources, only those pass that persist
//! nothing, or that others need to start (upstream's `WithStorageVersionPrecondition`).

use tokio::sync::watch;

use super::error::Error;
use crate::schema::names::GroupResource;
use crate::user::{MASTERS, User};

/// Opens once. Clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<State>);

#[derive(Clone, Debug)]
enum State {
    /// With what went wrong last.
    Closed {
        tried: bool,
        last_error: Option<String>,
    },
    Open,
}

/// A write that asks to pass.
pub struct Write<'a> {
    pub resource: &'a GroupResource,
    pub namespace: &'a str,
    pub creates: bool,
    pub user: &'a User,
}

impl Gate {
    /// For servers that do not register.
    pub fn open() -> Self {
        Self(watch::Sender::new(State::Open))
    }

    pub fn closed() -> Self {
        Self(watch::Sender::new(State::Closed { tried: false, last_error: None }))
    }

    /// The registration is there.
    pub fn registered(&self) {
        self.0.send_replace(State::Open);
    }

    /// The registration is not there yet; why, if it is its own fault. An open gate stays open.
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

    /// Lets a write pass, or tells what it waits for.
    pub fn admit(&self, write: &Write<'_>) -> Result<(), Error> {
        let state = self.0.borrow();
        let State::Closed { last_error, .. } = &*state else { return Ok(()) };
        if write.is_needed_to_start() {
            return Ok(());
        }
        Err(Error::not_registered(write.resource, last_error.as_deref()))
    }
}

impl Write<'_> {
    fn is_needed_to_start(&self) -> bool {
        match (&*self.resource.group, &*self.resource.plural) {
            ("internal.apiserver.k8s.io", "storageversions") => true,
            ("", "namespaces") => {
                self.creates && self.user.name == User::apiserver().name && self.user.is_in(MASTERS)
            }
            ("coordination.k8s.io", "leases") => self.namespace == "kube-system",
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(gate: &Gate, plural: (&str, &str), namespace: &str, user: &User) -> bool {
        let resource = GroupResource::new(plural.0, plural.1);
        let write = Write { resource: &resource, namespace, creates: true, user };
        gate.admit(&write).is_ok()
    }

    #[test]
    fn s22_s23_what_passes_a_closed_gate() {
        let gate = Gate::closed();
        let admin = User { name: "admin".to_owned(), groups: vec![MASTERS.to_owned()], ..User::default() };
        let (namespaces, leases) = (("", "namespaces"), ("coordination.k8s.io", "leases"));
        for (resource, namespace, user, passes) in [
            (("internal.apiserver.k8s.io", "storageversions"), "", &admin, true),
            (leases, "kube-system", &admin, true),
            (leases, "default", &admin, false),
            (namespaces, "", &User::apiserver(), true),
            (namespaces, "", &admin, false),
            (("", "pods"), "kube-system", &admin, false),
            (("apiextensions.k8s.io", "customresourcedefinitions"), "", &admin, false),
        ] {
            assert_eq!(admit(&gate, resource, namespace, user), passes, "{resource:?} {namespace}");
        }
        gate.registered();
        gate.failed(Some("late".to_owned()));
        assert!(admit(&gate, ("", "pods"), "default", &admin));
    }

    #[test]
    fn s21_s27_the_text_of_a_refusal() {
        let gate = Gate::closed();
        let text = |resource: GroupResource| {
            let user = User::default();
            let write = Write { resource: &resource, namespace: "", creates: true, user: &user };
            gate.admit(&write).map_err(|error| error.to_string())
        };
        let refused = |resource: &str, error: &str| {
            Err(format!(
                "wait for storage version registration to complete for resource: {resource}, last seen error: {error}"
            ))
        };
        assert_eq!(text(GroupResource::new("", "configmaps")), refused("configmaps", "<nil>"));
        gate.failed(None);
        assert_eq!(text(GroupResource::new("apps", "deployments")), refused("deployments.apps", "<nil>"));
        gate.failed(Some("no".to_owned()));
        gate.failed(None);
        assert_eq!(text(GroupResource::new("", "configmaps")), refused("configmaps", "no"));
    }
}
