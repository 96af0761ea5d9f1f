//! Metrics of the external signer of service accounts' tokens.

use std::time::{Duration, SystemTime};

use super::{Metrics, labels_of};

pub const FETCHED_AT: &str = "apiserver_externaljwt_fetch_keys_success_timestamp";
pub const MADE_AT: &str = "apiserver_externaljwt_fetch_keys_data_timestamp";
pub const FETCHES: &str = "apiserver_externaljwt_fetch_keys_request_total";
pub const SIGNATURES: &str = "apiserver_externaljwt_sign_request_total";
pub const SECONDS: &str = "apiserver_externaljwt_request_duration_seconds";
/// Upstream's buckets, in seconds.
pub const BUCKETS: [f64; 14] =
    [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

impl Metrics {
    /// Records a call of the signer, by the status that gRPC has for it.
    pub fn external_signer_called(&self, method: &str, code: &str, took: Duration) {
        self.histogram(SECONDS, labels_of(&[("method", method), ("code", code)])).record(took);
    }

    /// Counts an attempt to get the signer's keys.
    pub fn external_keys_fetched(&self, code: &str) {
        self.counter(FETCHES, labels_of(&[("code", code)])).increment(1);
        if code == "OK" {
            self.gauge(FETCHED_AT, Vec::new()).set(super::process::seconds(SystemTime::now()));
        }
    }

    /// Notes when the signer has made the keys that it names, in seconds since the epoch.
    pub fn external_keys_made(&self, at: f64) {
        self.gauge(MADE_AT, Vec::new()).set(at);
    }

    /// Counts an attempt to get a token signed.
    pub fn externally_signed(&self, code: &str) {
        self.counter(SIGNATURES, labels_of(&[("code", code)])).increment(1);
    }
}
