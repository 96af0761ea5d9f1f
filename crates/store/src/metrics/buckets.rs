//! Histograms and the limits of their buckets.

use metrics::Recorder as _;
use metrics_exporter_prometheus::PrometheusRecorder;

use super::catalog;
use super::{
    admission, authorization, certificates, conversion, egress, encryption, external_signer, flow_control,
    objects, past, request, services, sql, store, tokens, watch,
};

/// The buckets of Prometheus' clients, in seconds.
const DEFAULT_BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// The names of histograms, and the limits of their buckets.
const HISTOGRAMS: &[(&str, &[f64])] = &[
    (admission::CONDITION_SECONDS, &admission::CONDITION_BUCKETS),
    (admission::HOOK_SECONDS, &admission::HOOK_BUCKETS),
    (admission::MUTATION_SECONDS, &admission::POLICY_BUCKETS),
    (admission::PLUGIN_SECONDS, &admission::BUCKETS),
    (admission::POLICY_SECONDS, &admission::POLICY_BUCKETS),
    (admission::STEP_SECONDS, &admission::BUCKETS),
    (authorization::CONDITION_SECONDS, &authorization::CONDITION_BUCKETS),
    (authorization::WEBHOOK_SECONDS, &authorization::WEBHOOK_BUCKETS),
    (certificates::CERTIFICATE_LEFT, &certificates::CERTIFICATE_BUCKETS),
    (conversion::CONVERSION_SECONDS, &conversion::CONVERSION_BUCKETS),
    (conversion::DEFINITION_CONVERSION_SECONDS, &conversion::DEFINITION_CONVERSION_BUCKETS),
    (egress::SECONDS, &egress::BUCKETS),
    (encryption::KMS_SECONDS, &encryption::KMS_BUCKETS),
    (encryption::SECONDS, &encryption::BUCKETS),
    (encryption::SEED_SECONDS, &encryption::SEED_BUCKETS),
    (external_signer::SECONDS, &external_signer::BUCKETS),
    (flow_control::ESTIMATED_SEATS, &flow_control::SEATS_BUCKETS),
    (flow_control::EXECUTION_SECONDS, &flow_control::SECONDS_BUCKETS),
    (flow_control::WAIT_SECONDS, &flow_control::SECONDS_BUCKETS),
    (flow_control::WATCH_COUNTS, &flow_control::WATCHES_BUCKETS),
    (objects::COMPARISON_SECONDS, &objects::COMPARISON_BUCKETS),
    (objects::COMPILATION_SECONDS, &DEFAULT_BUCKETS),
    (objects::EVALUATION_SECONDS, &DEFAULT_BUCKETS),
    (past::SECONDS, &past::BUCKETS),
    (request::BODY_SIZES, &request::BODY_SIZE_BUCKETS),
    (request::REQUEST_SECONDS, &request::REQUEST_BUCKETS),
    (request::REQUEST_SLI_SECONDS, &request::REQUEST_SLI_BUCKETS),
    (request::RESPONSE_SIZES, &request::RESPONSE_SIZE_BUCKETS),
    (services::ADDRESS_SECONDS, &DEFAULT_BUCKETS),
    (sql::SECONDS, &sql::BUCKETS),
    (store::COMMIT_SECONDS, &store::COMMIT_BUCKETS),
    (store::COMMIT_SIZE, &store::SIZE_BUCKETS),
    (tokens::IMPERSONATION_CHECK_SECONDS, &tokens::IMPERSONATION_BUCKETS),
    (tokens::IMPERSONATION_SECONDS, &tokens::IMPERSONATION_BUCKETS),
    (watch::WATCH_EVENT_SIZES, &watch::WATCH_EVENT_SIZE_BUCKETS),
];

/// The buckets of a histogram.
pub(super) fn limits(name: &str) -> Option<&'static [f64]> {
    HISTOGRAMS.iter().find(|(known, _)| *known == name).map(|(_, limits)| *limits)
}

/// Tells the recorder the help of counters and gauges; it has one map for all.
pub(super) fn describe(recorder: &PrometheusRecorder) {
    for (name, help) in catalog::all().filter(|(name, _)| limits(name).is_none()) {
        recorder.describe_gauge(name.into(), None, help.into());
    }
}
