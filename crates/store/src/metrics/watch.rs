//! Metrics of watches.

use metrics::{Counter, Histogram};

use super::{Metrics, labels_of};
use crate::schema::names::Gvr;

pub const WATCH_EVENT_SIZES: &str = "apiserver_watch_events_sizes";
/// Upstream's buckets of `apiserver_watch_events_sizes`, in bytes.
pub const WATCH_EVENT_SIZE_BUCKETS: [f64; 8] =
    [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];

/// Counts the events of a watch, and their bytes.
#[derive(Clone, Debug)]
pub struct WatchEventMetrics {
    count: Counter,
    size: Histogram,
}

impl Metrics {
    /// The metrics of events sent to watchers of a resource. Call once per watch.
    pub fn watch_events(&self, resource: &Gvr) -> WatchEventMetrics {
        let labels = [
            ("group", resource.group().as_str()),
            ("version", resource.version()),
            ("resource", resource.plural.as_str()),
        ];
        WatchEventMetrics {
            count: self.counter("apiserver_watch_events_total", labels_of(&labels)),
            size: self.histogram(WATCH_EVENT_SIZES, labels_of(&labels)),
        }
    }
}

impl WatchEventMetrics {
    pub fn sent(&self, bytes: usize) {
        self.count.increment(1);
        self.size.record(bytes as f64);
    }
}
