//! Metrics of admission.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::{Counter, Histogram, Label};

use super::{Metrics, Registry, labels_of};

pub const STEP_SECONDS: &str = "apiserver_admission_step_admission_duration_seconds";
pub const PLUGIN_SECONDS: &str = "apiserver_admission_controller_admission_duration_seconds";

/// Upstream's buckets.
pub const BUCKETS: [f64; 6] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5];

const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// One of the two steps of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Admit,
    Validate,
}

impl Step {
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Admit => "admit",
            Step::Validate => "validate",
        }
    }
}

/// How long a plugin takes, or all of them together. A series is there once something has been measured.
#[derive(Debug)]
pub struct StepTimes {
    registry: Arc<Registry>,
    plugin: Option<&'static str>,
    series: [OnceLock<Histogram>; 16],
}

impl StepTimes {
    pub(super) fn new(registry: &Arc<Registry>, plugin: Option<&'static str>) -> Self {
        Self { registry: registry.clone(), plugin, series: Default::default() }
    }

    /// `operation` is as upstream's label has it.
    pub fn took(&self, step: Step, operation: &'static str, rejected: bool, took: Duration) {
        let place = OPERATIONS.iter().position(|name| *name == operation).unwrap_or_default();
        let place = place * 4 + usize::from(step == Step::Validate) * 2 + usize::from(rejected);
        self.series[place].get_or_init(|| self.register(step, operation, rejected)).record(took);
    }

    fn register(&self, step: Step, operation: &'static str, rejected: bool) -> Histogram {
        let rejected = if rejected { "true" } else { "false" };
        let common = [("type", step.as_str()), ("operation", operation), ("rejected", rejected)];
        let (name, labels) = match self.plugin {
            None => (STEP_SECONDS, labels_of(&common)),
            Some(plugin) => {
                let labels: Vec<_> = [("name", plugin)].into_iter().chain(common).collect();
                (PLUGIN_SECONDS, labels_of(&labels))
            }
        };
        self.registry.histogram(name, labels)
    }
}

pub const HOOK_SECONDS: &str = "apiserver_admission_webhook_admission_duration_seconds";
pub const HOOK_REJECTIONS: &str = "apiserver_admission_webhook_rejection_count";
pub const HOOK_FAILED_OPEN: &str = "apiserver_admission_webhook_fail_open_count";
pub const HOOK_REQUESTS: &str = "apiserver_admission_webhook_request_total";
pub const CONDITION_ERRORS: &str = "apiserver_admission_match_condition_evaluation_errors_total";
pub const CONDITION_EXCLUSIONS: &str = "apiserver_admission_match_condition_exclusions_total";

pub const CONDITION_SECONDS: &str = "apiserver_admission_match_condition_evaluation_seconds";

pub const POLICY_CHECKS: &str = "apiserver_validating_admission_policy_check_total";
pub const POLICY_SECONDS: &str = "apiserver_validating_admission_policy_check_duration_seconds";

pub const MUTATION_CHECKS: &str = "apiserver_mutating_admission_policy_check_total";
pub const MUTATION_SECONDS: &str = "apiserver_mutating_admission_policy_check_duration_seconds";

pub const POLICY_BUCKETS: [f64; 5] = [5e-7, 0.001, 0.01, 0.1, 1.0];
pub const CONDITION_BUCKETS: [f64; 7] = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
pub const HOOK_BUCKETS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];

/// The largest code that a label holds.
const LARGEST_CODE: u16 = 600;

/// A call of an admission webhook. Its name comes from a stored configuration.
#[derive(Clone, Copy, Debug)]
pub struct HookCall<'a> {
    pub name: &'a str,
    /// `admit` or `validating`.
    pub kind: &'static str,
    pub operation: &'static str,
    pub code: u16,
    /// Set if the request ended with it.
    pub rejection: Option<HookRejection>,
    pub took: Duration,
}

/// The cause for which a webhook ended a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookRejection {
    Call,
    Internal,
    /// No fault: the webhook said no.
    None,
}

/// The owner of match conditions that were evaluated.
#[derive(Clone, Copy, Debug)]
pub struct ConditionSource<'a> {
    pub name: &'a str,
    /// `webhook` or `policy`.
    pub kind: &'static str,
    /// `admit` or `validating`, or `validate` of policies.
    pub of: &'static str,
    pub operation: &'static str,
}

impl ConditionSource<'_> {
    fn labels(&self) -> Vec<Label> {
        labels_of(&[
            ("name", self.name),
            ("kind", self.kind),
            ("type", self.of),
            ("operation", self.operation),
        ])
    }
}

/// A validation that was not passed. Names come from stored objects.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCheck<'a> {
    pub policy: &'a str,
    pub binding: &'a str,
    /// `allow`, `deny`, `audit` or `warn`.
    pub action: &'static str,
    /// Upstream's type of the error.
    pub error: &'static str,
    pub took: Duration,
}

pub const POD_SECURITY_EVALUATIONS: &str = "pod_security_evaluations_total";
pub const POD_SECURITY_EXEMPTIONS: &str = "pod_security_exemptions_total";
pub const POD_SECURITY_ERRORS: &str = "pod_security_errors_total";

