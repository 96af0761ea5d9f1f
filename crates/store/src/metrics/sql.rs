//! Metrics of statements in SQL.

use std::time::Duration;

use metrics::{Counter, Histogram};

use super::Metrics;

pub const SECONDS: &str = "rowplane_sql_seconds";
pub const BUCKETS: [f64; 11] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0, 30.0];

/// Records statements.
#[derive(Clone, Debug)]
pub struct SqlMetrics {
    seconds: Histogram,
    scanned: Counter,
}

impl Metrics {
    /// The metrics of statements.
    pub fn sql(&self) -> SqlMetrics {
        SqlMetrics {
            seconds: self.histogram(SECONDS, Vec::new()),
            scanned: self.counter("rowplane_sql_rows_scanned_total", Vec::new()),
        }
    }
}

impl SqlMetrics {
    /// A statement that has ended, well or not.
    pub fn ran(&self, took: Duration, scanned: u64) {
        self.seconds.record(took);
        self.scanned.increment(scanned);
    }
}
