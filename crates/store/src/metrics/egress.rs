//! Metrics of connections that proxies make (upstream's `apiserver_egress_dialer_*`).

use std::time::Duration;

use super::{Metrics, labels_of};

pub const STARTS: &str = "apiserver_egress_dialer_dial_start_total";
pub const FAILURES: &str = "apiserver_egress_dialer_dial_failure_count";
pub const SECONDS: &str = "apiserver_egress_dialer_dial_duration_seconds";
/// Upstream's buckets, in seconds.
pub const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 2.5, 12.5];

impl Metrics {
    /// Counts an attempt.
    pub fn egress_dial_started(&self, protocol: &str, transport: &str) {
        self.counter(STARTS, labels_of(&[("protocol", protocol), ("transport", transport)])).increment(1);
    }

    /// Records a connection that was made.
    pub fn egress_dialled(&self, protocol: &str, transport: &str, took: Duration) {
        let labels = labels_of(&[("protocol", protocol), ("transport", transport)]);
        self.histogram(SECONDS, labels).record(took);
    }

    /// Counts an attempt that has failed at a stage: `connect` to the proxy, or `proxy` to the server.
    pub fn egress_dial_failed(&self, protocol: &str, transport: &str, stage: &str) {
        let labels = [("protocol", protocol), ("transport", transport), ("stage", stage)];
        self.counter(FAILURES, labels_of(&labels)).increment(1);
    }
}
