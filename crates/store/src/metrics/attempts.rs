//! Metrics of authentication and authorization, which every request passes: recording is a few additions, and the text is
//! made when it is asked for.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::catalog::head;
use super::histograms::Buckets;

/// Upstream's buckets, in seconds.
const BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
/// Upstream's buckets of the steps, in seconds.
const STEP_BUCKETS: [f64; 13] =
    [0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 5.0, 10.0, 15.0, 30.0];
/// Users that are counted under their own names.
const NAMED_USERS: [&str; 5] =
    ["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"];
const BY_MAIL: usize = NAMED_USERS.len();
const OTHERS: usize = BY_MAIL + 1;

/// The result of authenticating a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authentication {
    Success,
    /// Nothing was shown, and nobody may be anonymous.
    Failure,
    Error,
}

/// The result of authorizing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    Allowed,
    Denied,
    NoOpinion,
    Error,
}

/// A step of a request on its way to its handler: one of upstream's filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    Authentication,
    Audit,
    Impersonation,
    PriorityAndFairness,
    Authorization,
}

/// Counts requests by who makes them and whether they may.
#[derive(Debug, Default)]
pub struct AttemptMetrics {
    authentication: [Durations; 3],
    users: [AtomicU64; OTHERS + 1],
    authorization: [Durations; 4],
    filters: [StepDurations; 5],
}

#[derive(Debug)]
struct StepDurations(Buckets);

impl Default for StepDurations {
    fn default() -> Self {
        Self(Buckets::new(&STEP_BUCKETS))
    }
}

#[derive(Debug)]
struct Durations(Buckets);

impl Default for Durations {
    fn default() -> Self {
        Self(Buckets::new(&BUCKETS))
    }
}

impl AttemptMetrics {
    /// Measures a step that let the request go on.
    pub fn passed(&self, filter: Filter, took: Duration) {
        self.filters[filter as usize].0.record(took.as_secs_f64());
    }

    pub fn authenticated(&self, result: Authentication, user: Option<&str>, took: Duration) {
        self.passed(Filter::Authentication, took);
        self.authentication[result as usize].0.record(took.as_secs_f64());
        if let Some(user) = user {
            self.users[class_of(user)].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn authorized(&self, result: Authorization, took: Duration) {
        if result == Authorization::Allowed {
            self.passed(Filter::Authorization, took);
        }
        self.authorization[result as usize].0.record(took.as_secs_f64());
    }

    /// Adds the text of `/metrics`.
    pub fn render(&self, out: &mut String) {
        let results = ["success", "failure", "error"];
        let names = ("authentication_attempts", "authentication_duration_seconds");
        render(out, names, &results, &self.authentication);
        let results = ["allowed", "denied", "no-opinion", "error"];
        let names = ("authorization_attempts_total", "authorization_duration_seconds");
        render(out, names, &results, &self.authorization);
        let name = "authenticated_user_requests";
        head(out, name, "counter");
        for (user, count) in NAMED_USERS.into_iter().chain(["email_id", "other"]).zip(&self.users) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let _ = writeln!(out, "{name}{{username=\"{user}\"}} {count}");
            }
        }
        out.push('\n');
        let name = "apiserver_request_filter_duration_seconds";
        head(out, name, "histogram");
        let filters =
            ["authentication", "audit", "constrainedimpersonation", "priorityandfairness", "authorization"];
        for (filter, durations) in filters.into_iter().zip(&self.filters) {
            if durations.0.count() > 0 {
                durations.0.render(out, name, &format!("filter=\"{filter}\""));
            }
        }
        out.push('\n');
    }
}

/// The label of a user, so that there are few of them.
fn class_of(user: &str) -> usize {
    let named = NAMED_USERS.iter().position(|name| *name == user);
    named.unwrap_or(if user.contains('@') { BY_MAIL } else { OTHERS })
}

/// A counter and a histogram by result.
fn render(out: &mut String, (counter, histogram): (&str, &str), results: &[&str], durations: &[Durations]) {
    let seen = || results.iter().zip(durations).filter(|(_, durations)| durations.0.count() > 0);
    head(out, counter, "counter");
    for (result, durations) in seen() {
        let _ = writeln!(out, "{counter}{{result=\"{result}\"}} {}", durations.0.count());
    }
    out.push('\n');
    head(out, histogram, "histogram");
    seen()
        .for_each(|(result, durations)| durations.0.render(out, histogram, &format!("result=\"{result}\"")));
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted_by_their_results() {
        let metrics = AttemptMetrics::default();
        let ms = Duration::from_millis;
        metrics.authenticated(Authentication::Success, Some("a@b"), ms(1));
        metrics.authenticated(Authentication::Success, Some("admin"), ms(3));
        metrics.authenticated(Authentication::Success, Some("system:x"), ms(20_000));
        metrics.authenticated(Authentication::Error, None, ms(1));
        metrics.authorized(Authorization::NoOpinion, ms(1));
        let mut text = String::new();
        metrics.render(&mut text);
        for line in [
            "authentication_attempts{result=\"success\"} 3",
            "authentication_attempts{result=\"error\"} 1",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"0.002\"} 1",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"16.384\"} 2",
            "authentication_duration_seconds_bucket{result=\"success\",le=\"+Inf\"} 3",
            "authentication_duration_seconds_sum{result=\"success\"} 20.004",
            "authenticated_user_requests{username=\"email_id\"} 1",
            "authenticated_user_requests{username=\"admin\"} 1",
            "authenticated_user_requests{username=\"other\"} 1",
            "authorization_attempts_total{result=\"no-opinion\"} 1",
            "# TYPE authorization_duration_seconds histogram",
            "apiserver_request_filter_duration_seconds_count{filter=\"authentication\"} 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}: {text}");
        }
        assert!(!text.contains("result=\"allowed\""), "what has not been seen is not shown");
        assert!(!text.contains("filter=\"authorization\""), "a refused request has not passed");
    }
}