/// The request that PodSecurity has looked at, in upstream's labels.
#[derive(Clone, Copy, Debug)]
pub struct PodSecurityRequest<'a> {
    pub operation: &'static str,
    pub resource: &'static str,
    pub subresource: &'a str,
}

impl<'a> PodSecurityRequest<'a> {
    fn labels(&self) -> [(&'static str, &'a str); 3] {
        let Self { operation, resource, subresource } = *self;
        [("request_operation", operation), ("resource", resource), ("subresource", subresource)]
    }
}

/// A decision of PodSecurity by a rule.
#[derive(Clone, Copy, Debug)]
pub struct PodSecurityDecision<'a> {
    /// `allow` or `deny`.
    pub decision: &'static str,
    pub level: &'static str,
    pub version: &'a str,
    /// `enforce`, `audit` or `warn`.
    pub mode: &'static str,
}

impl Metrics {
    /// The counter of decisions like this one about requests like this one.
    pub fn pod_security_decisions(
        &self,
        decision: &PodSecurityDecision<'_>,
        request: &PodSecurityRequest<'_>,
    ) -> Counter {
        let of_decision = [
            ("decision", decision.decision),
            ("policy_level", decision.level),
            ("policy_version", decision.version),
            ("mode", decision.mode),
        ];
        let labels: Vec<_> = of_decision.into_iter().chain(request.labels()).collect();
        self.counter(POD_SECURITY_EVALUATIONS, labels_of(&labels))
    }

    /// The counter of exempt requests like this one.
    pub fn pod_security_exemptions(&self, request: &PodSecurityRequest<'_>) -> Counter {
        self.counter(POD_SECURITY_EXEMPTIONS, labels_of(&request.labels()))
    }

    /// Counts an error; a fatal one has kept the Pod from being looked at.
    pub fn pod_security_failed(&self, fatal: bool, request: &PodSecurityRequest<'_>) {
        let fatal = if fatal { "true" } else { "false" };
        let labels: Vec<_> = [("fatal", fatal)].into_iter().chain(request.labels()).collect();
        self.counter(POD_SECURITY_ERRORS, labels_of(&labels)).increment(1);
    }

    pub fn policy_checked(&self, check: &PolicyCheck<'_>) {
        let labels = [
            ("policy", check.policy),
            ("policy_binding", check.binding),
            ("error_type", check.error),
            ("enforcement_action", check.action),
        ];
        self.counter(POLICY_CHECKS, labels_of(&labels)).increment(1);
        self.histogram(POLICY_SECONDS, labels_of(&labels)).record(check.took);
    }

    /// Counts a mutation of a policy. `error` is upstream's type of its error.
    pub fn policy_mutated(&self, policy: &str, binding: &str, error: &'static str, took: Duration) {
        let labels = [("policy", policy), ("policy_binding", binding), ("error_type", error)];
        self.counter(MUTATION_CHECKS, labels_of(&labels)).increment(1);
        self.histogram(MUTATION_SECONDS, labels_of(&labels)).record(took);
    }

    pub fn webhook_called(&self, call: &HookCall<'_>) {
        let HookCall { name, kind, operation, .. } = *call;
        let code = call.code.min(LARGEST_CODE).to_string();
        let rejected = if call.rejection.is_some() { "true" } else { "false" };
        let labels = [("name", name), ("type", kind), ("operation", operation), ("rejected", rejected)];
        self.histogram(HOOK_SECONDS, labels_of(&labels)).record(call.took);
        let labels = [
            ("name", name),
            ("type", kind),
            ("operation", operation),
            ("code", &code),
            ("rejected", rejected),
        ];
        self.counter(HOOK_REQUESTS, labels_of(&labels)).increment(1);
        if let Some(rejection) = call.rejection {
            let error_type = match rejection {
                HookRejection::Call => "calling_webhook_error",
                HookRejection::Internal => "apiserver_internal_error",
                HookRejection::None => "no_error",
            };
            let labels = [
                ("name", name),
                ("type", kind),
                ("operation", operation),
                ("error_type", error_type),
                ("rejection_code", &code),
            ];
            self.counter(HOOK_REJECTIONS, labels_of(&labels)).increment(1);
        }
    }

    /// Counts a webhook that failed, and whose failure was forgiven.
    pub fn webhook_failed_open(&self, name: &str, kind: &'static str) {
        self.counter(HOOK_FAILED_OPEN, labels_of(&[("name", name), ("type", kind)])).increment(1);
    }

    /// Measures an evaluation that did not say yes; upstream measures no others.
    pub fn conditions_unmet(&self, source: &ConditionSource<'_>, took: Duration) {
        self.histogram(CONDITION_SECONDS, source.labels()).record(took);
    }

    /// Counts a webhook that was not called. Upstream calls the validating step `validate` in this metric alone.
    pub fn condition_excluded(&self, source: &ConditionSource<'_>) {
        let of = if source.of == "validating" { "validate" } else { source.of };
        self.counter(CONDITION_EXCLUSIONS, ConditionSource { of, ..*source }.labels()).increment(1);
    }

    pub fn condition_failed(&self, source: &ConditionSource<'_>, errors: usize) {
        self.counter(CONDITION_ERRORS, source.labels()).increment(errors as u64);
    }
}
