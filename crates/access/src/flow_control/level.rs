//! A priority level: its seats, and the requests that have them or wait for them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use metrics::Histogram;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::allocation::{Limits, Shares};
use super::demand::Smoothed;
use super::occupied::Occupied;
use super::queue_set::{Discipline, QueueSet, QueuedRequest, SetState, Start, Ticket};
use super::retry_after::RetryAfter;
use super::waiter;
use super::width::Width;
use crate::fields;
use crate::metrics::LevelMetrics;
use crate::tree::{Map, Value};
use crate::wall_clock::WallClock;

/// The part of a level's seats that one request may need.
const WIDEST: f64 = 0.15;

/// The settings in a PriorityLevelConfiguration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LevelSpec {
    pub name: Arc<str>,
    pub uid: Arc<str>,
    pub shares: Shares,
    pub discipline: Discipline,
}

impl LevelSpec {
    /// Reads a stored PriorityLevelConfiguration, which validation has seen; `None` if it is broken all the same.
    pub fn read(object: &Map) -> Option<Self> {
        let number = |path: &[&str]| {
            let number = fields::at(object, path).and_then(Value::as_u64);
            number.and_then(|number| u32::try_from(number).ok())
        };
        let is_exempt = fields::text(object, &["spec", "type"]) == "Exempt";
        let part = if is_exempt { "exempt" } else { "limited" };
        let share = |field: &str| number(&["spec", part, field]);
        let queuing = |field: &str| {
            let count = number(&["spec", part, "limitResponse", "queuing", field])?;
            Some(count as usize).filter(|count| *count > 0)
        };
        let discipline = match fields::text(object, &["spec", part, "limitResponse", "type"]) {
            _ if is_exempt => Discipline::Exempt,
            "Queue" => Discipline::Queue {
                queues: queuing("queues")?,
                hand: queuing("handSize")?,
                length: queuing("queueLengthLimit")?,
            },
            _ => Discipline::Reject,
        };
        Some(Self {
            name: fields::text(object, &["metadata", "name"]).into(),
            uid: fields::text(object, &["metadata", "uid"]).into(),
            shares: Shares {
                nominal: share("nominalConcurrencyShares").unwrap_or_default(),
                lendable_percent: share("lendablePercent").unwrap_or_default(),
                borrowing_percent: share("borrowingLimitPercent"),
            },
            discipline,
        })
    }
}

/// Why a request gets no seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The reason's name in metrics.
    pub reason: &'static str,
    /// In seconds.
    pub retry_after: u64,
}

/// A priority level. It is dropped once it has neither requests nor a PriorityLevelConfiguration.
pub struct Level {
    pub name: Arc<str>,
    set: Mutex<QueueSet>,
    /// The most seats of a request; 0 is no limit.
    widest: AtomicUsize,
    refusals: Mutex<RetryAfter>,
    /// The smoothed demand of past periods.
    smoothed: Mutex<Smoothed>,
    pub metrics: LevelMetrics,
    pub clock: WallClock,
}

impl Level {
    pub fn new(spec: &LevelSpec, limits: Limits, metrics: LevelMetrics, clock: WallClock) -> Self {
        let set = QueueSet::new(spec.discipline, limits.first(), Instant::now());
        let level = Self {
            name: spec.name.clone(),
            set: Mutex::new(set),
            widest: AtomicUsize::new(0),
            refusals: Mutex::default(),
            smoothed: Mutex::default(),
            metrics,
            clock,
        };
        level.configure(spec, limits);
        level
    }

    /// Takes over the settings of the PriorityLevelConfiguration as it is now.
    pub fn configure(&self, spec: &LevelSpec, limits: Limits) {
        let widest = match spec.discipline {
            Discipline::Queue { hand, .. } => {
                let part = (limits.nominal as f64 * WIDEST).ceil() as usize;
                part.min(limits.nominal / hand).max(1)
            }
            _ => 0,
        };
        self.widest.store(widest, Ordering::Relaxed);
        let mut set = self.set();
        let limit = set.limit();
        set.configure(spec.discipline, limit, Instant::now());
        self.metrics.nominal.set(limits.nominal as f64);
        self.metrics.least.set(limits.least as f64);
        self.metrics.most.set(limits.most as f64);
    }

    /// The most seats that one request may take, at most `most`.
    pub fn widest(&self, most: usize) -> usize {
        match self.widest.load(Ordering::Relaxed) {
            0 => most,
            widest => widest.min(most),
        }
    }

    pub fn is_idle(&self) -> bool {
        self.set().is_idle()
    }

    /// The demand until now.
    pub fn demand(&self) -> Smoothed {
        let observed = self.set().take_demand(Instant::now());
        let mut smoothed = self.smoothed.lock().unwrap_or_else(PoisonError::into_inner);
        smoothed.add(observed);
        self.metrics.high.set(observed.high as f64);
        if let Some((mean, deviation)) = observed.mean_and_deviation {
            self.metrics.average.set(mean);
            self.metrics.deviation.set(deviation);
        }
        self.metrics.smoothed.set(smoothed.value);
        *smoothed
    }

