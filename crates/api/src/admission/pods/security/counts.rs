//! Counters for PodSecurity's metrics.

use std::sync::OnceLock;

use metrics::Counter;

use super::policy::{Level, Rule, Version};
use crate::admission::{Attempt, Operation};
use crate::metrics::{PodSecurityDecision, PodSecurityRequest};

/// The newest version that the metrics name.
const NEWEST: u64 = 37;

/// The counters that nearly every Pod needs, by whether it is an update.
#[derive(Default)]
pub(super) struct Counts {
    usual: [OnceLock<Counter>; 2],
}

/// The mode of a rule: the label `mode` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Enforce,
    Audit,
    Warn,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Audit => "audit",
            Self::Warn => "warn",
        }
    }
}

impl Counts {
    pub fn decided(&self, attempt: &Attempt<'_>, mode: Mode, rule: Rule, allowed: bool) {
        let request = request(attempt);
        let version = version(rule);
        let decision = PodSecurityDecision {
            decision: if allowed { "allow" } else { "deny" },
            level: rule.level.as_str(),
            version: &version,
            mode: mode.as_str(),
        };
        let metrics = &attempt.cluster.runtime.metrics;
        let is_usual = (mode, rule.level, allowed) == (Mode::Enforce, Level::Privileged, true)
            && (request.resource, request.subresource) == ("pod", "");
        if is_usual {
            let usual = &self.usual[usize::from(attempt.operation == Operation::Update)];
            usual.get_or_init(|| metrics.pod_security_decisions(&decision, &request)).increment(1);
        } else {
            metrics.pod_security_decisions(&decision, &request).increment(1);
        }
    }
}

pub(super) fn exempted(attempt: &Attempt<'_>) {
    attempt.cluster.runtime.metrics.pod_security_exemptions(&request(attempt)).increment(1);
}

pub(super) fn failed(attempt: &Attempt<'_>, fatal: bool) {
    attempt.cluster.runtime.metrics.pod_security_failed(fatal, &request(attempt));
}

fn request<'a>(attempt: &Attempt<'a>) -> PodSecurityRequest<'a> {
    let definition = &attempt.target.resource.definition;
    PodSecurityRequest {
        operation: if attempt.operation == Operation::Update { "update" } else { "create" },
        resource: match &*definition.plural {
            "pods" => "pod",
            "namespaces" => "namespace",
            _ => "controller",
        },
        subresource: attempt.request.subresource,
    }
}

/// Upstream's label: nothing that a client makes up.
fn version(rule: Rule) -> String {
    match (rule.level, rule.version) {
        (Level::Privileged, _) | (_, Version::Latest) => "latest".to_owned(),
        (_, Version::Minor(minor)) if minor > NEWEST => "future".to_owned(),
        (_, version) => version.to_string(),
    }
}
