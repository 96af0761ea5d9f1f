//! The metrics of one server, in Prometheus' text format. They have kube-apiserver's names where it has such metrics,
//! otherwise `rowplane_*`.
//!
//! Every server has its own registry, which its [`Runtime`](crate::runtime::Runtime) holds. Handles are created once
//! per set of labels; using one costs an atomic operation. [`Metrics::request`] is a lookup in a map, using its result
//! is not.

mod admission;
mod allowed;
mod attempts;
mod audit;
mod authorization;
mod certificates;
mod encryption;
mod external_signer;
mod flow_control;
mod histograms;
mod order;
mod process;
mod request;
mod stored;
mod tokens;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

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
pub use attempts::{AttemptMetrics, Authentication, Authorization};
pub use audit::AuditMetrics;
pub use authorization::{DecisionMetrics, ReloadMetrics, ReloadedFile, WebhookMetrics};
pub use flow_control::{FlowMetrics, LevelMetrics};
pub use request::{InFlight, LongRunning, RequestKind, RequestLabels, RequestMetrics, Scope, WebhookTime};
pub use tokens::{TokenMetrics, TokenUse};

const METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

const REQUEST_SECONDS: &str = "apiserver_request_duration_seconds";
const REQUEST_SLI_SECONDS: &str = "apiserver_request_sli_duration_seconds";
const RESPONSE_SIZES: &str = "apiserver_response_sizes";
const WATCH_EVENT_SIZES: &str = "apiserver_watch_events_sizes";
const CERTIFICATE_LEFT: &str = "apiserver_client_certificate_expiration_seconds";
const COMMIT_SECONDS: &str = "rowplane_commit_duration_seconds";
const COMMIT_SIZE: &str = "rowplane_commit_batch_size";
const CONVERSION_REQUESTS: &str = "apiserver_conversion_webhook_request_total";
const CONVERSION_SECONDS: &str = "apiserver_conversion_webhook_duration_seconds";
const DEFINITION_CONVERSION_SECONDS: &str = "apiserver_crd_conversion_webhook_duration_seconds";

/// Upstream's buckets of `apiserver_request_duration_seconds`.
const REQUEST_BUCKETS: [f64; 23] = [
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];
/// Upstream's buckets of `apiserver_request_sli_duration_seconds`.
const REQUEST_SLI_BUCKETS: [f64; 21] = [
    0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];
/// Upstream's buckets of `apiserver_response_sizes`, in bytes.
const RESPONSE_SIZE_BUCKETS: [f64; 7] = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// Upstream's buckets of `apiserver_watch_events_sizes`, in bytes.
const WATCH_EVENT_SIZE_BUCKETS: [f64; 8] =
    [1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 65536.0, 131_072.0];
/// Upstream's buckets of `apiserver_client_certificate_expiration_seconds`: from half an hour to a year.
const CERTIFICATE_BUCKETS: [f64; 14] = [
    0.0,
    1_800.0,
    3_600.0,
    7_200.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    345_600.0,
    604_800.0,
    2_592_000.0,
    7_776_000.0,
    15_552_000.0,
    31_104_000.0,
];
const COMMIT_BUCKETS: [f64; 14] =
    [0.000_25, 0.000_5, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.125, 0.25, 0.5, 1.0, 5.0];
/// Upstream's buckets of `apiserver_conversion_webhook_duration_seconds`.
const CONVERSION_BUCKETS: [f64; 15] =
    [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 45.0, 60.0];
/// Upstream's buckets of `apiserver_crd_conversion_webhook_duration_seconds`.
const DEFINITION_CONVERSION_BUCKETS: [f64; 15] = [
    0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384,
];
const SIZE_BUCKETS: [f64; 11] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

