//! The metrics of one server, in Prometheus' text format. They have kube-apiserver's names where it has such metrics,
//! otherwise `rowplane_*`.
//!
//! Every server has its own registry, which its [`Runtime`](crate::runtime::Runtime) holds. Handles are created once
//! per set of labels; using one costs an atomic operation. [`Metrics::request`] is a lookup in a map, using its result
//! is not.
#![expect(clippy::disallowed_methods, reason = "metrics tell real time")]

mod admission;
mod allowed;
mod attempts;
mod audit;
mod authorization;
mod buckets;
mod catalog;
mod certificates;
mod conversion;
mod egress;
mod encryption;
mod extensions;
mod external_signer;
mod features;
mod flow_control;
mod histograms;
mod kubelets;
mod objects;
mod order;
mod past;
mod process;
mod request;
mod services;
mod sql;
mod store;
mod stored;
mod tokens;
mod traces;
mod watch;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use foldhash::fast::RandomState;
use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder as _};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

pub use self::allowed::AllowedLabels;
use self::authorization::ConfigInfos;
use self::certificates::KeySets;
use self::histograms::Histograms;
pub use self::order::sorted;
use crate::schema::names::{GroupResource, Gvr};

pub use admission::{
    ConditionSource, HookCall, HookRejection, PodSecurityDecision, PodSecurityRequest, PolicyCheck, Step,
    StepTimes,
};
pub use attempts::{AttemptMetrics, Authentication, Authorization, Filter};
pub use audit::AuditMetrics;
pub use authorization::{DecisionMetrics, ReloadMetrics, ReloadedFile, WebhookMetrics};
pub use conversion::Conversion;
pub use features::{Feature, features};
pub use flow_control::{FlowMetrics, LevelMetrics};
pub use objects::{Comparison, ObjectMetrics};
pub use request::{InFlight, LongRunning, RequestKind, RequestLabels, RequestMetrics, Scope, WebhookTime};
pub use services::{Choice, RangeUse, ServiceRanges};
pub use sql::SqlMetrics;
pub use store::CommitMetrics;
pub use tokens::{TokenMetrics, TokenUse};
pub use watch::WatchEventMetrics;

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// The registry of metrics by their names and labels.
#[derive(Debug)]
struct Registry {
    recorder: PrometheusRecorder,
    histograms: Histograms,
    allowed: OnceLock<AllowedLabels>,
}

impl Default for Registry {
    fn default() -> Self {
        let recorder = PrometheusBuilder::new().build_recorder();
        buckets::describe(&recorder);
        Self { recorder, histograms: Histograms::default(), allowed: OnceLock::new() }
    }
}

impl Registry {
    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.recorder.register_counter(&Key::from_parts(name, self.allowed(name, labels)), &METADATA)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.recorder.register_gauge(&Key::from_parts(name, self.allowed(name, labels)), &METADATA)
    }

    /// A histogram of the catalog.
    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        let limits = buckets::limits(name);
        debug_assert!(limits.is_some(), "{name} has no buckets");
        let limits = limits.unwrap_or_default();
        self.histograms.register(name, &self.allowed(name, labels), limits).into()
    }

    fn render_histograms(&self, out: &mut String) {
        self.histograms.render(out, catalog::head);
    }

    /// The labels with the values that may be shown.
    fn allowed(&self, name: &'static str, mut labels: Vec<Label>) -> Vec<Label> {
        let Some(allowed) = self.allowed.get() else { return labels };
        let unexpected = allowed.constrain(name, &mut labels);
        if unexpected > 0 {
            self.recorder
                .register_counter(&Key::from_name(allowed::UNEXPECTED), &METADATA)
                .increment(unexpected);
        }
        labels
    }
}

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    handle: PrometheusHandle,
    requests: RwLock<HashMap<RequestLabels, Arc<RequestMetrics>, RandomState>>,
    /// The numbers of requests in flight. Gauges get them when metrics are rendered.
    reading: Arc<AtomicUsize>,
    mutating: Arc<AtomicUsize>,
    started: SystemTime,
    certificate_left: Histogram,
    /// Metrics of authentication and authorization, which come before a request reaches a handler.
    pub attempts: AttemptMetrics,
    pub tokens: TokenMetrics,
    pub objects: ObjectMetrics,
    /// The features that were switched.
    features: OnceLock<Vec<(&'static str, bool)>>,
    config_infos: ConfigInfos,
    key_sets: KeySets,
    /// The hash of the server's id, once it is known.
    server: OnceLock<String>,
    /// The cluster's name, if there are several in the process.
    cluster: OnceLock<String>,
}

