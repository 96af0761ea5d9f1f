//! Metrics of Priority and Fairness.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label};

use super::{Metrics, Registry, labels_of};

pub const REJECTED: &str = "apiserver_flowcontrol_rejected_requests_total";
pub const DISPATCHED: &str = "apiserver_flowcontrol_dispatched_requests_total";
pub const WAIT_SECONDS: &str = "apiserver_flowcontrol_request_wait_duration_seconds";
pub const WAITING: &str = "apiserver_flowcontrol_current_inqueue_requests";
pub const EXECUTING: &str = "apiserver_flowcontrol_current_executing_requests";
pub const SEATS: &str = "apiserver_flowcontrol_current_executing_seats";
pub const NOMINAL: &str = "apiserver_flowcontrol_nominal_limit_seats";
pub const LIMIT: &str = "apiserver_flowcontrol_current_limit_seats";
pub const LEAST: &str = "apiserver_flowcontrol_lower_limit_seats";
pub const MOST: &str = "apiserver_flowcontrol_upper_limit_seats";
pub const HIGH: &str = "apiserver_flowcontrol_demand_seats_high_watermark";
pub const AVERAGE: &str = "apiserver_flowcontrol_demand_seats_average";
pub const DEVIATION: &str = "apiserver_flowcontrol_demand_seats_stdev";
pub const SMOOTHED: &str = "apiserver_flowcontrol_demand_seats_smoothed";
pub const TARGET: &str = "apiserver_flowcontrol_target_seats";
pub const FAIR_FRACTION: &str = "apiserver_flowcontrol_seat_fair_frac";
pub const EXECUTION_SECONDS: &str = "apiserver_flowcontrol_request_execution_seconds";
pub const ESTIMATED_SEATS: &str = "apiserver_flowcontrol_work_estimated_seats";
pub const WATCH_COUNTS: &str = "apiserver_flowcontrol_watch_count_samples";

/// Upstream's buckets of durations.
pub const SECONDS_BUCKETS: [f64; 13] =
    [0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];
/// Upstream's buckets of seats.
pub const SEATS_BUCKETS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 100.0];
/// Upstream's buckets of watches.
pub const WATCHES_BUCKETS: [f64; 6] = [0.0, 1.0, 10.0, 100.0, 1000.0, 10_000.0];

impl Metrics {
    /// Says which multiple of what they want all levels get that are between their bounds; 0 if there is none.
    pub fn seats_divided(&self, fair_fraction: f64) {
        self.gauge(FAIR_FRACTION, Vec::new()).set(fair_fraction);
    }
}

/// The gauges of a priority level.
#[derive(Clone, Debug)]
pub struct LevelMetrics {
    pub nominal: Gauge,
    /// The bounds of the limit.
    pub least: Gauge,
    pub most: Gauge,
    pub limit: Gauge,
    /// The seats for which the limit was divided, and the demand of the period before.
    pub target: Gauge,
    pub high: Gauge,
    pub average: Gauge,
    pub deviation: Gauge,
    pub smoothed: Gauge,
}

impl LevelMetrics {
    pub(super) fn new(registry: &Registry, level: &str) -> Self {
        let gauge = |name| registry.gauge(name, labels_of(&[("priority_level", level)]));
        Self {
            nominal: gauge(NOMINAL),
            least: gauge(LEAST),
            most: gauge(MOST),
            limit: gauge(LIMIT),
            target: gauge(TARGET),
            high: gauge(HIGH),
            average: gauge(AVERAGE),
            deviation: gauge(DEVIATION),
            smoothed: gauge(SMOOTHED),
        }
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
    estimated: Histogram,
    watches: OnceLock<Histogram>,
    /// Durations of requests, and of watches until they have begun.
    executed: [OnceLock<Histogram>; 2],
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
            estimated: registry.histogram(ESTIMATED_SEATS, labels.clone()),
            watches: OnceLock::new(),
            executed: Default::default(),
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

    /// Notes how many seats a request is taken to need.
    pub fn estimated(&self, seats: usize) {
        self.estimated.record(seats as f64);
    }

    /// Notes how many watches a write concerns.
    pub fn concerned(&self, watches: usize) {
        let new = || self.registry.histogram(WATCH_COUNTS, self.labels.clone());
        self.watches.get_or_init(new).record(watches as f64);
    }

    /// The durations of executions.
    pub fn executed(&self, is_watch: bool) -> Histogram {
        let new = || {
            let mut labels = self.labels.clone();
            labels.push(Label::from_static_parts("type", if is_watch { "watch" } else { "regular" }));
            self.registry.histogram(EXECUTION_SECONDS, labels)
        };
        self.executed[usize::from(is_watch)].get_or_init(new).clone()
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