const COUNTERS: &[(&str, &str)] = &[
    (allowed::UNEXPECTED, "The count of unexpected categorizations during cardinality enforcement."),
    (external_signer::FETCHES, "Total attempts at syncing supported JWKs"),
    (external_signer::SIGNATURES, "Total attempts at signing JWT"),
    (
        admission::POD_SECURITY_EVALUATIONS,
        "Number of policy evaluations that occurred, not counting ignored or exempt requests.",
    ),
    (
        admission::POD_SECURITY_EXEMPTIONS,
        "Number of exempt requests, not counting ignored or out of scope requests.",
    ),
    (
        admission::POD_SECURITY_ERRORS,
        "Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being \
         used for evaluation.",
    ),
    (
        admission::MUTATION_CHECKS,
        "Mutation admission policy check total, labeled by policy and further identified by binding.",
    ),
    (
        admission::POLICY_CHECKS,
        "Validation admission policy check total, labeled by policy and further identified by binding and enforcement \
         action taken.",
    ),
    (
        admission::HOOK_REJECTIONS,
        "Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) \
         and operation.",
    ),
    (
        admission::HOOK_FAILED_OPEN,
        "Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).",
    ),
    (
        admission::HOOK_REQUESTS,
        "Admission webhook request total, identified by name and broken out for each admission type (validating or \
         mutating) and operation.",
    ),
    (
        admission::CONDITION_ERRORS,
        "Admission match condition evaluation errors count, identified by name of resource containing the match condition.",
    ),
    (
        admission::CONDITION_EXCLUSIONS,
        "Admission match condition evaluation exclusions count, identified by name of resource containing the match \
         condition.",
    ),
    (encryption::KEY_USES, "Number of times a keyID is used split by transformation type and provider."),
    (
        encryption::WRONG_KEYS,
        "Number of times an invalid keyID is returned by the Status RPC call split by error.",
    ),
    (encryption::MISSES, "Total number of cache misses while accessing key decryption key(KEK)."),
    (encryption::RELOADS, "Total number of reload successes and failures of encryption configuration."),
    (
        encryption::OPERATIONS,
        "Total number of transformations, by resource, direction, prefix of the provider, and status.",
    ),
    (flow_control::REJECTED, "Number of requests rejected by API Priority and Fairness."),
    (flow_control::DISPATCHED, "Number of requests executed by API Priority and Fairness."),
    (
        certificates::REQUESTED,
        "Total number of issued CSRs with a requested duration, sliced by signer (only kubernetes.io signer names are \
         specifically identified)",
    ),
    (
        certificates::HONORED,
        "Total number of issued CSRs with a requested duration that was honored, sliced by signer (only kubernetes.io \
         signer names are specifically identified)",
    ),
    (audit::EVENTS, "Counter of audit events generated and sent to the audit backend."),
    (audit::LEVELS, "Counter of policy levels for audit events (1 per request)."),
    (audit::ERRORS, "Counter of audit events that were not recorded, by the plugin that lost them."),
    (audit::REJECTED, "Counter of requests refused because of an error in an audit backend."),
    (
        authorization::DECISIONS,
        "Total number of terminal decisions made by an authorizer split by authorizer type, name, and decision.",
    ),
    (authorization::WEBHOOK_EVALUATIONS, "Round-trips to authorization webhooks."),
    (tokens::IMPERSONATIONS, "Total number of impersonation attempts split by mode and decision."),
    (
        tokens::IMPERSONATION_CHECKS,
        "Total number of authorization checks made by the impersonation handler split by mode and decision.",
    ),
    (authorization::WEBHOOK_FAIL_OPEN, "NoOpinion results due to webhook timeout or error."),
    (
        authorization::CONDITION_ERRORS,
        "Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name.",
    ),
    (
        authorization::CONDITION_EXCLUSIONS,
        "Total number of exclusions when an authorization webhook is skipped because match conditions exclude it.",
    ),
    (
        authorization::AUTHENTICATION_RELOADS,
        "Total number of automatic reloads of authentication configuration split by status and apiserver identity.",
    ),
    (
        authorization::AUTHORIZATION_RELOADS,
        "Total number of automatic reloads of authorization configuration split by status and apiserver identity.",
    ),
    (
        authorization::MANIFEST_RELOADS,
        "Total number of automatic reloads of admission manifest configuration split by status, plugin, and apiserver \
         identity.",
    ),
    ("apiserver_request_aborts_total", "Number of requests whose response was broken off."),
    ("apiserver_request_terminations_total", "Number of requests refused or ended in self-defense."),
    ("rowplane_limit_reached_total", "Times a limit has refused or ended something, by limit."),
    ("apiserver_request_total", "Counter of apiserver requests, by response code too."),
    (CONVERSION_REQUESTS, "Calls of conversion webhooks, by result and failure type."),
    ("apiserver_watch_events_total", "Number of events sent in watch clients"),
    ("rowplane_unreadable_objects_total", "Stored objects that could not be read where they had to decide."),
];
/// Names, limits of buckets, and what is counted.
const HISTOGRAMS: &[(&str, &[f64], &str)] = &[
    (
        external_signer::SECONDS,
        &external_signer::BUCKETS,
        "Request duration and time for calls to external-jwt-signer",
    ),
    (
        admission::MUTATION_SECONDS,
        &admission::POLICY_BUCKETS,
        "Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.",
    ),
    (
        admission::POLICY_SECONDS,
        &admission::POLICY_BUCKETS,
        "Validation admission latency for individual validation expressions in seconds, labeled by policy and further \
         including binding and enforcement action taken.",
    ),
    (
        encryption::KMS_SECONDS,
        &encryption::KMS_BUCKETS,
        "KMS operation duration with gRPC error code status total.",
    ),
    (
        encryption::SEED_SECONDS,
        &encryption::SEED_BUCKETS,
        "Latencies in seconds of data encryption key(DEK) generation operations.",
    ),
    (encryption::SECONDS, &encryption::BUCKETS, "Latencies in seconds of value transformation operations."),
    (
        admission::HOOK_SECONDS,
        &admission::HOOK_BUCKETS,
        "Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API \
         resource and type (validate or admit).",
    ),
    (
        admission::STEP_SECONDS,
        &admission::BUCKETS,
        "Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type \
         (validate or admit).",
    ),
    (
        admission::PLUGIN_SECONDS,
        &admission::BUCKETS,
        "Admission controller latency histogram in seconds, identified by name and broken out for each operation and API \
         resource and type (validate or admit).",
    ),
    (
        tokens::IMPERSONATION_CHECK_SECONDS,
        &tokens::IMPERSONATION_BUCKETS,
        "Latency of authorization checks made by the impersonation handler in seconds split by mode and decision.",
    ),
    (
        tokens::IMPERSONATION_SECONDS,
        &tokens::IMPERSONATION_BUCKETS,
        "Latency of impersonation attempts in seconds split by mode and decision.",
    ),
    (authorization::WEBHOOK_SECONDS, &authorization::WEBHOOK_BUCKETS, "Request latency in seconds."),
    (
        admission::CONDITION_SECONDS,
        &admission::CONDITION_BUCKETS,
        "Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing \
         matchConditions (webhook or policy), operation and type (validate or admit).",
    ),
    (
        authorization::CONDITION_SECONDS,
        &authorization::CONDITION_BUCKETS,
        "Authorization match condition evaluation time in seconds, split by authorizer type and name.",
    ),
    (
        flow_control::WAIT_SECONDS,
        &flow_control::WAIT_BUCKETS,
        "Length of time a request spent waiting in its queue.",
    ),
    (REQUEST_SECONDS, &REQUEST_BUCKETS, "Response latency distribution in seconds."),
    (
        REQUEST_SLI_SECONDS,
        &REQUEST_SLI_BUCKETS,
        "Response latency distribution in seconds, without the time of webhooks and of queues of priority and fairness.",
    ),
    (RESPONSE_SIZES, &RESPONSE_SIZE_BUCKETS, "Response size distribution in bytes."),
    (WATCH_EVENT_SIZES, &WATCH_EVENT_SIZE_BUCKETS, "Watch event size distribution in bytes"),
    (
        CERTIFICATE_LEFT,
        &CERTIFICATE_BUCKETS,
        "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    ),
    (CONVERSION_SECONDS, &CONVERSION_BUCKETS, "Time that calls of conversion webhooks take."),
    (
        DEFINITION_CONVERSION_SECONDS,
        &DEFINITION_CONVERSION_BUCKETS,
        "Time that conversions by webhook take, by definition.",
    ),
    (COMMIT_SECONDS, &COMMIT_BUCKETS, "Time to make one group of writes durable."),
    (COMMIT_SIZE, &SIZE_BUCKETS, "Number of writes committed together."),
];
const GAUGES: &[(&str, &str)] = &[
    (
        certificates::KEYS_FETCHED,
        "Timestamp of the last successful or failed JWKS fetch split by result, api server identity and jwt issuer for the \
         JWT authenticator.",
    ),
    (external_signer::FETCHED_AT, "Unix Timestamp in seconds of the last successful FetchKeys request"),
    (
        external_signer::MADE_AT,
        "Unix Timestamp in seconds of the last successful FetchKeys data_timestamp value returned by the external signer",
    ),
    (encryption::KEY_TOLD, "The last time in seconds when a keyID was returned by the Status RPC call."),
    (encryption::SEEDS, "Number of records in data encryption key (DEK) source cache."),
    (
        encryption::RELOADED_AT,
        "Timestamp of the last successful or failed automatic reload of encryption configuration.",
    ),
    (
        authorization::AUTHENTICATION_RELOADED,
        "Timestamp of the last automatic reload of authentication configuration split by status and apiserver identity.",
    ),
    (
        authorization::AUTHORIZATION_RELOADED,
        "Timestamp of the last automatic reload of authorization configuration split by status and apiserver identity.",
    ),
    (
        authorization::MANIFESTS_RELOADED,
        "Timestamp of the last automatic reload of admission manifest configuration split by status, plugin, and \
         apiserver identity.",
    ),
    (
        flow_control::WAITING,
        "Number of requests currently pending in queues of the API Priority and Fairness subsystem.",
    ),
    (
        flow_control::EXECUTING,
        "Number of requests in initial (for a WATCH) or any (for a non-WATCH) execution stage in the API Priority and \
         Fairness subsystem.",
    ),
    (
        flow_control::SEATS,
        "Concurrency (number of seats) occupied by the currently executing (initial stage for a WATCH, any stage \
         otherwise) requests in the API Priority and Fairness subsystem.",
    ),
    (flow_control::NOMINAL, "Nominal number of execution seats configured for each priority level."),
    (flow_control::LIMIT, "Current derived number of execution seats available to each priority level."),
    ("apiserver_longrunning_requests", "Gauge of all active long-running apiserver requests."),
    ("apiserver_current_inflight_requests", "Requests being worked on, per request kind."),
    (
        "apiserver_requested_deprecated_apis",
        "Gauge of deprecated APIs that have been requested, broken out by API group, version, resource, subresource, and \
         removed_release.",
    ),
    ("kubernetes_build_info", "A constant 1, labeled by what is known of the build."),
    ("rowplane_cache_lag_revisions", "Revisions by which the watch cache is behind the store."),
    ("rowplane_compaction_backlog_revisions", "Compacted revisions whose rows have not been removed yet."),
    ("rowplane_compaction_lag_revisions", "Revisions of history that are kept: newest minus compacted."),
];

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
        describe(&recorder);
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

    /// A histogram of those in [`HISTOGRAMS`].
    fn histogram(&self, name: &'static str, labels: Vec<Label>) -> Histogram {
        let known = HISTOGRAMS.iter().find(|(known, ..)| *known == name);
        debug_assert!(known.is_some(), "{name} has no buckets");
        let limits = known.map_or(&[][..], |(_, limits, _)| limits);
        self.histograms.register(name, &self.allowed(name, labels), limits).into()
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

    fn render_histograms(&self, out: &mut String) {
        self.histograms.render(out, |name| {
            let known = HISTOGRAMS.iter().find(|(known, ..)| *known == name);
            known.map_or("", |(_, _, text)| text)
        });
    }
}

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    handle: PrometheusHandle,
    requests: RwLock<HashMap<RequestLabels, Arc<RequestMetrics>>>,
    /// The numbers of requests in flight. Gauges get them when metrics are rendered.
    reading: Arc<AtomicUsize>,
    mutating: Arc<AtomicUsize>,
    started: SystemTime,
    certificate_left: Histogram,
    /// Metrics of authentication and authorization, which come before a request reaches a handler.
    pub attempts: AttemptMetrics,
    pub tokens: TokenMetrics,
    config_infos: ConfigInfos,
    key_sets: KeySets,
    /// The hash of the server's id, once it is known.
    server: OnceLock<String>,
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
            certificate_left: registry.histogram(CERTIFICATE_LEFT, Vec::new()),
            attempts: AttemptMetrics::default(),
            tokens: TokenMetrics::default(),
            config_infos: ConfigInfos::default(),
            key_sets: KeySets::default(),
            server: OnceLock::new(),
            registry,
        };
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

    /// Counts a request for a container's output, by whether the kubelet's certificate may be anything.
    pub fn logs_asked(&self, unverified: bool) {
        let usage = if unverified { "skip_tls_allowed" } else { "enforce_tls" };
        let labels = labels_of(&[("usage", usage)]);
        self.counter("kube_apiserver_pod_logs_insecure_backend_total", labels).increment(1);
    }

    /// Counts a request for a container's output that failed by the kubelet's certificate.
    pub fn logs_not_trusted(&self) {
        self.counter("kube_apiserver_pod_logs_backend_tls_failure_total", Vec::new()).increment(1);
    }

    /// Counts a request for a stream of a Pod, which is passed on to the kubelet as it is, or in another protocol.
    pub fn stream_asked(&self, subresource: &'static str, is_translated: bool) {
        let way = if is_translated { "translated_at_apiserver" } else { "proxied_to_kubelet" };
        let labels = labels_of(&[("subresource", subresource), ("proxy_type", way)]);
        self.counter("apiserver_websocket_streaming_requests_total", labels).increment(1);
    }

    /// Counts what came of a stream that was translated.
    pub fn stream_translated(&self, status: u16) {
        let code = status.to_string();
        self.counter("apiserver_stream_translator_requests_total", labels_of(&[("code", &code)]))
            .increment(1);
    }

    /// Counts what came of a request for a tunnel.
    pub fn stream_tunnelled(&self, status: u16) {
        let code = status.to_string();
        self.counter("apiserver_stream_tunnel_requests_total", labels_of(&[("code", &code)])).increment(1);
    }

    /// Notes a request with a client certificate that is valid for so many seconds still.
    pub fn certificate_shown(&self, seconds_left: u64) {
        self.certificate_left.record(seconds_left as f64);
    }

    /// The metrics of events sent to watchers of a resource. Call once per watch.
    pub fn watch_events(&self, resource: &Gvr) -> WatchEventMetrics {
        let labels = [
            ("group", resource.group().as_str()),
            ("version", resource.version()),
            ("resource", resource.plural.as_str()),
        ];
        WatchEventMetrics {
            count: self.counter("apiserver_watch_events_total", labels_of(&labels)),
            size: self.histogram(WATCH_EVENT_SIZES, labels_of(&labels)),
        }
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

    /// How many revisions the watch cache is behind the store.
    pub fn cache_lag(&self) -> Gauge {
        self.gauge("rowplane_cache_lag_revisions", Vec::new())
    }

    /// Counts changes that were missing in the table.
    pub fn cache_gaps(&self) -> Counter {
        self.counter("rowplane_cache_gaps_total", Vec::new())
    }

    /// Counts queries of the store's newest revision.
    pub fn clock_questions(&self) -> Counter {
        self.counter("rowplane_clock_questions_total", Vec::new())
    }

    /// How many revisions the compacted revision is behind the newest one.
    pub fn compaction_lag(&self) -> Gauge {
        self.gauge("rowplane_compaction_lag_revisions", Vec::new())
    }

    /// How many compacted revisions still have rows.
    pub fn compaction_backlog(&self) -> Gauge {
        self.gauge("rowplane_compaction_backlog_revisions", Vec::new())
    }

    /// The metrics that the writer records.
    pub fn commits(&self) -> CommitMetrics {
        let histogram = |name| self.histogram(name, Vec::new());
        CommitMetrics { size: histogram(COMMIT_SIZE), duration: histogram(COMMIT_SECONDS) }
    }

    /// Adds how many objects there are of each resource to the text of `/metrics`.
    pub fn render_objects(&self, text: &mut String, counts: &[(GroupResource, usize)]) {
        stored::render(text, counts);
    }

    /// Adds the bytes that the database takes to the text of `/metrics`.
    pub fn render_size(&self, text: &mut String, bytes: u64) {
        stored::render_size(text, bytes);
    }

    /// The text of `/metrics`, in no order ([`sorted`]), without what only others know.
    pub fn render(&self) -> String {
        for (kind, count) in [(RequestKind::ReadOnly, &self.reading), (RequestKind::Mutating, &self.mutating)]
        {
            let labels = vec![Label::from_static_parts("request_kind", kind.as_str())];
            let count = u32::try_from(count.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
            self.gauge("apiserver_current_inflight_requests", labels).set(count);
        }
        let mut text = self.handle.render();
        process::render(&mut text, self.started);
        self.registry.render_histograms(&mut text);
        self.attempts.render(&mut text);
        self.tokens.render(&mut text);
        self.config_infos.render(&mut text, self.server().1);
        self.key_sets.render(&mut text, self.server().1);
        text
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

/// Counts the events of a watch, and their bytes.
#[derive(Clone, Debug)]
pub struct WatchEventMetrics {
    count: Counter,
    size: Histogram,
}

impl WatchEventMetrics {
    pub fn sent(&self, bytes: usize) {
        self.count.increment(1);
        self.size.record(bytes as f64);
    }
}

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

/// Records what the store commits.
#[derive(Clone, Debug)]
pub struct CommitMetrics {
    size: Histogram,
    duration: Histogram,
}

impl CommitMetrics {
    pub fn committed(&self, writes: usize, took: Duration) {
        self.size.record(u32::try_from(writes).unwrap_or(u32::MAX));
        self.duration.record(took);
    }
}

fn describe(recorder: &PrometheusRecorder) {
    for (name, text) in COUNTERS {
        recorder.describe_counter((*name).into(), None, (*text).into());
    }
    for (name, text) in GAUGES {
        recorder.describe_gauge((*name).into(), None, (*text).into());
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

#[cfg(test)]
mod tests;
