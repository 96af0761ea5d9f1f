//! Metrics of work on objects: the rules of definitions, and comparisons of versions.

use std::time::Duration;

use metrics::{Histogram, Label};

use super::Registry;

pub const COMPILATION_SECONDS: &str = "apiserver_cel_compilation_duration_seconds";
pub const EVALUATION_SECONDS: &str = "apiserver_cel_evaluation_duration_seconds";
pub const COMPARISON_SECONDS: &str = "apiserver_request_timestamp_comparison_time";
/// Upstream's buckets of comparisons, in seconds.
pub const COMPARISON_BUCKETS: [f64; 10] = [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0];

/// The outcome of comparing an updated object with the stored one, to see whether more than times of managers has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The managers tell already that there is more, or that no time has changed.
    Fast,
    /// Only the whole objects tell that there is more.
    Slow,
    Equal,
}

/// The durations of work on objects.
#[derive(Debug)]
pub struct ObjectMetrics {
    compilation: Histogram,
    evaluation: Histogram,
    comparison: [Histogram; 3],
}

impl ObjectMetrics {
    pub(super) fn new(registry: &Registry) -> Self {
        let comparison = |path| {
            let labels = vec![Label::from_static_parts("code_path", path)];
            registry.histogram(COMPARISON_SECONDS, labels)
        };
        Self {
            compilation: registry.histogram(COMPILATION_SECONDS, Vec::new()),
            evaluation: registry.histogram(EVALUATION_SECONDS, Vec::new()),
            comparison: ["unequal_objects_fast", "unequal_objects_slow", "equal_objects"].map(comparison),
        }
    }

    /// Measures the compilation of all rules of a version of a definition.
    pub fn rules_compiled(&self, took: Duration) {
        self.compilation.record(took);
    }

    /// Measures the evaluation of all rules for an object.
    pub fn rules_evaluated(&self, took: Duration) {
        self.evaluation.record(took);
    }

    pub fn compared(&self, outcome: Comparison, took: Duration) {
        self.comparison[outcome as usize].record(took);
    }
}
