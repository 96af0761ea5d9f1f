//! Metrics of requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, Label};

use super::Registry;
use crate::schema::names::Gvr;
use crate::tree::Text;

pub const REQUEST_SECONDS: &str = "apiserver_request_duration_seconds";
pub const REQUEST_SLI_SECONDS: &str = "apiserver_request_sli_duration_seconds";
pub const RESPONSE_SIZES: &str = "apiserver_response_sizes";
pub const BODY_SIZES: &str = "apiserver_request_body_size_bytes";
/// Upstream's buckets of `apiserver_request_duration_seconds`.
pub const REQUEST_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Upstream's buckets of `apiserver_request_sli_duration_seconds`.
pub const REQUEST_SLI_BUCKETS: [f64; 21] = [
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
/// Upstream's buckets of `apiserver_response_sizes`, in bytes.
pub const RESPONSE_SIZE_BUCKETS: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/// Upstream's buckets of `apiserver_request_body_size_bytes`: from 50 KB to 3.05 MB, by steps of 100 KB.
pub const BODY_SIZE_BUCKETS: [f64; 31] = {
    let mut buckets = [50_000.0; 31];
    let mut index = 1;
    while index < buckets.len() {
        buckets[index] = buckets[index - 1] + 100_000.0;
        index += 1;
    }
    buckets
};

/// The labels of a request. Outside the resource API all are empty except `verb`, and `subresource`, in which upstream
/// puts the path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// In upstream's capitals: `GET`, `LIST`, `WATCH`, `POST`, `PUT`, `PATCH`, `APPLY`, `DELETE` (of collections, too), `CONNECT`.
    pub verb: &'static str,
    /// `All`, or empty; `invalid` if the parameter of the URL has another value.
    pub dry_run: &'static str,
    pub resource: Gvr,
    pub subresource: Text,
    pub scope: Scope,
}

/// Upstream's label `scope`: what a request can reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Outside the resource API.
    None,
    /// A path outside the resource API of which upstream names no component: health, OpenAPI.
    Unnamed,
    Resource,
    Namespace,
    Cluster,
    /// A resource of an extension server.
    Aggregated,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::None | Scope::Unnamed | Scope::Aggregated => "",
            Scope::Resource => "resource",
            Scope::Namespace => "namespace",
            Scope::Cluster => "cluster",
        }
    }

    fn component(self) -> &'static str {
        match self {
            Scope::Unnamed => "",
            Scope::Aggregated => "aggregator",
            _ => "apiserver",
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
    /// The labels without `dry_run` and `component`, which only some metrics have.
    labels: Vec<Label>,
    component: &'static str,
    dry_run: &'static str,
    duration: Histogram,
    /// The duration without that of webhooks; none of a dry run or a watch.
    sli_duration: Option<Histogram>,
    /// Sizes of the responses to GET, LIST and WATCH.
    response_size: Option<Histogram>,
    /// Sizes of the bodies of requests, by the labels of upstream's metric; made when there is one.
    body_size: (Vec<Label>, OnceLock<Histogram>),
    long_running: Gauge,
    /// Counters by status code; there are rarely more than a few.
    finished: RwLock<HashMap<u16, Counter>>,
}

impl RequestMetrics {
    pub(super) fn new(registry: Arc<Registry>, labels: &RequestLabels) -> Self {
        let RequestLabels { verb, dry_run, scope, .. } = *labels;
        let (of_body, component) = (body_labels(labels), scope.component());
        let labels = label_list(labels);
        let common = with_component(&labels, component);
        let has_objective = dry_run.is_empty() && verb != "WATCH";
        Self {
            duration: registry.histogram(REQUEST_SECONDS, with_dry_run(common.clone(), dry_run)),
            sli_duration: has_objective.then(|| registry.histogram(REQUEST_SLI_SECONDS, common.clone())),
            response_size: matches!(verb, "GET" | "LIST" | "WATCH")
                .then(|| registry.histogram(RESPONSE_SIZES, common.clone())),
            body_size: (of_body, OnceLock::new()),
            long_running: registry.gauge("apiserver_longrunning_requests", common),
            finished: RwLock::default(),
            labels,
            component,
            dry_run,
            registry,
        }
    }

