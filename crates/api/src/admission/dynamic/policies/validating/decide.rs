//! Decisions about the results of evaluations, and the answer that they make together.

use std::time::{Duration, Instant};

use super::super::policy::{Action, Binding, Policy, Validation, Validations};
use crate::admission::Attempt;
use crate::admission::dynamic::evaluation::{Failure, Run, Seen};
use crate::error::Error;
use crate::expression::value::Value as CelValue;
use crate::long_work::Stretch;
use crate::metrics::PolicyCheck;
use crate::request::Request;
use crate::tree::{Value, json};

/// The cost limit of all expressions of one evaluation together.
const BUDGET: u64 = 10_000_000;
const LONGEST_MESSAGE: usize = 5 * 1024;
const LONGEST_ANNOTATION: usize = 10 * 1024;
/// How many failures an audit annotation tells of.
const MOST_FAILURES: usize = 50;
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// All decisions about a request.
#[derive(Default)]
pub struct Decided {
    refused: Vec<Refused>,
    /// The failed validations that are noted in the audit log.
    failures: Vec<Value>,
}

/// A decision that refuses the request.
pub struct Refused {
    pub policy: String,
    pub binding: Option<String>,
    pub message: String,
    /// Empty for errors.
    pub reason: String,
}

/// The result of one evaluation of a policy.
#[derive(Default)]
pub struct Evaluated {
    failed: Vec<Failed>,
    /// Keys and values.
    annotations: Vec<(String, String)>,
    /// Why annotations have no value.
    unannotated: Vec<(String, Duration)>,
}

/// The decision of one validation that is not passed.
struct Failed {
    /// Its place among the validations.
    index: usize,
    message: String,
    reason: String,
    fault: Fault,
    took: Duration,
}

/// The way in which a validation is not passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It is false.
    Refused,
    /// It could not be evaluated.
    Error,
    OutOfBudget,
}

impl Fault {
    /// Upstream's label `error_type`, which tells no refusal from an error.
    fn label(self) -> &'static str {
        match self {
            Self::Refused | Self::Error => "invalid_error",
            Self::OutOfBudget => "out_of_budget",
        }
    }
}

impl Decided {
    pub fn refuse(&mut self, refused: Refused) {
        self.refused.push(refused);
    }

    /// Takes in what a policy whose conditions are met has come to.
    pub fn take(
        &mut self,
        attempt: &Attempt<'_>,
        policy: &Policy<Validations>,
        binding: &Binding,
        evaluated: Evaluated,
        annotations: &mut Vec<(String, String)>,
    ) {
        for failed in evaluated.failed {
            self.decide(attempt, policy, binding, failed);
        }
        annotations.extend(
            evaluated
                .annotations
                .into_iter()
                .filter(|entry| !annotations.contains(entry))
                .collect::<Vec<_>>(),
        );
        for (message, took) in evaluated.unannotated.into_iter().filter(|_| policy.fails_closed) {
            count(attempt, policy, binding, "deny", Fault::Error, took);
            self.refuse(Refused {
                policy: policy.name.clone(),
                binding: Some(binding.name.clone()),
                message,
                reason: String::new(),
            });
        }
    }

    /// Decides about something that could not be evaluated.
    pub fn failed(
        &mut self,
        attempt: &Attempt<'_>,
        policy: &Policy<Validations>,
        binding: &Binding,
        message: String,
    ) {
        let took = Duration::ZERO;
        let failed = Failed { index: 0, message, reason: String::new(), fault: Fault::Error, took };
        self.decide(attempt, policy, binding, failed);
    }

