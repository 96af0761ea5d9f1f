//! The discovery and OpenAPI documents of each generation of served resources.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};

use arc_swap::ArcSwap;
use tokio::sync::Mutex;

use super::discovery::{Documents, Extensions};
use super::openapi::OpenApi;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::wall_clock::WallClock;

/// The most past publications that are kept.
const KEPT: usize = 4;

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
    /// The publications of past generations that were asked for last.
    past: std::sync::Mutex<VecDeque<(Arc<Served>, Arc<Publication>)>>,
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
        let newest = ArcSwap::new(first.clone());
        Self { address, clock, first, newest, past: Default::default(), turn: Mutex::new(()) }
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
        let made = self.make(served.clone(), extensions).await?;
        self.newest.store(made.clone());
        Ok(made)
    }

    /// The documents of a past generation, without those of extension servers.
    pub async fn of_past(&self, served: &Arc<Served>) -> Result<Arc<Publication>, Error> {
        let find = || {
            let kept = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            kept.iter().find(|(of, _)| Arc::ptr_eq(of, served)).map(|(_, found)| found.clone())
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let _turn = self.turn.lock().await;
        if let Some(found) = find() {
            return Ok(found);
        }
        let made = self.make(served.clone(), Extensions::default()).await?;
        let mut kept = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_front((served.clone(), made.clone()));
        kept.truncate(KEPT);
        Ok(made)
    }

    /// Makes the documents of a generation. It takes some milliseconds, for which other requests need not wait.
    async fn make(&self, served: Arc<Served>, extensions: Extensions) -> Result<Arc<Publication>, Error> {
        let (address, clock) = (self.address.clone(), self.clock.clone());
        let before = self.newest.load_full();
        let made = tokio::task::spawn_blocking(move || {
            Publication::new(&served, &extensions, (address.as_str(), &clock), Some(&before))
        })
        .await;
        made.map(Arc::new).map_err(|died| Error::Internal(died.to_string()))
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
