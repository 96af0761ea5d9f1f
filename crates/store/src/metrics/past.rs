//! Metrics of requests through the door to the past.

use std::time::Duration;

use super::{Metrics, labels_of};

pub const REQUESTS: &str = "rowplane_asof_requests_total";
pub const SECONDS: &str = "rowplane_asof_seconds";
pub const BUCKETS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 30.0];

impl Metrics {
    /// Counts a request that was answered. `took` is the time until its answer began.
    pub fn past_answered(&self, verb: &str, code: u16, took: Duration) {
        let verb = ["get", "list", "watch"].into_iter().find(|known| *known == verb).unwrap_or("other");
        let code = code.to_string();
        self.counter(REQUESTS, labels_of(&[("verb", verb), ("code", &code)])).increment(1);
        self.histogram(SECONDS, Vec::new()).record(took);
    }
}