impl Default for Metrics {
    fn default() -> Self {
        let registry = Arc::new(Registry::default());
        let metrics = Self {
            handle: registry.recorder.handle(),
            requests: RwLock::default(),
            reading: Arc::default(),
            mutating: Arc::default(),
            started: SystemTime::now(),
            certificate_left: registry.histogram(certificates::CERTIFICATE_LEFT, Vec::new()),
            attempts: AttemptMetrics::default(),
            tokens: TokenMetrics::default(),
            objects: ObjectMetrics::new(&registry),
            features: OnceLock::new(),
            config_infos: ConfigInfos::default(),
            key_sets: KeySets::default(),
            server: OnceLock::new(),
            cluster: OnceLock::new(),
            registry,
        };
        // Upstream shows these before there is anything to count.
        for name in [allowed::UNEXPECTED, audit::EVENTS, audit::REJECTED] {
            metrics.counter(name, Vec::new()).absolute(0);
        }
        // A server without replicas is never behind, so the lag is set once.
        metrics.cache_lag().set(0.0);
        metrics
    }
}

impl Metrics {
    /// Shows only these values of labels of the metrics that are made from now on, if there are any. Called once.
    pub fn allow_labels(&self, allowed: AllowedLabels) {
        if allowed != AllowedLabels::default() {
            let _ = self.registry.allowed.set(allowed);
        }
    }

    /// Publishes the document of `/version` as `kubernetes_build_info`.
    pub fn set_build_info(&self, version: &crate::tree::Value) {
        self.gauge("kubernetes_build_info", build_labels(version)).set(1.0);
    }

