//! Metrics of service accounts' tokens, which are counted at each use, and of impersonation.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::catalog::head;
use super::histograms::Buckets;
use super::{Metrics, labels_of};

pub const IMPERSONATIONS: &str = "apiserver_impersonation_attempts_total";
pub const IMPERSONATION_SECONDS: &str = "apiserver_impersonation_attempts_duration_seconds";
pub const IMPERSONATION_CHECKS: &str = "apiserver_impersonation_authorization_attempts_total";
pub const IMPERSONATION_CHECK_SECONDS: &str =
    "apiserver_impersonation_authorization_attempts_duration_seconds";
/// Upstream's buckets, in seconds.
pub const IMPERSONATION_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
const REMEMBERED: &str = "authentication_token_cache_request_total";
const REMEMBERED_SECONDS: &str = "authentication_token_cache_request_duration_seconds";
const FETCHES: &str = "authentication_token_cache_fetch_total";
const ACTIVE_FETCHES: &str = "authentication_token_cache_active_fetch_count";
/// The buckets of Prometheus' client, in seconds.
const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// The kind of service account token that somebody has used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenUse {
    /// It names no audience.
    Legacy,
    /// It is past the time at which its client should have got a new one.
    Stale,
    /// It is before that time.
    Valid,
    /// It is of a Secret that somebody made.
    Manual,
    /// It is of a Secret that was made for its account.
    Auto,
    /// Its Secret is marked invalid.
    Invalidated,
}

const NAMES: [&str; 6] = [
    "serviceaccount_legacy_tokens_total",
    "serviceaccount_stale_tokens_total",
    "serviceaccount_valid_tokens_total",
    "serviceaccount_legacy_manual_token_uses_total",
    "serviceaccount_legacy_auto_token_uses_total",
    "serviceaccount_invalid_legacy_auto_token_uses_total",
];

/// Counts uses of tokens.
#[derive(Debug)]
pub struct TokenMetrics {
    uses: [AtomicU64; NAMES.len()],
    /// Durations of look-ups: of tokens whose signature was known, and of others.
    remembered: [Buckets; 2],
    /// Counts of checked signatures: of right ones, and of others.
    fetches: [AtomicU64; 2],
    active_fetches: AtomicU64,
}

impl Default for TokenMetrics {
    fn default() -> Self {
        Self {
            uses: Default::default(),
            remembered: std::array::from_fn(|_| Buckets::new(&DEFAULT_BUCKETS)),
            fetches: Default::default(),
            active_fetches: AtomicU64::default(),
        }
    }
}

/// A signature that is being checked, until it is dropped.
pub struct Fetch<'a> {
    metrics: &'a TokenMetrics,
    /// `None` as long as nobody knows, and if the token is none of a service account.
    pub is_right: Option<bool>,
}

impl Drop for Fetch<'_> {
    fn drop(&mut self) {
        self.metrics.active_fetches.fetch_sub(1, Ordering::Relaxed);
        if let Some(is_right) = self.is_right {
            self.metrics.fetches[usize::from(!is_right)].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl TokenMetrics {
    pub fn used(&self, what: TokenUse) {
        self.uses[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn looked_up(&self, is_known: bool, took: Duration) {
        self.remembered[usize::from(!is_known)].record(took.as_secs_f64());
    }

    /// Notes that a signature is being checked.
    pub fn fetching(&self) -> Fetch<'_> {
        self.active_fetches.fetch_add(1, Ordering::Relaxed);
        Fetch { metrics: self, is_right: None }
    }

    /// Adds the text of `/metrics`.
    pub fn render(&self, out: &mut String) {
        for (name, count) in NAMES.iter().zip(&self.uses) {
            let count = count.load(Ordering::Relaxed);
            head(out, name, "counter");
            let _ = writeln!(out, "{name} {count}\n");
        }
        head(out, REMEMBERED, "counter");
        let statuses = || ["hit", "miss"].iter().zip(&self.remembered);
        for (status, seconds) in statuses() {
            let _ = writeln!(out, "{REMEMBERED}{{status=\"{status}\"}} {}", seconds.count());
        }
        head(out, REMEMBERED_SECONDS, "histogram");
        for (status, seconds) in statuses() {
            seconds.render(out, REMEMBERED_SECONDS, &format!("status=\"{status}\""));
        }
        head(out, FETCHES, "counter");
        for (status, count) in ["ok", "error"].iter().zip(&self.fetches) {
            let _ = writeln!(out, "{FETCHES}{{status=\"{status}\"}} {}", count.load(Ordering::Relaxed));
        }
        // Each request checks its own token, so as many wait as there are checks.
        head(out, ACTIVE_FETCHES, "gauge");
        let active = self.active_fetches.load(Ordering::Relaxed);
        for status in ["blocked", "in_flight"] {
            let _ = writeln!(out, "{ACTIVE_FETCHES}{{status=\"{status}\"}} {active}");
        }
        out.push('\n');
    }
}

impl Metrics {
    /// Counts a request in somebody else's name. The mode is empty if it was refused.
    pub fn impersonated(&self, mode: &str, decision: &'static str, took: Duration) {
        let labels = labels_of(&[("mode", mode), ("decision", decision)]);
        self.counter(IMPERSONATIONS, labels.clone()).increment(1);
        self.histogram(IMPERSONATION_SECONDS, labels).record(took);
    }

    /// Counts a question that an attempt has asked the authorizer.
    pub fn impersonation_authorized(&self, mode: &str, decision: &'static str, took: Duration) {
        let labels = labels_of(&[("mode", mode), ("decision", decision)]);
        self.counter(IMPERSONATION_CHECKS, labels.clone()).increment(1);
        self.histogram(IMPERSONATION_CHECK_SECONDS, labels).record(took);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_of_signatures_are_counted_by_what_they_found() {
        let metrics = TokenMetrics::default();
        let active = || {
            let mut text = String::new();
            metrics.render(&mut text);
            text
        };
        for is_right in [Some(true), Some(true), Some(false), None] {
            let mut fetch = metrics.fetching();
            assert!(
                active().contains("authentication_token_cache_active_fetch_count{status=\"in_flight\"} 1\n")
            );
            fetch.is_right = is_right;
        }
        metrics.looked_up(true, Duration::from_millis(7));
        let text = active();
        for line in [
            "authentication_token_cache_active_fetch_count{status=\"blocked\"} 0",
            "authentication_token_cache_fetch_total{status=\"ok\"} 2",
            "authentication_token_cache_fetch_total{status=\"error\"} 1",
            "authentication_token_cache_request_total{status=\"hit\"} 1",
            "authentication_token_cache_request_duration_seconds_bucket{status=\"hit\",le=\"0.005\"} 0",
            "authentication_token_cache_request_duration_seconds_bucket{status=\"hit\",le=\"0.01\"} 1",
            "authentication_token_cache_request_duration_seconds_count{status=\"miss\"} 0",
        ] {
            assert!(text.lines().any(|own| own == line), "{line} is missing in {text}");
        }
    }
}
