//! Metrics of conversions by webhook, and of migrations of stored objects.

use std::time::Duration;

use metrics::{Counter, Gauge};

use super::{Metrics, labels_of};

pub const CONVERSION_REQUESTS: &str = "apiserver_conversion_webhook_request_total";
pub const CONVERSION_SECONDS: &str = "apiserver_conversion_webhook_duration_seconds";
pub const DEFINITION_CONVERSION_SECONDS: &str = "apiserver_crd_conversion_webhook_duration_seconds";
/// Upstream's buckets of `apiserver_conversion_webhook_duration_seconds`.
pub const CONVERSION_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// Upstream's buckets of `apiserver_crd_conversion_webhook_duration_seconds`.
pub const DEFINITION_CONVERSION_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];

/// A call of a conversion webhook. Its names come from a stored definition.
#[derive(Clone, Copy, Debug)]
pub struct Conversion<'a> {
    pub definition: &'a str,
    pub from: &'a str,
    pub to: &'a str,
    /// Upstream's type of the failure.
    pub failure: Option<&'static str>,
    pub took: Duration,
}

impl Metrics {
    /// Records a call of a conversion webhook.
    pub fn converted(&self, conversion: &Conversion<'_>) {
        let result = if conversion.failure.is_some() { "failure" } else { "success" };
        let failure = conversion.failure.unwrap_or_default();
        let labels = || labels_of(&[("result", result), ("failure_type", failure)]);
        self.counter(CONVERSION_REQUESTS, labels()).increment(1);
        self.histogram(CONVERSION_SECONDS, labels()).record(conversion.took);
        let succeeded = if conversion.failure.is_some() { "false" } else { "true" };
        let labels = labels_of(&[
            ("crd_name", conversion.definition),
            ("from_version", conversion.from),
            ("to_version", conversion.to),
            ("succeeded", succeeded),
        ]);
        self.histogram(DEFINITION_CONVERSION_SECONDS, labels).record(conversion.took);
    }

    /// Counts ended migrations of stored objects by their status.
    pub fn migrations(&self, resource: &str, status: &str) -> Counter {
        let labels = labels_of(&[("resource", resource), ("status", status)]);
        self.counter("storage_migrator_core_migrator_migrations_total", labels)
    }

    pub fn migrated_objects(&self, resource: &str) -> Counter {
        let labels = labels_of(&[("resource", resource)]);
        self.counter("storage_migrator_core_migrator_migrated_objects_total", labels)
    }

    pub fn objects_to_migrate(&self, resource: &str) -> Gauge {
        let labels = labels_of(&[("resource", resource)]);
        self.gauge("storage_migrator_core_migrator_remaining_objects", labels)
    }
}