    /// The metrics of requests with these labels. Labels must come from the catalog of served resources, never from a
    /// client's text, since every set of labels is kept for ever.
    pub fn request(&self, labels: &RequestLabels) -> Arc<RequestMetrics> {
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner).get(labels).cloned();
        known.unwrap_or_else(|| {
            let mut requests = self.requests.write().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new(RequestMetrics::new(self.registry.clone(), labels));
            requests.entry(labels.clone()).or_insert_with(new).clone()
        })
    }

    /// Counts a request as in flight until the guard is dropped. Not for long-running requests.
    pub fn in_flight(&self, kind: RequestKind) -> InFlight {
        InFlight::new(match kind {
            RequestKind::ReadOnly => &self.reading,
            RequestKind::Mutating => &self.mutating,
        })
    }

    /// Says that a deprecated version was asked for. The names must be those of what is served.
    pub fn deprecated_api_requested(&self, resource: &Gvr, subresource: &str) {
        let labels = [
            ("group", resource.group().as_str()),
            ("version", resource.version()),
            ("resource", resource.plural.as_str()),
            ("subresource", subresource),
            ("removed_release", ""),
        ];
        self.gauge("apiserver_requested_deprecated_apis", labels_of(&labels)).set(1.0);
    }

    /// Counts what a limit has refused or ended.
    pub fn limit_reached(&self, limit: &'static str) -> Counter {
        self.counter("rowplane_limit_reached_total", labels_of(&[("limit", limit)]))
    }

    /// Counts handshakes of TLS that fail.
    pub fn handshake_errors(&self) -> Counter {
        self.counter("apiserver_tls_handshake_errors_total", Vec::new())
    }

    /// How long admission takes: a plugin, or all of them together.
    pub fn admission_times(&self, plugin: Option<&'static str>) -> StepTimes {
        StepTimes::new(&self.registry, plugin)
    }

    /// The metrics of auditing.
    pub fn audit(&self) -> AuditMetrics {
        AuditMetrics::new(&self.registry)
    }

    /// Counts the decisions of an authorizer. Names come from settings.
    pub fn decisions(&self, mode: &str, name: &str) -> DecisionMetrics {
        DecisionMetrics::new(&self.registry, mode, name)
    }

    /// The metrics of a webhook that authorizes.
    pub fn authorization_webhook(&self, name: &str) -> WebhookMetrics {
        WebhookMetrics::new(&self.registry, name)
    }

    /// Says which server this is: the hash of its id.
    pub fn know_server(&self, hash: String) {
        let _ = self.server.set(hash);
    }

    /// The label that tells servers apart whose metrics are added up.
    fn server(&self) -> (&'static str, &str) {
        ("apiserver_id_hash", self.server.get().map_or("", String::as_str))
    }

    /// The metrics of reading a file of settings again. `server` is the hash of the server's id.
    pub fn reloads(&self, file: ReloadedFile, server: String) -> ReloadMetrics {
        ReloadMetrics::new(&self.registry, &self.config_infos, file, server)
    }

    /// The metrics of a priority level. Names come from stored objects.
    pub fn level(&self, level: &str) -> LevelMetrics {
        LevelMetrics::new(&self.registry, level)
    }

    /// The metrics of a FlowSchema. Names come from stored objects.
    pub fn flow(&self, level: &str, flow: &str) -> FlowMetrics {
        FlowMetrics::new(&self.registry, level, flow)
    }

    /// 1 while this server leads, otherwise 0.
    pub fn leader_status(&self, lease: &str) -> Gauge {
        self.gauge("leader_election_master_status", labels_of(&[("name", lease)]))
    }

    pub fn controller_panics(&self, controller: &str) -> Counter {
        self.counter("rowplane_controller_panics_total", labels_of(&[("controller", controller)]))
    }

    /// Counts objects that `by` could not read when it had to decide about them.
    pub fn unreadable_objects(&self, by: &str) -> Counter {
        self.counter("rowplane_unreadable_objects_total", labels_of(&[("by", by)]))
    }

    /// Names the cluster whose metrics these are: all of them have the label `cluster` then, and those of the process, which are
    /// not the cluster's own, are left out.
    pub fn know_cluster(&self, name: &str) {
        let _ = self.cluster.set(name.to_owned());
    }

    /// Adds how many objects there are of each resource to the text of `/metrics`.
    pub fn render_objects(&self, text: &mut String, counts: &[(GroupResource, usize)]) {
        let mut own = String::new();
        stored::render(&mut own, counts);
        text.push_str(&self.labelled(own));
    }

    /// Adds the size of the database to the text of `/metrics`.
    pub fn render_size(&self, text: &mut String, bytes: u64) {
        let mut own = String::new();
        stored::render_size(&mut own, bytes);
        text.push_str(&self.labelled(own));
    }

    /// The text with the label of the cluster, if it has a name.
    fn labelled(&self, text: String) -> String {
        match self.cluster.get() {
            Some(cluster) => order::labelled(&text, cluster),
            None => text,
        }
    }

    /// The text of `/metrics`, without what only others know.
    pub fn render(&self) -> String {
        for (kind, count) in [(RequestKind::ReadOnly, &self.reading), (RequestKind::Mutating, &self.mutating)]
        {
            let labels = vec![Label::from_static_parts("request_kind", kind.as_str())];
            let count = u32::try_from(count.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            self.gauge("apiserver_current_inflight_requests", labels).set(count);
        }
        let mut text = self.handle.render();
        if self.cluster.get().is_none() {
            process::render(&mut text, self.started);
        }
        self.render_features(&mut text);
        self.registry.render_histograms(&mut text);
        self.attempts.render(&mut text);
        self.tokens.render(&mut text);
        self.config_infos.render(&mut text, self.server().1);
        self.key_sets.render(&mut text, self.server().1);
        self.labelled(text)
    }

    fn counter(&self, name: &'static str, labels: Vec<Label>) -> Counter {
        self.registry.counter(name, labels)
    }

    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        self.registry.histogram(name, labels)
    }

    fn gauge(&self, name: &'static str, labels: Vec<Label>) -> Gauge {
        self.registry.gauge(name, labels)
    }
}

fn labels_of(labels: &[(&'static str, &str)]) -> Vec<Label> {
    labels.iter().map(|(name, value)| Label::new(*name, (*value).to_owned())).collect()
}

fn build_labels(version: &crate::tree::Value) -> Vec<Label> {
    const FIELDS: [(&str, &str); 9] = [
        ("build_date", "buildDate"),
        ("compiler", "compiler"),
        ("git_commit", "gitCommit"),
        ("git_tree_state", "gitTreeState"),
        ("git_version", "gitVersion"),
        ("go_version", "goVersion"),
        ("major", "major"),
        ("minor", "minor"),
        ("platform", "platform"),
    ];
    let text = |field: &str| version.get(field).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
    FIELDS.iter().map(|(label, field)| Label::new(*label, text(field))).collect()
}
