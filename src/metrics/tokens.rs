//! Metrics of service accounts' tokens, which are counted at each use, and of impersonation.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// What a token was that somebody has used.
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

const NAMES: [(&str, &str); 6] = [
    ("serviceaccount_legacy_tokens_total", "Cumulative legacy service account tokens used"),
    ("serviceaccount_stale_tokens_total", "Cumulative stale projected service account tokens used"),
    ("serviceaccount_valid_tokens_total", "Cumulative valid projected service account tokens used"),
    ("serviceaccount_legacy_manual_token_uses_total", "Cumulative manually created legacy tokens used"),
    ("serviceaccount_legacy_auto_token_uses_total", "Cumulative auto-generated legacy tokens used"),
    (
        "serviceaccount_invalid_legacy_auto_token_uses_total",
        "Cumulative invalid auto-generated legacy tokens used",
    ),
];

/// Counts uses of tokens.
#[derive(Debug, Default)]
pub struct TokenMetrics {
    uses: [AtomicU64; NAMES.len()],
    /// Tokens whose signature was known, and others.
    remembered: [AtomicU64; 2],
}

impl TokenMetrics {
    pub fn used(&self, what: TokenUse) {
        self.uses[what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn looked_up(&self, is_known: bool) {
        self.remembered[usize::from(!is_known)].fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the text of `/metrics`.
    pub fn render(&self, out: &mut String) {
        for ((name, text), count) in NAMES.iter().zip(&self.uses) {
            let count = count.load(Ordering::Relaxed);
            let _ = writeln!(out, "# HELP {name} {text}\n# TYPE {name} counter\n{name} {count}\n");
        }
        let text = "Tokens of service accounts, by whether their signature was remembered.";
        let _ = writeln!(out, "# HELP {REMEMBERED} {text}\n# TYPE {REMEMBERED} counter");
        for (status, count) in ["hit", "miss"].iter().zip(&self.remembered) {
            let _ = writeln!(out, "{REMEMBERED}{{status=\"{status}\"}} {}", count.load(Ordering::Relaxed));
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
