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
