//! Why mutating policies refuse a request, and the answer that it gets.

use crate::admission::Attempt;
use crate::admission::dynamic::policies::policy::{Binding, Mutations, Policy};
use crate::error::Error;
use crate::gotext::quote;
use crate::tree::json;

/// Why policies refuse a request.
#[derive(Default)]
pub struct Refusals {
    /// Messages, and the reason that goes with each. Those of configurations come first.
    list: Vec<(String, &'static str)>,
    of_invocations: Vec<(String, &'static str)>,
}

impl Refusals {
    pub fn misconfigured(&mut self, policy: &Policy<Mutations>, binding: Option<&Binding>, why: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = message(policy, binding, &format!("failed to configure {what}: {why}"));
        if policy.fails_closed {
            self.list.push((message, "Forbidden"));
        }
    }

    pub fn failed(&mut self, policy: &Policy<Mutations>, binding: &Binding, why: &str) {
        if policy.fails_closed {
            self.of_invocations.push((message(policy, Some(binding), why), "Invalid"));
        }
    }

    pub fn conclude(mut self, attempt: &Attempt<'_>) -> Result<(), Error> {
        self.list.append(&mut self.of_invocations);
        let Some((message, reason)) = self.list.first() else { return Ok(()) };
        let mut details = attempt.details();
        let causes = self.list.iter().map(|(message, _)| json!({"message": message}));
        details.insert("causes", causes.collect::<Vec<_>>().into());
        let code = 403;
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code});
        let status = Box::new(status.as_object().cloned().unwrap_or_default());
        Err(Error::Denied { status, code })
    }
}

fn message(policy: &Policy<Mutations>, binding: Option<&Binding>, why: &str) -> String {
    match binding {
        Some(binding) => {
            format!("policy '{}' with binding '{}' denied request: {why}", policy.name, binding.name)
        }
        None => format!("policy {} denied request: {why}", quote(&policy.name)),
    }
}
