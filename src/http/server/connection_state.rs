//! The state of one connection beside its protocol, shared by its requests, its responses and the sweep.

use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::task::Id;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::delivery::Delivery;
use super::turns::{Turn, Turns, UNKNOWN};
use super::unsent::Unsent;

/// The stages of a connection, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    Serving,
    /// The server drains, and the peer is told so at the next occasion ([`super::leaving`]).
    Leaving,
    /// The peer was told to send no more requests; running ones may finish.
    Going,
    /// The connection is closed without waiting for anything.
    Dropped,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Serving, Self::Leaving, Self::Going, Self::Dropped];
}

#[derive(Debug)]
pub struct Connection {
    /// The present [`Stage`].
    stage: AtomicU8,
    /// Wakes the connection's task.
    waker: AtomicWaker,
    authenticated: AtomicBool,
    turns: Arc<Turns>,
    /// Whether the task of a stream has begun or run since the connection was last asked.
    has_streams: AtomicBool,
    /// The task of an HTTP/2 connection, which polls short streams itself.
    task_of_streams: OnceLock<Id>,
    /// The user who has asked last, by the number that `turns` has given him.
    user: AtomicU16,
    /// Whether who has asked last is a member of `system:masters`.
    is_exempt: AtomicBool,
    /// The memory that answers of the connection hold.
    pub unsent: Unsent,
    /// The tick at which it was accepted.
    since: u64,
    /// The tick of the last request or of its answer; 0 before the first one.
    last_request: AtomicU64,
    /// Ends watches. Each connection has its own: if all watches polled one token, they would wait for its lock.
    pub draining: CancellationToken,
    /// Whether the server drains.
    leaving: AtomicBool,
    /// When the last long answer ended since then.
    resting_since: Mutex<Option<Instant>>,
    /// Counts the running requests by its references.
    requests: OnceLock<Weak<dyn Debug + Send + Sync>>,
    /// Long responses that are being sent.
    deliveries: Mutex<Vec<Arc<Delivery>>>,
    /// Tasks of this connection that must end at their next poll, and whether there are any.
    stopped: Mutex<Vec<Id>>,
    any_stopped: AtomicBool,
}

impl Connection {
    /// `unsent` counts what answers of all connections hold.
    pub fn accepted_at(tick: u64, turns: Arc<Turns>, unsent: Arc<AtomicUsize>) -> Self {
        Self {
            stage: AtomicU8::default(),
            waker: AtomicWaker::default(),
            authenticated: AtomicBool::default(),
            turns,
            has_streams: AtomicBool::default(),
            task_of_streams: OnceLock::default(),
            user: AtomicU16::new(UNKNOWN),
            is_exempt: AtomicBool::default(),
            unsent: Unsent::of(unsent),
            since: tick,
            last_request: AtomicU64::default(),
            draining: CancellationToken::default(),
            leaving: AtomicBool::default(),
            resting_since: Mutex::default(),
            requests: OnceLock::default(),
            deliveries: Mutex::default(),
            stopped: Mutex::default(),
            any_stopped: AtomicBool::default(),
        }
    }

    /// The time of this connection counts to this user of a cluster from now on.
    pub fn count_to(&self, cluster: Option<&str>, user: &str, is_exempt: bool) {
        self.user.store(self.turns.user(cluster, user), Ordering::Relaxed);
        self.is_exempt.store(is_exempt, Ordering::Relaxed);
    }

    /// The user of the last request, as a number.
    pub fn user(&self) -> u16 {
        self.user.load(Ordering::Relaxed)
    }

    /// Whether who has asked last is a member of `system:masters`.
    pub fn is_exempt(&self) -> bool {
        self.is_exempt.load(Ordering::Relaxed)
    }

    /// Polls a task of this connection, or lets others go first.
    pub fn poll_in_turn<T>(
        &self,
        turn: &mut Turn,
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        turn.poll(&self.turns, self.user.load(Ordering::Relaxed), context, poll)
    }

    /// Whether the connection lets others go first, since its user keeps the processors busy.
    pub fn stands_back(&self) -> bool {
        self.turns.stands_back(self.user.load(Ordering::Relaxed))
    }

    /// Notes the task of an HTTP/2 connection, once.
    pub fn set_task_of_streams(&self, task: Id) {
        let _ = self.task_of_streams.set(task);
    }

    /// Whether this task, the connection's own, polls streams.
    pub fn polls_streams_on(&self, task: Id) -> bool {
        self.task_of_streams.get() == Some(&task)
    }

    /// Notes that the task of a stream begins or runs, which may have something to send.
    pub fn note_stream(&self) {
        if !self.has_streams.load(Ordering::Relaxed) {
            self.has_streams.store(true, Ordering::Release);
        }
    }

    /// Whether the connection need not let others go first: its thread serves no other connection, and no stream has run whose
    /// neighbours may be about to send something, too; or somebody else keeps the processors busy.
    pub fn goes_first(&self, is_alone: bool) -> bool {
        let has_streams = self.has_streams.swap(false, Ordering::Acquire);
        is_alone && !has_streams || self.turns.is_beside_heavy(self.user.load(Ordering::Relaxed))
    }

