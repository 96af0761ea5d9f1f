//! Branches: forks of this cluster below `/branches/NAME`, and the endpoints that make, show and end them
//! (`/rowplane/v1/branches`). Who may do that has the verb `branch` on these paths; what he may do on a branch, its own roles
//! say.

mod changes;
mod endpoints;
pub mod paths;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use axum::extract::Request;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use metrics::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub use self::changes::Changed;
pub use self::endpoints::serve;
use self::paths::BELOW;
use super::router::{Below, without};
use super::server::Responder;
use crate::api::verbs::snapshot::Snapshot;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::tree::Value;

/// The values of Secrets in a branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SecretValues {
    /// Others stand in their place.
    #[default]
    Replaced,
    Kept,
}

/// Makes forks of a server.
pub trait Forks: Send + Sync + 'static {
    /// Makes one that begins with a snapshot of the server.
    fn fork(
        &self,
        snapshot: Snapshot,
        secrets: SecretValues,
    ) -> BoxFuture<'static, Result<Box<dyn Fork>, String>>;
}

/// A running fork, which ends when it is dropped.
pub trait Fork: Send + Sync + 'static {
    fn responder(&self) -> Arc<dyn Responder>;

    /// The revision of the state that it was made from, and the newest one.
    fn revisions(&self) -> (Revision, Revision);

    /// The bytes of values that it holds beyond that state, and how many it may hold.
    fn bytes(&self) -> BoxFuture<'_, (u64, u64)>;

    /// The rules by which it leaves out what would leave it, a line each.
    fn cut(&self) -> Vec<&'static str>;

    /// The objects that differ from that state.
    fn changes(&self) -> Vec<Changed>;

    /// Lets its requests finish for a short time, and ends it.
    fn stop(self: Box<Self>) -> BoxFuture<'static, ()>;
}

/// The branches of a cluster.
pub struct Branches {
    forks: Arc<dyn Forks>,
    /// A permit for each branch that there may be, in the branches of branches, too.
    room: Arc<Semaphore>,
    alive: RwLock<BTreeMap<Arc<str>, Arc<Branch>>>,
    count: Gauge,
}

struct Branch {
    name: Arc<str>,
    /// The path of its URL below that of the cluster.
    path: Arc<str>,
    created: Timestamp,
    /// The user who has made it.
    user: String,
    secrets: SecretValues,
    /// See [`Snapshot::missing`].
    missing: Vec<GroupResource>,
    fork: Box<dyn Fork>,
    responder: Arc<dyn Responder>,
    _room: OwnedSemaphorePermit,
}

impl Branches {
    pub fn new(forks: Arc<dyn Forks>, room: Arc<Semaphore>, count: Gauge) -> Self {
        Self { forks, room, alive: RwLock::default(), count }
    }

    /// The branch that a request is for, whose URL is then as the branch knows it.
    pub fn find(&self, request: &mut Request) -> Option<Arc<dyn Responder>> {
        let rest = request.uri().path().strip_prefix(BELOW)?;
        let name = rest.split('/').next().unwrap_or_default();
        let branch = self.get(name)?;
        *request.uri_mut() = without(request.uri(), branch.path.len())?;
        let below = match request.extensions().get::<Below>() {
            Some(Below(cluster)) => format!("{cluster}{}", branch.path).into(),
            None => branch.path.clone(),
        };
        request.extensions_mut().insert(Below(below));
        Some(branch.responder.clone())
    }

    fn get(&self, name: &str) -> Option<Arc<Branch>> {
        self.alive.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn all(&self) -> Vec<Arc<Branch>> {
        self.alive.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Adds a branch, unless there is one of that name.
    fn add(&self, branch: Branch) -> Result<Arc<Branch>, Box<Branch>> {
        let mut alive = self.alive.write().unwrap_or_else(PoisonError::into_inner);
        if alive.contains_key(&branch.name) {
            return Err(Box::new(branch));
        }
        let branch = Arc::new(branch);
        alive.insert(branch.name.clone(), branch.clone());
        self.count.set(alive.len() as f64);
        Ok(branch)
    }

    fn remove(&self, name: &str) -> Option<Arc<Branch>> {
        let mut alive = self.alive.write().unwrap_or_else(PoisonError::into_inner);
        let removed = alive.remove(name);
        self.count.set(alive.len() as f64);
        removed
    }
}

/// The text of a JSON document.
fn text(value: &Value) -> String {
    format!("{value}\n")
}