    /// An error of a policy that forgives errors changes nothing.
    fn decide(
        &mut self,
        attempt: &Attempt<'_>,
        policy: &Policy<Validations>,
        binding: &Binding,
        failed: Failed,
    ) {
        let Failed { index, message, reason, fault, took } = failed;
        if fault != Fault::Refused && !policy.fails_closed {
            return count(attempt, policy, binding, "allow", fault, took);
        }
        for action in &binding.actions {
            let (policy_name, binding_name) = (policy.name.clone(), binding.name.clone());
            let label = match action {
                Action::Deny => {
                    let (message, reason) = (message.clone(), reason.clone());
                    self.refuse(Refused {
                        policy: policy_name,
                        binding: Some(binding_name),
                        message,
                        reason,
                    });
                    "deny"
                }
                Action::Audit => {
                    let actions: Vec<&str> = binding.actions.iter().map(|action| action.as_str()).collect();
                    self.failures
                        .push(json!({"message": message, "policy": policy_name, "binding": binding_name,
                        "expressionIndex": index, "validationActions": actions}));
                    "audit"
                }
                Action::Warn => {
                    attempt.request.warnings.add(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy_name}' with binding \
                         '{binding_name}': {message}"
                    ));
                    "warn"
                }
            };
            count(attempt, policy, binding, label, fault, took);
        }
    }

    /// The answer: that of the first decision which refuses.
    pub fn conclude(mut self, attempt: &Attempt<'_>) -> Result<(), Error> {
        if let (false, Some(record)) = (self.failures.is_empty(), attempt.request.audit) {
            self.failures.truncate(MOST_FAILURES);
            record.annotate(FAILURES, Value::Array(self.failures).to_string());
        }
        self.refused.into_iter().next().map_or(Ok(()), |first| Err(first.error(attempt)))
    }
}

impl Evaluated {
    /// Evaluates everything of a policy, for one param.
    pub async fn of<'a>(policy: &'a Policy<Validations>, seen: Seen<'a>, stretch: &mut Stretch) -> Self {
        let mut evaluated = match validated(policy, seen, stretch).await {
            Ok(failed) => Self { failed, ..Self::default() },
            // Nothing is noted about a request whose validations could not all be evaluated.
            Err(out_of_budget) => return Self { failed: vec![out_of_budget], ..Self::default() },
        };
        // Annotations may not ask the authorizer.
        let mut run = Run::new(Seen { asked: None, ..seen }, &policy.variables, BUDGET);
        for (key, expression) in &policy.body.annotations {
            stretch.pause().await;
            let began = Instant::now();
            let why = match run.evaluate(expression) {
                Ok(CelValue::String(text)) => {
                    let text = text.trim();
                    let text = &text[..text.floor_char_boundary(LONGEST_ANNOTATION)];
                    if !text.is_empty() {
                        evaluated.annotations.push((key.clone(), text.to_owned()));
                    }
                    continue;
                }
                Ok(CelValue::Null) => continue,
                Ok(value) => format!(
                    "valueExpression '{}' resulted in unsupported return type: {}. Return type must be either string or \
                     null.",
                    expression.text,
                    value.type_name()
                ),
                Err(Failure::OutOfBudget) => {
                    let why = Failure::OutOfBudget.message().to_owned();
                    return Self { failed: vec![out_of_budget(why, began.elapsed())], ..Self::default() };
                }
                Err(Failure::Error(why)) => why,
            };
            evaluated.unannotated.push((why, began.elapsed()));
        }
        evaluated
    }
}

impl Refused {
    fn error(self, attempt: &Attempt<'_>) -> Error {
        let Self { policy, binding, message, reason } = self;
        let why = match binding {
            Some(binding) => {
                format!(
                    "ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {message}"
                )
            }
            None => format!("ValidatingAdmissionPolicy '{policy}' denied request: {message}"),
        };
        let (reason, code) = match reason.as_str() {
            "Forbidden" => ("Forbidden", 403),
            "RequestEntityTooLarge" => ("RequestEntityTooLarge", 413),
            "Unauthorized" => ("Unauthorized", 401),
            _ => ("Invalid", 422),
        };
        let (resource, name) = (attempt.target.resource.group_resource(), attempt.shown_name());
        let mut details = attempt.details();
        details.insert("causes", json!([{"message": why}]));
        let message = format!("{} is forbidden: {why}", resource.named(name));
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "details": details, "code": code});
        let status = status.as_object().cloned().unwrap_or_default();
        Error::Denied { status: Box::new(status), code }
    }
}