    pub fn stage(&self) -> Stage {
        Stage::ALL[usize::from(self.stage.load(Ordering::Acquire))]
    }

    /// Advances to `stage`, never back.
    pub fn advance(&self, stage: Stage) {
        if self.stage.fetch_max(stage as u8, Ordering::AcqRel) < stage as u8 {
            self.waker.wake();
        }
    }

    /// The server drains. A peer that was told to go before is told nothing more.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Release);
        self.advance(Stage::Leaving);
        if self.stage() > Stage::Leaving {
            self.draining.cancel();
        }
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Acquire)
    }

    /// Ready when the stage is later than `known`. Only for the task of the connection.
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
        // Its reads may wait for a place among those without a credential.
        self.waker.wake();
    }

    /// The value whose references are the running requests, and one more.
    pub fn serves(&self, requests: Weak<dyn Debug + Send + Sync>) {
        let _ = self.requests.set(requests);
    }

    pub fn note_request(&self, now: u64) {
        self.last_request.store(now, Ordering::Relaxed);
    }

    pub fn last_request(&self) -> u64 {
        self.last_request.load(Ordering::Relaxed)
    }

    /// The tick at which the peer was heard of for the last time, or answered.
    pub fn last_used(&self) -> u64 {
        self.since.max(self.last_request())
    }

    /// Notes that a long answer has ended.
    pub fn rest(&self) {
        if self.is_leaving() {
            *lock(&self.resting_since) = Some(Instant::now());
        }
    }

    /// When the last long answer ended since the server drains.
    pub fn resting_since(&self) -> Option<Instant> {
        *lock(&self.resting_since)
    }

    /// The number of running requests.
    pub fn active(&self) -> usize {
        self.requests.get().map_or(0, |requests| requests.strong_count().saturating_sub(1))
    }

    pub fn add_delivery(&self, delivery: Arc<Delivery>) {
        lock(&self.deliveries).push(delivery);
    }

    /// Removes a delivery that has ended. If its task was to be stopped, that is cancelled, since it has ended.
    pub fn remove_delivery(&self, delivery: &Arc<Delivery>) {
        lock(&self.deliveries).retain(|other| !Arc::ptr_eq(other, delivery));
        self.rest();
        if let Some(task) = delivery.reset_task() {
            let mut stopped = lock(&self.stopped);
            stopped.retain(|other| *other != task);
            self.any_stopped.store(!stopped.is_empty(), Ordering::Release);
        }
    }

    /// Stops the tasks of responses whose reader has accepted nothing for `patience`, or whose time is over. `count` is
    /// called with the name of the limit.
    pub fn reset_stalled(&self, now: u64, patience: u64, count: impl Fn(&'static str)) {
        let deliveries = lock(&self.deliveries);
        for (delivery, why) in deliveries.iter().filter_map(|d| Some((d, d.overdue(now, patience)?))) {
            if self.stop(delivery) {
                count(why);
            }
        }
    }

    /// If the connection's answers hold more than `most` bytes, stops those whose reader waits, the largest first. If there is
    /// none of these, and nothing has been sent since the last call, drops the connection. Returns how many were stopped.
    pub fn bound_unsent(&self, now: u64, most: usize) -> usize {
        let has_progress = self.unsent.take_progress();
        if self.unsent.bytes() <= most || self.is_exempt() {
            return 0;
        }
        let deliveries = lock(&self.deliveries);
        let ending =
            deliveries.iter().filter(|delivery| delivery.is_reset()).map(|delivery| delivery.bytes());
        let mut held = self.unsent.bytes().saturating_sub(ending.sum());
        let mut stalled: Vec<&Arc<Delivery>> =
            deliveries.iter().filter(|delivery| delivery.is_stalled(now)).collect();
        stalled.sort_by_key(|delivery| std::cmp::Reverse(delivery.bytes()));
        if stalled.is_empty() && !has_progress && deliveries.iter().all(|delivery| delivery.is_reset()) {
            self.advance(Stage::Dropped);
            return 1;
        }
        let mut stopped = 0;
        for delivery in stalled {
            if held <= most {
                break;
            }
            held = held.saturating_sub(delivery.bytes());
            stopped += usize::from(self.stop(delivery));
        }
        stopped
    }

    /// Stops the task of a response. Returns false if that was done before, or if it has none.
    fn stop(&self, delivery: &Delivery) -> bool {
        let Some(task) = delivery.reset() else { return false };
        let mut stopped = lock(&self.stopped);
        stopped.push(task);
        self.any_stopped.store(true, Ordering::Release);
        drop(stopped);
        delivery.wake();
        true
    }

    /// Whether the calling task must end: the task of an HTTP/2 stream, or of an HTTP/1.1 connection.
    pub fn is_stopped(&self) -> bool {
        self.any_stopped.load(Ordering::Acquire)
            && tokio::task::try_id().is_some_and(|id| lock(&self.stopped).contains(&id))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
