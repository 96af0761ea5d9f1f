//! The discovery and OpenAPI documents of each generation of served resources.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use super::discovery::{Documents, Extensions};
use super::openapi::OpenApi;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::wall_clock::WallClock;

/// The documents of one generation.
pub struct Publication {
    generation: u64,
    /// The generations of the APIServices, and of what extension servers have said.
    extensions: [u64; 3],
    pub documents: Documents,
    /// Made on first use.
    pub openapi: Arc<OpenApi>,
}

/// The newest publication. The next one is made when a document of a newer generation is requested.
pub struct Publications {
    /// `host:port` of the server, which discovery returns to clients.
    address: String,
    clock: WallClock,
    first: Arc<Publication>,
    newest: ArcSwap<Publication>,
    /// The lock that is held while the next publication is made.
    turn: Mutex<()>,
}

impl Publication {
    /// The publication of the built-in resources. `address` is `host:port` of the server.
    pub fn first(built_in: &Served, address: &str, clock: &WallClock) -> Self {
        Self::new(built_in, &Extensions::default(), (address, clock), None)
    }

    /// Makes the publication of a generation. Documents that are the same as in the publication before are taken from there.
    fn new(
        served: &Served,
        extensions: &Extensions,
        (address, clock): (&str, &WallClock),
        before: Option<&Self>,
    ) -> Self {
        let registry = &served.registry().discoverable();
        let documents = before.map(|before| &before.documents);
        Self {
            generation: served.generation,
            extensions: generations(extensions),
            documents: Documents::build(registry, extensions, address, documents),
            openapi: Arc::new(OpenApi::new(
                registry.clone(),
                extensions.openapi.clone(),
                clock,
                before.map(|before| &*before.openapi),
            )),
        }
    }
}

impl Publications {
    /// Publications that begin with that of the built-in resources.
    pub fn new(first: Arc<Publication>, address: String, clock: WallClock) -> Self {
        Self { address, clock, newest: ArcSwap::new(first.clone()), first, turn: Mutex::new(()) }
    }

    /// The publication of the built-in resources.
    pub fn first(&self) -> &Arc<Publication> {
        &self.first
    }

    /// The documents of these generations or of newer ones.
    pub async fn of(&self, served: &Arc<Served>, extensions: Extensions) -> Result<Arc<Publication>, Error> {
        if let Some(found) = self.kept(served, &extensions) {
            return Ok(found);
        }
        let _turn = self.turn.lock().await;
        if let Some(found) = self.kept(served, &extensions) {
            return Ok(found);
        }
        // It takes some milliseconds, for which other requests need not wait.
        let (served, address, clock) = (served.clone(), self.address.clone(), self.clock.clone());
        let before = self.newest.load_full();
        let made = tokio::task::spawn_blocking(move || {
            Publication::new(&served, &extensions, (address.as_str(), &clock), Some(&before))
        })
        .await;
        let made = Arc::new(made.map_err(|died| Error::Internal(died.to_string()))?);
        self.newest.store(made.clone());
        Ok(made)
    }

    fn kept(&self, served: &Served, extensions: &Extensions) -> Option<Arc<Publication>> {
        let newest = self.newest.load_full();
        let is_new = newest.extensions.iter().zip(generations(extensions)).all(|(own, other)| *own >= other);
        (newest.generation >= served.generation && is_new).then_some(newest)
    }
}

fn generations(extensions: &Extensions) -> [u64; 3] {
    [extensions.services.generation, extensions.discovered.generation, extensions.openapi.generation]
}
