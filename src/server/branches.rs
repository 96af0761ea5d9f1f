//! Forks: servers that begin with the state of another one, their parent, and write beside it.
//!
//! A fork shares the parent's objects until it changes them, so it is made in no time and takes no memory for what it has in
//! common with the parent. Users and rights are the parent's: the parent's credentials are accepted, and judged by the roles
//! of the fork. What the fork issues itself is signed with a key of its own, which the parent does not know. Nothing leaves a
//! fork ([`cut`]).

mod branch;
pub mod cut;

use std::collections::HashMap;
use std::sync::Arc;

use super::error::Error;
use super::parent::{Inner, Origin, Parent};
use super::{Server, application, start};
use crate::api::catalog::Served;
use crate::auth::authn::Authenticator;
use crate::cache::State;
use crate::egress::Egresses;
pub use crate::http::branches::SecretValues;
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::schema::names::{GroupResource, Gvr};
use crate::storage::ResourceId;
use crate::storage::memory::Memory;
use crate::tasks::Tasks;

const SECRETS: Gvr = Gvr::fixed("v1", "secrets");

impl Parent {
    /// Starts a fork of the newest state.
    pub async fn fork(&self, secrets: SecretValues) -> Result<Server, Error> {
        Ok(self.fork_from(secrets, self.limits().most_bytes).await?.0)
    }

    /// Starts a fork of the newest state. Returns that state, too.
    async fn fork_from(&self, secrets: SecretValues, most_bytes: u64) -> Result<(Server, State), Error> {
        let Inner { config, commons, runtime, room, publication, replacements, .. } = &*self.0;
        let stopped = || Error::Build("the server to be forked has stopped".into());
        let (api, door) = self.0.api.upgrade().zip(self.0.door.upgrade()).ok_or_else(stopped)?;
        let mut resources = numbered(&api.catalog.served());
        let state = api.cache.fresh().await.map_err(|error| Error::Build(error.into()))?;
        // A definition may have come or gone meanwhile.
        resources.extend(numbered(&api.catalog.served()));
        resources.extend(api.hidden.numbered());
        let mut state = State::clone(&state);
        if let (SecretValues::Replaced, Some(secrets)) = (secrets, api.resources.get(&SECRETS)) {
            let replaced = replacements.of(&state.objects(secrets.id));
            state.replace(secrets.id, replaced);
        }
        let backend =
            Arc::new(Memory::fork(Arc::new(state.clone()), resources, most_bytes, runtime.clock.clone()));
        let contents = api.config.namespace_contents.as_ref();
        let draining = door.listener_shutdown.clone().unwrap_or_else(|| door.shutdown.clone());
        let origin = Origin {
            state: state.clone(),
            built_in: api.resources.clone(),
            discovered: api.extensions.discovered.load_full(),
            openapi: api.extensions.openapi.load_full(),
            schema_numbers: api.definitions.numbers(),
            server_authority: contents.and_then(|contents| contents.root_ca.clone()),
            publication: publication.clone(),
            commons: commons.clone(),
            room: room.clone(),
            authenticator: Authenticator::of_branch(&door.authenticator),
            client_trust: door.client_trust.clone(),
            cluster: door.cluster.clone(),
            draining,
        };
        let runtime = Runtime {
            clock: runtime.clock.clone(),
            random: runtime.random.fork(),
            metrics: Arc::new(Metrics::default()),
            egresses: Egresses::closed(),
            tasks: Tasks::new(),
        };
        let build = Box::new(move |environment| application::boxed_on(backend, environment));
        let at = start::At::Fork(Box::new(origin));
        Ok((start::start(cut::config(config), runtime, at, build).await?, state))
    }
}

fn numbered(served: &Served) -> HashMap<GroupResource, ResourceId> {
    served.stored().map(|resource| (resource.group_resource(), resource.id)).collect()
}
