//! All metrics with what they say: the texts of `/metrics`, and the buckets of histograms.

use metrics::Recorder as _;
use metrics_exporter_prometheus::PrometheusRecorder;

use super::{
    admission, audit, authorization, certificates, conversion, encryption, external_signer, flow_control,
    request, store, tokens, watch,
};

const COUNTERS: &[(&str, &str)] = &[
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
    ("apiserver_tls_handshake_errors_total", "Number of connections that ended in their TLS handshake."),
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
    (conversion::CONVERSION_REQUESTS, "Calls of conversion webhooks, by result and failure type."),
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
        &flow_control::SECONDS_BUCKETS,
        "Length of time a request spent waiting in its queue.",
    ),
    (
        flow_control::EXECUTION_SECONDS,
        &flow_control::SECONDS_BUCKETS,
        "Length of time a request has had its seats; of a watch, until it has begun.",
    ),
    (
        flow_control::ESTIMATED_SEATS,
        &flow_control::SEATS_BUCKETS,
        "Number of seats that requests are taken to need.",
    ),
    (
        flow_control::WATCH_COUNTS,
        &flow_control::WATCHES_BUCKETS,
        "Number of watches that a write concerns, by which its seats are counted.",
    ),
    (request::REQUEST_SECONDS, &request::REQUEST_BUCKETS, "Response latency distribution in seconds."),
    (
        request::REQUEST_SLI_SECONDS,
        &request::REQUEST_SLI_BUCKETS,
        "Response latency distribution in seconds, without the time of webhooks and of queues of priority and fairness.",
    ),
    (request::RESPONSE_SIZES, &request::RESPONSE_SIZE_BUCKETS, "Response size distribution in bytes."),
    (watch::WATCH_EVENT_SIZES, &watch::WATCH_EVENT_SIZE_BUCKETS, "Watch event size distribution in bytes"),
    (
        certificates::CERTIFICATE_LEFT,
        &certificates::CERTIFICATE_BUCKETS,
        "Distribution of the remaining lifetime on the certificate used to authenticate a request.",
    ),
    (
        conversion::CONVERSION_SECONDS,
        &conversion::CONVERSION_BUCKETS,
        "Time that calls of conversion webhooks take.",
    ),
    (
        conversion::DEFINITION_CONVERSION_SECONDS,
        &conversion::DEFINITION_CONVERSION_BUCKETS,
        "Time that conversions by webhook take, by definition.",
    ),
    (store::COMMIT_SECONDS, &store::COMMIT_BUCKETS, "Time to make one group of writes durable."),
    (store::COMMIT_SIZE, &store::SIZE_BUCKETS, "Number of writes committed together."),
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
    (flow_control::LEAST, "Lower bound on the execution seats available to each priority level."),
    (flow_control::MOST, "Upper bound on the execution seats available to each priority level."),
    (
        flow_control::HIGH,
        "Most seats that a priority level could use at a time in the last period of adjustment.",
    ),
    (flow_control::AVERAGE, "Average over time of the seats that a priority level could use in that period."),
    (
        flow_control::DEVIATION,
        "Standard deviation over time of the seats that a priority level could use in that period.",
    ),
    (flow_control::SMOOTHED, "Smoothed demand of seats of each priority level."),
    (flow_control::TARGET, "Seats of each priority level that a division aims at."),
    (
        flow_control::FAIR_FRACTION,
        "Fair fraction of the server's seats for each priority level that can use it; 0 if there are not enough.",
    ),
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

/// The buckets of a histogram, and its text.
pub(super) fn histogram(name: &str) -> Option<(&'static [f64], &'static str)> {
    let known = HISTOGRAMS.iter().find(|(known, ..)| *known == name)?;
    Some((known.1, known.2))
}

/// Tells the recorder what counters and gauges say.
pub(super) fn describe(recorder: &PrometheusRecorder) {
    for (name, text) in COUNTERS {
        recorder.describe_counter((*name).into(), None, (*text).into());
    }
    for (name, text) in GAUGES {
        recorder.describe_gauge((*name).into(), None, (*text).into());
    }
}
