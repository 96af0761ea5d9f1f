//! Metrics of auditing.

use std::sync::Arc;

use metrics::Counter;

use super::{Registry, labels_of};

pub const EVENTS: &str = "apiserver_audit_event_total";
pub const LEVELS: &str = "apiserver_audit_level_total";
pub const ERRORS: &str = "apiserver_audit_error_total";
pub const REJECTED: &str = "apiserver_audit_requests_rejected_total";

/// In the order of the levels.
const LEVEL_NAMES: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];

/// Counts what is recorded, and what is lost. Clones count together.
#[derive(Clone)]
pub struct AuditMetrics {
    registry: Arc<Registry>,
    pub events: Counter,
    /// Requests refused since their first event could not be stored.
    pub rejected: Counter,
    levels: [Counter; LEVEL_NAMES.len()],
}

impl AuditMetrics {
    pub(super) fn new(registry: &Arc<Registry>) -> Self {
        Self {
            registry: registry.clone(),
            events: registry.counter(EVENTS, Vec::new()),
            rejected: registry.counter(REJECTED, Vec::new()),
            levels: LEVEL_NAMES.map(|level| registry.counter(LEVELS, labels_of(&[("level", level)]))),
        }
    }

    /// Counts a request by the level that the policy has for it.
    pub fn level(&self, level: usize) {
        self.levels[level].increment(1);
    }

    /// Counts events that a plugin has lost.
    pub fn lost(&self, plugin: &'static str, events: usize) {
        let counter = self.registry.counter(ERRORS, labels_of(&[("plugin", plugin)]));
        counter.increment(events as u64);
    }
}
