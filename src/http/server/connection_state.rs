//! What is known of one connection beside its protocol, shared by its requests, its responses and the sweep.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::task::Id;

use super::connections::Connections;
use super::delivery::Delivery;

/// A connection goes through these in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Serving,
    /// The peer is told to send no more requests; those under way are finished.
    Going,
    /// Nothing is waited for any more.
    Dropped,
}

impl Stage {
    const ALL: [Self; 3] = [Self::Serving, Self::Going, Self::Dropped];
}

#[derive(Debug, Default)]
pub struct Connection {
    /// A [`Stage`], the first one at first.
    stage: AtomicU8,
    /// Of the task that runs the connection.
    waker: AtomicWaker,
    authenticated: AtomicBool,
    /// The tick at which the last request came; 0 before the first.
    last_request: AtomicU64,
    /// Counts requests under way by who holds it.
    requests: OnceLock<Weak<Requests>>,
    /// Long responses that are under way.
    deliveries: Mutex<Vec<Arc<Delivery>>>,
    /// Tasks of this connection that are to end without another step, and whether there are any.
    stopped: Mutex<Vec<Id>>,
    any_stopped: AtomicBool,
}

impl Connection {
    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Acquire))]
    }

    /// Goes on to `stage`, never back.
    pub fn advance(&self, stage: Stage) {
        if self.stage.fetch_max(stage as u8, Ordering::AcqRel) < stage as u8 {
            self.waker.wake();
        }
    }

    /// Ready when the stage is behind `known`; for the one task that runs the connection.
    pub fn poll_stage(&self, context: &Context<'_>, known: Stage) -> Poll<Stage> {
        let past = || Some(self.stage()).filter(|stage| *stage > known);
        if let Some(stage) = past() {
            return Poll::Ready(stage);
        }
        self.waker.register(context.waker());
        past().map_or(Poll::Pending, Poll::Ready)
    }

    pub fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    pub fn set_authenticated(&self) {
        self.authenticated.store(true, Ordering::Relaxed);
    }

    fn serves(&self, requests: &Arc<Requests>) {
        let _ = self.requests.set(Arc::downgrade(requests));
    }

    pub fn note_request(&self, now: u64) {
        self.last_request.store(now, Ordering::Relaxed);
    }

    pub fn last_request(&self) -> u64 {
        self.last_request.load(Ordering::Relaxed)
    }

    /// Requests under way.
    pub fn active(&self) -> usize {
        self.requests.get().map_or(0, |requests| requests.strong_count().saturating_sub(1))
    }

    pub fn add_delivery(&self, delivery: Arc<Delivery>) {
        lock(&self.deliveries).push(delivery);
    }

    /// Also takes back that its task was to stop: it has ended.
    pub fn remove_delivery(&self, delivery: &Arc<Delivery>) {
        lock(&self.deliveries).retain(|other| !Arc::ptr_eq(other, delivery));
        if let Some(task) = delivery.reset_task() {
            let mut stopped = lock(&self.stopped);
            stopped.retain(|other| *other != task);
            self.any_stopped.store(!stopped.is_empty(), Ordering::Release);
        }
    }

    /// Stops the tasks of responses whose reader takes nothing for `patience`, or whose time is up; `count` is told the
    /// limits that these have reached.
    pub fn reset_stalled(&self, now: u64, patience: u64, count: impl Fn(&'static str)) {
        let deliveries = lock(&self.deliveries);
        for (delivery, why) in deliveries.iter().filter_map(|d| Some((d, d.overdue(now, patience)?))) {
            if let Some(task) = delivery.reset() {
                count(why);
                let mut stopped = lock(&self.stopped);
                stopped.push(task);
                self.any_stopped.store(true, Ordering::Release);
                drop(stopped);
                delivery.wake();
            }
        }
    }

    /// Whether the task that asks is to end: a stream of HTTP/2, or the connection itself in HTTP/1.1.
    pub fn is_stopped(&self) -> bool {
        self.any_stopped.load(Ordering::Acquire)
            && tokio::task::try_id().is_some_and(|id| lock(&self.stopped).contains(&id))
    }
}

/// Held once by a connection's service, and once by each request: until its response is made, or, if that is long, sent.
#[derive(Debug)]
pub struct Requests {
    pub connection: Arc<Connection>,
    pub connections: Arc<Connections>,
}

impl Requests {
    pub fn of(connection: Arc<Connection>, connections: Arc<Connections>) -> Arc<Self> {
        let requests = Arc::new(Self { connection: connection.clone(), connections });
        connection.serves(&requests);
        requests
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
