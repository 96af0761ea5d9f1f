//! The resources that are served, a generation at a time.
//!
//! A [`Served`] never changes. A request takes the newest one at the door and keeps it, so that it never sees half a change;
//! documents, the collector of garbage and the registration of this server follow by [`Catalog::subscribe`]. Built-in
//! resources are the same in every generation: whoever needs one of them borrows it from [`Cluster::resources`](crate::cluster::Cluster). A generation
//! is made of the one before, by what changes: a definition costs the same however many there are.
//!
//! A resource is in the cache before a generation serves it, and leaves the cache after the last generation that does.

#[cfg(test)]
pub mod samples;
pub(crate) mod served;

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, MutexGuard, watch};

pub use self::served::Served;

/// The generations of what is served.
pub struct Catalog {
    newest: ArcSwap<Served>,
    published: watch::Sender<Arc<Served>>,
    /// Held by whoever makes the next generation.
    turn: Mutex<()>,
}

impl Catalog {
    /// Serves what is built in.
    pub fn new(built_in: Arc<Served>) -> Self {
        Self {
            newest: ArcSwap::new(built_in.clone()),
            published: watch::Sender::new(built_in),
            turn: Mutex::new(()),
        }
    }

    /// Waits until nobody else makes the next generation.
    pub async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    /// The newest generation.
    pub fn served(&self) -> Arc<Served> {
        self.newest.load_full()
    }

    /// Tells of every generation that follows; the newest one is there at once.
    pub fn subscribe(&self) -> watch::Receiver<Arc<Served>> {
        self.published.subscribe()
    }

    pub fn publish(&self, served: Arc<Served>) {
        self.newest.store(served.clone());
        self.published.send_replace(served);
    }
}

#[cfg(test)]
mod tests;
