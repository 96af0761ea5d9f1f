//! Metrics of traces.

use super::{Metrics, labels_of};

pub const SPANS: &str = "rowplane_trace_spans_total";

impl Metrics {
    /// Counts spans by what became of them: `sent`, `failed` at the collector, or `dropped` since too many waited.
    pub fn spans_ended(&self, outcome: &'static str, number: u64) {
        self.counter(SPANS, labels_of(&[("outcome", outcome)])).increment(number);
    }
}
