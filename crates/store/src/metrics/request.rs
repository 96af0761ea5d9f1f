//! Metrics of requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label};

use super::{REQUEST_SECONDS, Registry};
use crate::schema::names::Gvr;
use crate::tree::Text;

/// The labels of a request. Outside the resource API all are empty except `verb`, and `subresource`, in which upstream
/// puts the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// In upstream's capitals: `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE`, `DELETECOLLECTION`.
    pub verb: &'static str,
    pub resource: Gvr,
    pub subresource: Text,
    pub scope: Scope,
}

/// Upstream's label `scope`: what a request can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Outside the resource API.
    None,
    Resource,
    Namespace,
    Cluster,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::None => "",
            Scope::Resource => "resource",
            Scope::Namespace => "namespace",
            Scope::Cluster => "cluster",
        }
    }
}

/// Upstream's label `request_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    ReadOnly,
    Mutating,
}

impl RequestKind {
    pub fn as_str(self) -> &'static str {
        match self {
            RequestKind::ReadOnly => "readOnly",
            RequestKind::Mutating => "mutating",
        }
    }
}

/// The metrics of one set of [`RequestLabels`].
#[derive(Debug)]
pub struct RequestMetrics {
    registry: Arc<Registry>,
    labels: Vec<Label>,
    duration: Histogram,
    long_running: Gauge,
    /// By status code; there are rarely more than a few.
    finished: RwLock<HashMap<u16, Counter>>,
}

impl RequestMetrics {
    pub(super) fn new(registry: Arc<Registry>, labels: &RequestLabels) -> Self {
        let labels = label_list(labels);
        Self {
            duration: registry.histogram(REQUEST_SECONDS, labels.clone()),
            long_running: registry.gauge("apiserver_longrunning_requests", labels.clone()),
            finished: RwLock::default(),
            labels,
            registry,
        }
    }

    /// Counts an answered request.
    pub fn finished(&self, code: u16, took: Duration) {
        self.duration.record(took);
        let finished = self.finished.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = finished.get(&code) {
            counter.increment(1);
            return;
        }
        drop(finished);
        let mut finished = self.finished.write().unwrap_or_else(PoisonError::into_inner);
        finished
            .entry(code)
            .or_insert_with(|| self.counter("apiserver_request_total", Some(code)))
            .increment(1);
    }

    /// Counts a request that was refused or ended with this code to protect the server. Call once per request.
    pub fn terminated(&self, code: u16) {
        self.counter("apiserver_request_terminations_total", Some(code)).increment(1);
    }

    /// Counts a response that was aborted.
    pub fn aborted(&self) {
        self.counter("apiserver_request_aborts_total", None).increment(1);
    }

    /// Counts a watch, or another request without an end of its own, as active until the guard is dropped.
    pub fn long_running(&self) -> LongRunning {
        LongRunning(Active::new(self.long_running.clone()))
    }

    fn counter(&self, name: &'static str, code: Option<u16>) -> Counter {
        let mut labels = self.labels.clone();
        labels.extend(code.map(|code| Label::new("code", code.to_string())));
        self.registry.counter(name, labels)
    }
}

fn label_list(labels: &RequestLabels) -> Vec<Label> {
    vec![
        Label::from_static_parts("verb", labels.verb),
        Label::new("group", labels.resource.group().to_string()),
        Label::new("version", labels.resource.version().to_owned()),
        Label::new("resource", labels.resource.plural.to_string()),
        Label::new("subresource", labels.subresource.to_string()),
        Label::from_static_parts("scope", labels.scope.as_str()),
        Label::from_static_parts("component", "apiserver"),
    ]
}

/// Counts a long-running request as active while it lives.
#[must_use]
#[derive(Debug)]
pub struct LongRunning(#[expect(dead_code, reason = "held for its drop")] Active);

/// Counts a request as in flight while it lives.
#[must_use]
#[derive(Debug)]
pub struct InFlight {
    count: Arc<AtomicUsize>,
    /// How many requests of this kind were in flight already.
    pub others: usize,
}

impl InFlight {
    pub(super) fn new(count: &Arc<AtomicUsize>) -> Self {
        Self { count: count.clone(), others: count.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Adds one to a gauge until it is dropped.
#[derive(Debug)]
struct Active(Gauge);

impl Active {
    fn new(gauge: Gauge) -> Self {
        gauge.increment(1);
        Self(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.decrement(1);
    }
}
