//! Metrics of Priority and Fairness.

use std::sync::Arc;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label};

use super::{Registry, labels_of};

pub const REJECTED: &str = "apiserver_flowcontrol_rejected_requests_total";
pub const DISPATCHED: &str = "apiserver_flowcontrol_dispatched_requests_total";
pub const WAIT_SECONDS: &str = "apiserver_flowcontrol_request_wait_duration_seconds";
pub const WAITING: &str = "apiserver_flowcontrol_current_inqueue_requests";
pub const EXECUTING: &str = "apiserver_flowcontrol_current_executing_requests";
pub const SEATS: &str = "apiserver_flowcontrol_current_executing_seats";
pub const NOMINAL: &str = "apiserver_flowcontrol_nominal_limit_seats";
pub const LIMIT: &str = "apiserver_flowcontrol_current_limit_seats";

/// Upstream's buckets.
pub const WAIT_BUCKETS: [f64; 12] = [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0];

/// The gauges of a priority level.
#[derive(Clone, Debug)]
pub struct LevelMetrics {
    pub nominal: Gauge,
    pub limit: Gauge,
}

impl LevelMetrics {
    pub(super) fn new(registry: &Registry, level: &str) -> Self {
        let gauge = |name| registry.gauge(name, labels_of(&[("priority_level", level)]));
        Self { nominal: gauge(NOMINAL), limit: gauge(LIMIT) }
    }
}

/// Metrics of the requests of a FlowSchema.
#[derive(Clone)]
pub struct FlowMetrics {
    registry: Arc<Registry>,
    labels: Vec<Label>,
    dispatched: Counter,
    waited: Histogram,
    waiting: Gauge,
    executing: Gauge,
    seats: Gauge,
}

impl FlowMetrics {
    pub(super) fn new(registry: &Arc<Registry>, level: &str, flow: &str) -> Self {
        let labels = labels_of(&[("priority_level", level), ("flow_schema", flow)]);
        let mut waited = labels.clone();
        waited.push(Label::from_static_parts("execute", "true"));
        Self {
            dispatched: registry.counter(DISPATCHED, labels.clone()),
            waited: registry.histogram(WAIT_SECONDS, waited),
            waiting: registry.gauge(WAITING, labels.clone()),
            executing: registry.gauge(EXECUTING, labels.clone()),
            seats: registry.gauge(SEATS, labels.clone()),
            registry: registry.clone(),
            labels,
        }
    }

    /// Sets the numbers of requests that wait and run now, and of the seats of the latter.
    pub fn observe(&self, waiting: f64, executing: f64, seats: f64) {
        self.waiting.set(waiting);
        self.executing.set(executing);
        self.seats.set(seats);
    }

    /// Counts a request that got its seats, or was refused. `waited` is `None` where nobody waits.
    pub fn entered(&self, refused: Option<&'static str>, waited: Option<Duration>) {
        match refused {
            None => {
                self.dispatched.increment(1);
                waited.into_iter().for_each(|waited| self.waited.record(waited));
            }
            Some(reason) => {
                let mut labels = self.labels.clone();
                labels.push(Label::from_static_parts("reason", reason));
                self.registry.counter(REJECTED, labels).increment(1);
            }
        }
    }
}