    /// Sets the number of seats that the level may use.
    pub fn set_limit(&self, limit: usize, target: f64) {
        self.set().set_limit(limit, Instant::now());
        self.metrics.limit.set(limit as f64);
        self.metrics.target.set(target);
    }

    /// The state of the queues now.
    pub fn state(&self) -> SetState {
        self.set().state()
    }

    /// Waits for seats from `now` on, for `longest` at most. Only for a request that has to wait, `waiter` is called. The
    /// request counts in `occupied`.
    pub async fn enter(
        self: &Arc<Self>,
        occupied: &Arc<Occupied>,
        width: Width,
        hash: u64,
        now: Instant,
        longest: Duration,
        waiter: impl FnOnce() -> waiter::Waiter,
    ) -> Result<Seat, Refused> {
        let started = self.set().start(width, hash, now);
        match started {
            Start::Runs(ticket) => Ok(Seat::new(self, occupied, ticket)),
            Start::Refused(reason) => Err(self.refused(reason)),
            Start::Waits(place) => {
                let waiter = waiter();
                self.set().describe(place.queue, place.id, waiter);
                let _waits = occupied.wait();
                Box::pin(self.wait(occupied, place, now + longest)).await
            }
        }
    }

    async fn wait(
        self: &Arc<Self>,
        occupied: &Arc<Occupied>,
        place: QueuedRequest,
        until: Instant,
    ) -> Result<Seat, Refused> {
        let mut waiter = Waiter { level: self.clone(), occupied: occupied.clone(), place: Some(place) };
        match tokio::time::timeout_at(until, waiter.dispatched()).await {
            Ok(Some(seat)) => Ok(seat),
            _ => waiter.leave().ok_or_else(|| self.refused("time-out")),
        }
    }

    fn refused(&self, reason: &'static str) -> Refused {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        Refused { reason, retry_after: refusals.refused(self.clock.seconds()) }
    }

    fn set(&self) -> MutexGuard<'_, QueueSet> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that waits. When it is dropped, it leaves its queue.
struct Waiter {
    level: Arc<Level>,
    occupied: Arc<Occupied>,
    /// `None` once it has left the queue.
    place: Option<QueuedRequest>,
}

impl Waiter {
    async fn dispatched(&mut self) -> Option<Seat> {
        let ticket = (&mut self.place.as_mut()?.dispatched).await.ok()?;
        self.place = None;
        Some(Seat::new(&self.level, &self.occupied, ticket))
    }

    /// Leaves the queue, or takes the seat that was given meanwhile.
    fn leave(&mut self) -> Option<Seat> {
        let QueuedRequest { queue, id, mut dispatched } = self.place.take()?;
        if self.level.set().cancel(queue, id, Instant::now()) {
            return None;
        }
        let ticket = dispatched.try_recv().ok()?;
        Some(Seat::new(&self.level, &self.occupied, ticket))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        drop(self.leave());
    }
}

/// The seats of a request, until it is dropped.
pub struct Seat {
    level: Arc<Level>,
    occupied: Arc<Occupied>,
    ticket: Option<Ticket>,
    /// The histogram that notes its duration.
    executed: Option<Histogram>,
}

impl Seat {
    fn new(level: &Arc<Level>, occupied: &Arc<Occupied>, ticket: Ticket) -> Self {
        occupied.run(ticket.seats());
        Self { level: level.clone(), occupied: occupied.clone(), ticket: Some(ticket), executed: None }
    }

    /// The seats, whose duration is noted at their end.
    pub fn timed(mut self, executed: Histogram) -> Self {
        self.executed = Some(executed);
        self
    }

    /// How long the request has had its seats.
    pub fn age(&self) -> Duration {
        self.ticket.as_ref().map(Ticket::age).unwrap_or_default()
    }

    /// Gives the seats back before the request has begun its work. To go on, the request has to wait for seats anew.
    pub fn give_back(mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.level.set().give_back(&ticket, Instant::now());
            self.occupied.end();
            self.occupied.release(ticket.seats());
        }
    }

    /// Describes the request, for dumps of running requests.
    pub fn describe(&self, waiter: waiter::Waiter) {
        if let Some(ticket) = &self.ticket {
            self.level.set().describe_running(ticket, Arc::new(waiter));
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        if let Some(executed) = &self.executed {
            executed.record(ticket.age());
        }
        let lingering = self.level.set().finish(&ticket, Instant::now());
        self.occupied.end();
        let Some(lingering) = lingering else { return self.occupied.release(ticket.seats()) };
        let (level, occupied) = (self.level.clone(), self.occupied.clone());
        let release = move || {
            level.set().release(&ticket, Instant::now());
            occupied.release(ticket.seats());
        };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(async move {
                    tokio::time::sleep(lingering).await;
                    release();
                });
            }
            Err(_) => release(),
        }
    }
}

#[cfg(test)]
mod tests;