    /// Counts an answered request, which has waited for webhooks for a part of its time.
    pub fn finished(&self, code: u16, took: Duration, by_webhooks: Duration) {
        self.duration.record(took);
        if let Some(sli_duration) = &self.sli_duration {
            sli_duration.record(took.saturating_sub(by_webhooks));
        }
        let finished = self.finished.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counter) = finished.get(&code) {
            counter.increment(1);
            return;
        }
        drop(finished);
        let mut finished = self.finished.write().unwrap_or_else(PoisonError::into_inner);
        finished
            .entry(code)
            .or_insert_with(|| {
                let labels =
                    with_code(with_dry_run(with_component(&self.labels, self.component), self.dry_run), code);
                self.registry.counter("apiserver_request_total", labels)
            })
            .increment(1);
    }

    /// Counts the bytes of a request's body.
    pub fn received(&self, bytes: usize) {
        let (labels, size) = &self.body_size;
        size.get_or_init(|| self.registry.histogram(BODY_SIZES, labels.clone())).record(bytes as f64);
    }

    /// Counts the bytes of an answer as they are sent. Those of other verbs than GET, LIST and WATCH are not counted.
    pub fn answered(&self, bytes: u64) {
        if let Some(response_size) = &self.response_size {
            response_size.record(bytes as f64);
        }
    }

    /// Counts a request that was refused or ended with this code to protect the server. Call once per request.
    pub fn terminated(&self, code: u16) {
        let labels = with_code(with_component(&self.labels, self.component), code);
        self.registry.counter("apiserver_request_terminations_total", labels).increment(1);
    }

    /// Counts a response that was aborted.
    pub fn aborted(&self) {
        self.registry.counter("apiserver_request_aborts_total", self.labels.clone()).increment(1);
    }

    /// Counts a watch, or another request without an end of its own, as active until all clones of the guard are dropped.
    pub fn long_running(self: &Arc<Self>) -> LongRunning {
        LongRunning(Arc::new(Running {
            _active: Active::new(self.long_running.clone()),
            metrics: self.clone(),
            began: Instant::now(),
            code: AtomicU16::new(0),
        }))
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
    ]
}

/// The labels of `apiserver_request_body_size_bytes`.
fn body_labels(labels: &RequestLabels) -> Vec<Label> {
    let verb = match (labels.verb, labels.scope) {
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("DELETE", Scope::Resource) => "delete",
        ("DELETE", _) => "delete_collection",
        _ => "patch",
    };
    vec![
        Label::new("group", labels.resource.group().to_string()),
        Label::new("resource", labels.resource.plural.to_string()),
        Label::from_static_parts("verb", verb),
    ]
}

fn with_component(labels: &[Label], component: &'static str) -> Vec<Label> {
    labels.iter().cloned().chain([Label::from_static_parts("component", component)]).collect()
}

fn with_dry_run(mut labels: Vec<Label>, dry_run: &'static str) -> Vec<Label> {
    labels.push(Label::from_static_parts("dry_run", dry_run));
    labels
}

fn with_code(mut labels: Vec<Label>, code: u16) -> Vec<Label> {
    labels.push(Label::new("code", code.to_string()));
    labels
}

/// How long a request has waited for admission webhooks: for one mutating webhook after the other, and for the slowest of the
/// validating ones, which are called together.
#[derive(Debug, Default)]
pub struct WebhookTime {
    /// In nanoseconds.
    mutating: AtomicU64,
    validating: AtomicU64,
}

impl WebhookTime {
    pub fn mutated(&self, took: Duration) {
        self.mutating.fetch_add(nanoseconds(took), Ordering::Relaxed);
    }

    pub fn validated(&self, took: Duration) {
        self.validating.fetch_max(nanoseconds(took), Ordering::Relaxed);
    }

    pub fn total(&self) -> Duration {
        let [mutating, validating] =
            [&self.mutating, &self.validating].map(|time| time.load(Ordering::Relaxed));
        Duration::from_nanos(mutating.saturating_add(validating))
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Counts a long-running request as active while it lives, and as an answered one at its end, as upstream does.
#[must_use]
#[derive(Clone, Debug)]
pub struct LongRunning(Arc<Running>);

#[derive(Debug)]
struct Running {
    _active: Active,
    metrics: Arc<RequestMetrics>,
    began: Instant,
    /// The status code; 0 until there is an answer.
    code: AtomicU16,
}

impl LongRunning {
    /// Notes the status code of the answer.
    pub fn answered(&self, code: u16) {
        self.0.code.store(code, Ordering::Relaxed);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let code = *self.code.get_mut();
        if code > 0 {
            self.metrics.finished(code, self.began.elapsed(), Duration::ZERO);
        }
    }
}

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
