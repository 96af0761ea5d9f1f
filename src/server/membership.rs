//! The place of a server in its process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Span;

use super::commons::Commons;
use super::error::Error;
use super::listener::Listener;
use crate::http::router::{Place, Resident, Router};
use crate::http::server::{Ending, Responder, Routes};
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::tasks::Tasks;

/// The state of a process, which its servers hold, too.
pub(super) struct Inner {
    pub commons: Commons,
    pub router: Router,
    pub listener: Option<Listener>,
    pub members: Mutex<BTreeMap<Arc<str>, Arc<Metrics>>>,
    pub runtime: Runtime,
    pub ending: Ending,
}

impl Inner {
    /// The bound address; `None` without a port.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.as_ref().map(|listener| listener.address)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.runtime.tasks.stop();
        self.ending.abort();
    }
}

/// The place of a server in its process, which is given up when this value is dropped.
pub(super) struct Membership {
    process: Arc<Inner>,
    name: Arc<str>,
    place: Place,
    /// Whether the place is the server's.
    is_served: bool,
    metrics: Arc<Metrics>,
    span: Span,
    /// Ends the server's streams on connections of the process's listener, when that or the server drains.
    draining: CancellationToken,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.draining.cancel();
        if self.is_served {
            self.process.router.remove(&self.place);
        }
        lock(&self.process.members).remove(&self.name);
    }
}

impl Membership {
    pub fn join(process: &Arc<Inner>, name: &str, place: Place) -> Result<Self, Error> {
        let (name, metrics): (Arc<str>, _) = (name.into(), Arc::new(Metrics::default()));
        metrics.know_cluster(&name);
        match lock(&process.members).entry(name.clone()) {
            Entry::Occupied(_) => return Err(Error::NameTaken(name.to_string())),
            Entry::Vacant(free) => free.insert(metrics.clone()),
        };
        // Of the highest level, so that each line that is printed has it.
        let span = tracing::error_span!("cluster", name = &*name);
        let draining = process.ending.draining.child_token();
        Ok(Self { process: process.clone(), name, place, is_served: false, metrics, span, draining })
    }

    pub fn commons(&self) -> &Commons {
        &self.process.commons
    }

    pub fn listener(&self) -> Option<&Listener> {
        self.process.listener.as_ref()
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub fn draining(&self) -> &CancellationToken {
        &self.draining
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Gives the server metrics and tasks of its own, which name the cluster.
    pub fn name_runtime(&self, runtime: &mut Runtime) {
        runtime.metrics = self.metrics.clone();
        runtime.tasks = Tasks::new().within(self.span.clone());
    }

    /// Serves the routes from now on. Returns the address of the listener, if there is one.
    pub fn serve(&mut self, routes: &Routes, under_way: &TaskTracker) -> Result<Option<SocketAddr>, Error> {
        let resident =
            Resident { routes: routes.clone(), under_way: under_way.clone(), span: self.span.clone() };
        let resident: Arc<dyn Responder> = Arc::new(resident);
        self.process.router.add(&self.place, &resident)?;
        self.is_served = true;
        Ok(self.process.address())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
