//! Forks: servers that begin with the state of another one, their parent, and write beside it.
//!
//! A fork shares the parent's objects until it changes them, so it is made in no time and takes no memory for what it has in
//! common with the parent. Users and rights are the parent's: the parent's credentials are accepted, and judged by the roles
//! of the fork. What the fork issues itself is signed with a key of its own, which the parent does not know. Nothing leaves a
//! fork ([`cut`]).

mod branch;
pub mod cut;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::Error;
use super::parent::{Inner, Origin, Parent};
use super::{Server, application, start};
use crate::api::verbs::snapshot::Snapshot;
use crate::auth::authn::Authenticator;
use crate::cache::State;
use crate::egress::Egresses;
pub use crate::http::branches::SecretValues;
use crate::http::test_endpoints::Controls;
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::schema::names::Gvr;
use crate::storage::memory::Memory;
use crate::tasks::Tasks;

const SECRETS: Gvr = Gvr::fixed("v1", "secrets");

impl Parent {
    /// Starts a fork of the newest state, or of that at a time.
    pub async fn fork(&self, at: Option<SystemTime>, secrets: SecretValues) -> Result<Server, Error> {
        let api = self.api().ok_or_else(stopped)?;
        let snapshot = async {
            let Some(at) = at else { return api.snapshot().await };
            let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            let moment = api.moment_at(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)).await?;
            api.snapshot_at(moment.revision).await
        };
        let snapshot = snapshot.await.map_err(|error| Error::Build(error.into()))?;
        Ok(self.fork_of(snapshot, secrets).await?.0)
    }

    /// Starts a fork of a snapshot. Returns the state that it begins with, too.
    pub(super) async fn fork_of(
        &self,
        snapshot: Snapshot,
        secrets: SecretValues,
    ) -> Result<(Server, State), Error> {
        let Inner { config, commons, runtime, room, publication, replacements, .. } = &*self.0;
        let (api, door) = self.0.api.upgrade().zip(self.0.door.upgrade()).ok_or_else(stopped)?;
        let Snapshot { mut state, resources, .. } = snapshot;
        if let (SecretValues::Replaced, Some(secrets)) = (secrets, api.resources.get(&SECRETS)) {
            let replaced = replacements.of(&state.objects(secrets.id));
            state.replace(secrets.id, replaced);
        }
        let controls = self.0.controls.as_ref().map(|controls| {
            let (state, resources) = (state.clone(), resources.clone());
            let base = Snapshot { state, resources, missing: Vec::new() };
            Arc::new(Controls::new(controls.snapshots.clone(), Some(base), runtime.random.fork()))
        });
        let (base, most_bytes) = (Arc::new(state.clone()), self.limits().most_bytes);
        let backend = Arc::new(Memory::fork(base, resources, most_bytes, runtime.clock.clone()));
        let contents = api.config.namespace_contents.as_ref();
        let draining = door.listener_shutdown.clone().unwrap_or_else(|| door.shutdown.clone());
        let origin = Origin {
            state: state.clone(),
            controls,
            built_in: api.resources.clone(),
            discovered: api.extensions.discovered.load_full(),
            openapi: api.extensions.openapi.load_full(),
            inheritance: api.definitions.inheritance().await,
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

fn stopped() -> Error {
    Error::Build("the server to be forked has stopped".into())
}
