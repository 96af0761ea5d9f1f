//! Metrics of the store, and of the watch cache above it.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram};

use super::{Metrics, labels_of};

pub const COMMIT_SECONDS: &str = "rowplane_commit_duration_seconds";
pub const COMMIT_SIZE: &str = "rowplane_commit_batch_size";
pub const COMMIT_BUCKETS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 5.0];
pub const SIZE_BUCKETS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Records what the store commits.
#[derive(Clone, Debug)]
pub struct CommitMetrics {
    size: Histogram,
    duration: Histogram,
}

impl Metrics {
    /// The number of branches that are alive.
    pub fn branches(&self) -> Gauge {
        self.gauge("rowplane_branches", Vec::new())
    }

    /// How many revisions the watch cache is behind the store.
    pub fn cache_lag(&self) -> Gauge {
        self.gauge("rowplane_cache_lag_revisions", Vec::new())
    }

    /// Counts changes that were missing in the table.
    pub fn cache_gaps(&self) -> Counter {
        self.counter("rowplane_cache_gaps_total", Vec::new())
    }

    /// Counts queries of the store's newest revision.
    pub fn clock_questions(&self) -> Counter {
        self.counter("rowplane_clock_questions_total", Vec::new())
    }

    /// How many revisions the compacted revision is behind the newest one.
    pub fn compaction_lag(&self) -> Gauge {
        self.gauge("rowplane_compaction_lag_revisions", Vec::new())
    }

    /// How far the stamps of commits are ahead of the time of day.
    pub fn commit_clock_ahead(&self) -> Gauge {
        self.gauge("rowplane_commit_clock_ahead_seconds", Vec::new())
    }

    /// Counts how often history was given up before its time to keep a budget.
    pub fn history_trimmed(&self, resource: &str) -> Counter {
        self.counter("rowplane_history_trimmed_total", labels_of(&[("resource", resource)]))
    }

    /// Sets the gauges of the history of a resource.
    pub fn history(&self, resource: &str, versions: u64, bytes: u64, oldest_seconds: f64) {
        let gauge = |name, labels: &[(&'static str, &str)]| self.gauge(name, labels_of(labels));
        let held = [("resource", resource), ("form", "rows")];
        gauge("rowplane_history_versions", &held).set(versions as f64);
        gauge("rowplane_history_bytes", &held).set(bytes as f64);
        gauge("rowplane_history_oldest_seconds", &held[..1]).set(oldest_seconds);
    }

    /// How many changes at or below the floors of their resources have not been swept yet.
    pub fn compaction_backlog(&self) -> Gauge {
        self.gauge("rowplane_compaction_backlog_revisions", Vec::new())
    }

    /// The metrics that the writer records.
    pub fn commits(&self) -> CommitMetrics {
        let histogram = |name| self.histogram(name, Vec::new());
        CommitMetrics { size: histogram(COMMIT_SIZE), duration: histogram(COMMIT_SECONDS) }
    }
}

impl CommitMetrics {
    pub fn committed(&self, writes: usize, took: Duration) {
        self.size.record(u32::try_from(writes).unwrap_or(u32::MAX));
        self.duration.record(took);
    }
}
