//! The state of a queue set at one moment.

use std::sync::Arc;

use tokio::time::Instant;

use crate::flow_control::waiter::Waiter;
use crate::flow_control::width::Width;

/// The numbers of requests since the level is there, by their outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub dispatched: u64,
    /// Includes cancelled requests.
    pub rejected: u64,
    pub cancelled: u64,
}

/// A running request and its description.
#[derive(Clone, Debug)]
pub struct Running {
    pub(super) queue: Option<usize>,
    pub width: Width,
    pub started: Instant,
    pub waiter: Arc<Waiter>,
}

/// A queue set at one moment.
pub struct SetState {
    pub queues: Vec<QueueState>,
    /// The running requests that are of no queue.
    pub queueless: Vec<Running>,
    pub is_idle: bool,
    pub waiting: usize,
    pub executing: usize,
    pub totals: Totals,
}

#[derive(Default)]
pub struct QueueState {
    pub waiting: Vec<(Width, Option<Arc<Waiter>>)>,
    /// The running requests that have said what they are.
    pub running: Vec<Running>,
    pub executing: usize,
    pub seats_in_use: usize,
    pub next_r: f64,
    pub work: f64,
}