/// The validations of a policy that are not passed, in order. All of them are evaluated, unless that costs too much.
async fn validated<'a>(
    policy: &'a Policy<Validations>,
    seen: Seen<'a>,
    stretch: &mut Stretch,
) -> Result<Vec<Failed>, Failed> {
    let mut run = Run::new(seen, &policy.variables, BUDGET);
    let mut results = Vec::with_capacity(policy.body.list.len());
    for validation in &policy.body.list {
        stretch.pause().await;
        let began = Instant::now();
        let value = run.evaluate(&validation.expression);
        if matches!(value, Err(Failure::OutOfBudget)) {
            return Err(out_of_budget(Failure::OutOfBudget.message().to_owned(), began.elapsed()));
        }
        results.push((value.map(|value| value.as_bool() == Some(true)), began.elapsed()));
    }
    // Messages have a list of their own, with what the validations have left.
    let mut telling = Run::new(Seen { asked: None, ..seen }, &policy.variables, run.left);
    let mut messages = Vec::with_capacity(results.len());
    for (validation, (passed, _)) in policy.body.list.iter().zip(&results) {
        stretch.pause().await;
        match message(validation, passed != &Ok(true), &mut telling) {
            Ok(message) => messages.push(message),
            Err(why) => {
                let why = format!("failed messageExpression: {}", why.message());
                let all = results.iter().map(|(_, took)| out_of_budget(why.clone(), *took));
                return Ok(all.collect());
            }
        }
    }
    let failed = results.into_iter().zip(messages).enumerate();
    let failed = failed
        .filter_map(|(index, ((passed, took), message))| {
            let reason = &policy.body.list[index].reason;
            let (message, reason, fault) = match passed {
                Ok(true) => return None,
                Ok(false) => (message, reason.clone(), Fault::Refused),
                Err(failure) => (failure.message().to_owned(), String::new(), Fault::Error),
            };
            Some(Failed { index, message, reason, fault, took })
        })
        .collect();
    Ok(failed)
}

fn out_of_budget(message: String, took: Duration) -> Failed {
    Failed { index: 0, message, reason: String::new(), fault: Fault::OutOfBudget, took }
}

/// The message of a validation: the expression's, if it has a good one, else the fixed one, else the validation itself.
fn message<'a>(validation: &'a Validation, is_needed: bool, run: &mut Run<'a>) -> Result<String, Failure> {
    let mut message = String::new();
    if let Some(expression) = &validation.message_expression {
        match run.evaluate(expression) {
            Ok(CelValue::String(text)) => message = text.trim().to_owned(),
            Err(Failure::OutOfBudget) => return Err(Failure::OutOfBudget),
            Ok(_) | Err(Failure::Error(_)) => {}
        }
        if message.len() > LONGEST_MESSAGE || message.contains('\n') {
            message.clear();
        }
    }
    if !is_needed {
        return Ok(String::new());
    }
    if message.is_empty() {
        message = validation.message.trim().to_owned();
    }
    if message.is_empty() {
        message = format!("failed expression: {}", validation.expression.text.trim());
    }
    Ok(message)
}

/// Notes the values of a policy's annotations: those of several bindings stand together.
pub fn annotate(request: &Request<'_>, policy: &str, annotations: Vec<(String, String)>) {
    let Some(record) = request.audit else { return };
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in &annotations {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    for key in keys {
        let values = annotations.iter().filter(|(other, _)| other == key).map(|(_, value)| value.as_str());
        record.annotate(format!("{policy}/{key}"), values.collect::<Vec<_>>().join(", "));
    }
}

fn count(
    attempt: &Attempt<'_>,
    policy: &Policy<Validations>,
    binding: &Binding,
    action: &'static str,
    fault: Fault,
    took: Duration,
) {
    let error = fault.label();
    let (policy, binding) = (policy.name.as_str(), binding.name.as_str());
    attempt.cluster.runtime.metrics.policy_checked(&PolicyCheck { policy, binding, action, error, took });
}

#[cfg(test)]
mod tests;
