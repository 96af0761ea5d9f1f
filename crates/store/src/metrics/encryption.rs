//! Metrics of encryption at rest.

use std::time::{Duration, SystemTime};

use super::authorization::ConfigInfo;
use super::{Metrics, labels_of};

pub const OPERATIONS: &str = "apiserver_storage_transformation_operations_total";
pub const SECONDS: &str = "apiserver_storage_transformation_duration_seconds";

/// Upstream's buckets: 5 us, doubled 24 times.
pub const BUCKETS: [f64; 25] = doubled(5e-6);

/// Buckets of which each is twice as large as the one before.
const fn doubled<const N: usize>(first: f64) -> [f64; N] {
    let mut buckets = [first; N];
    let mut at = 1;
    while at < N {
        buckets[at] = buckets[at - 1] * 2.0;
        at += 1;
    }
    buckets
}

impl Metrics {
    /// Records that a value was sealed (`to_storage`) or opened (`from_storage`), or could not be.
    pub fn transformed(
        &self,
        resource: &str,
        direction: &'static str,
        prefix: &str,
        took: Duration,
        succeeded: bool,
    ) {
        let status = if succeeded { "OK" } else { "unknown-non-grpc" };
        let (kind, prefix) = (("transformation_type", direction), ("transformer_prefix", prefix));
        let labels = labels_of(&[("resource", resource), kind, prefix, ("status", status)]);
        self.counter(OPERATIONS, labels).increment(1);
        if succeeded {
            self.histogram(SECONDS, labels_of(&[kind, prefix])).record(took);
        }
    }
}

pub const KMS_SECONDS: &str = "apiserver_envelope_encryption_kms_operations_latency_seconds";
pub const KEY_USES: &str = "apiserver_envelope_encryption_key_id_hash_total";
pub const KEY_TOLD: &str = "apiserver_envelope_encryption_key_id_hash_status_last_timestamp_seconds";
pub const WRONG_KEYS: &str = "apiserver_envelope_encryption_invalid_key_id_from_status_total";
pub const SEEDS: &str = "apiserver_envelope_encryption_dek_source_cache_size";
pub const MISSES: &str = "apiserver_storage_envelope_transformation_cache_misses_total";
pub const SEED_SECONDS: &str = "apiserver_storage_data_key_generation_duration_seconds";
pub const RELOADS: &str = "apiserver_encryption_config_controller_automatic_reloads_total";
pub const CONFIG: &str = "apiserver_encryption_config_controller_last_config_info";
pub const RELOADED_AT: &str =
    "apiserver_encryption_config_controller_automatic_reload_last_timestamp_seconds";

/// Upstream's buckets: 5 us, doubled 13 times.
pub const SEED_BUCKETS: [f64; 14] = doubled(5e-6);

/// Upstream's buckets: 0.1 ms, doubled 19 times.
pub const KMS_BUCKETS: [f64; 20] = doubled(1e-4);

impl Metrics {
    /// Records a call of a key management service.
    pub fn kms_called(&self, provider: &str, method: &str, code: &str, took: Duration) {
        let labels = [("provider_name", provider), ("method_name", method), ("grpc_status_code", code)];
        self.histogram(KMS_SECONDS, labels_of(&labels)).record(took);
    }

    /// Counts a value that was sealed or opened with a key.
    pub fn kms_key_used(&self, direction: &str, provider: &str, key: &str) {
        let labels = [
            ("transformation_type", direction),
            ("provider_name", provider),
            ("key_id_hash", key),
            self.server(),
        ];
        self.counter(KEY_USES, labels_of(&labels)).increment(1);
    }

    /// Notes that a status named this key.
    pub fn kms_key_told(&self, provider: &str, key: &str) {
        let labels = labels_of(&[("provider_name", provider), ("key_id_hash", key), self.server()]);
        self.gauge(KEY_TOLD, labels).set(super::process::seconds(SystemTime::now()));
    }

    /// Counts a status that named no usable key.
    pub fn wrong_key_id(&self, provider: &str, error: &str) {
        self.counter(WRONG_KEYS, labels_of(&[("provider_name", provider), ("error", error)])).increment(1);
    }

    /// The number of seeds that are known of a service.
    pub fn seeds_kept(&self, provider: &str, seeds: usize) {
        self.gauge(SEEDS, labels_of(&[("provider_name", provider)])).set(seeds as f64);
    }

    /// Counts a seed that a service had to be asked for.
    pub fn seed_missed(&self) {
        self.counter(MISSES, Vec::new()).increment(1);
    }

    pub fn seed_made(&self, took: Duration) {
        self.histogram(SEED_SECONDS, Vec::new()).record(took);
    }

    /// The configuration with this hash is in force.
    pub fn encryption_in_force(&self, hash: &str) {
        let info = ConfigInfo { name: CONFIG, plugin: None, server: None, hash: hash.to_owned() };
        self.config_infos.set(info);
    }

    /// Counts an attempt to read the configuration again.
    pub fn encryption_reloaded(&self, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        let labels = || labels_of(&[("status", status), self.server()]);
        self.counter(RELOADS, labels()).increment(1);
        self.gauge(RELOADED_AT, labels()).set(super::process::seconds(SystemTime::now()));
    }
}
