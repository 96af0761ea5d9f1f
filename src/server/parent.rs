//! Servers as parents of forks ([`branches`](super::branches)), and what a fork takes over.

use std::sync::{Arc, Weak};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::commons::Commons;
use super::config::{BranchLimits, Config};
use super::replacements::Replacements;
use crate::api::Api;
use crate::api::catalog::Served;
use crate::api::followers::api_services::discovered::Discovered;
use crate::api::followers::api_services::openapi::OpenApiParts;
use crate::api::followers::definitions::Inheritance;
use crate::auth::authn::Authenticator;
use crate::cache::State;
use crate::http::documents::publications::Publication;
use crate::http::door::Door;
use crate::http::test_endpoints::Controls;
use crate::http::tls::ClientTrust;
use crate::runtime::Runtime;

/// A running server that can be forked. It keeps nothing of the server alive. Clones share everything.
#[derive(Clone)]
pub struct Parent(pub(super) Arc<Inner>);

/// The parts of a server that its forks are made of.
pub(super) struct Inner {
    pub(super) api: Weak<Api>,
    pub(super) door: Weak<Door>,
    pub(super) config: Config,
    pub(super) commons: Commons,
    pub(super) runtime: Runtime,
    pub(super) room: Arc<Semaphore>,
    pub(super) controls: Option<Arc<Controls>>,
    pub(super) publication: Arc<Publication>,
    pub(super) replacements: Replacements,
}

/// The beginning of a fork: the state that its cache holds from the start, and what it takes over from its parent.
pub struct Origin {
    pub state: State,
    /// The controls that the fork has for tests.
    pub controls: Option<Arc<Controls>>,
    /// The built-in resources, which are the parent's.
    pub built_in: Arc<Served>,
    /// The documents of extension servers, which a fork cannot ask.
    pub discovered: Arc<Discovered>,
    pub openapi: Arc<OpenApiParts>,
    pub inheritance: Inheritance,
    /// The certificates in PEM by which clients verify the listener.
    pub server_authority: Option<String>,
    /// The documents about the built-in resources.
    pub publication: Arc<Publication>,
    pub commons: Commons,
    /// See [`Parent::room`].
    pub room: Arc<Semaphore>,
    pub authenticator: Authenticator,
    pub client_trust: Option<ClientTrust>,
    /// The name of the parent's cluster in its process.
    pub cluster: Option<Arc<str>>,
    /// Cancelled when the parent drains.
    pub draining: CancellationToken,
}

impl Parent {
    pub fn new(
        api: &Arc<Api>,
        door: &Arc<Door>,
        (config, commons): (&Config, &Commons),
        (room, controls): (Arc<Semaphore>, Option<Arc<Controls>>),
        publication: Arc<Publication>,
    ) -> Self {
        let (runtime, replacements) = (api.runtime.clone(), Replacements::new(&api.runtime.random));
        let (api, door) = (Arc::downgrade(api), Arc::downgrade(door));
        let (config, commons) = (config.clone(), commons.clone());
        Self(Arc::new(Inner {
            api,
            door,
            config,
            commons,
            runtime,
            room,
            controls,
            publication,
            replacements,
        }))
    }

    /// A permit for each branch that the server and its branches may have together.
    pub fn room(&self) -> &Arc<Semaphore> {
        &self.0.room
    }

    pub(super) fn limits(&self) -> BranchLimits {
        self.0.config.branches
    }

    pub(super) fn controls(&self) -> Option<Arc<Controls>> {
        self.0.controls.clone()
    }

    /// `None` once the server has stopped.
    pub(super) fn api(&self) -> Option<Arc<Api>> {
        self.0.api.upgrade()
    }
}

impl Origin {
    /// Makes a fork's door let in whom its parent lets in, until the parent drains.
    pub fn let_in(&self, door: &mut Door, draining: &CancellationToken) {
        door.authenticator = self.authenticator.clone();
        door.client_trust = self.client_trust.clone();
        door.cluster = self.cluster.clone();
        door.listener_shutdown = Some(draining.clone());
    }
}
