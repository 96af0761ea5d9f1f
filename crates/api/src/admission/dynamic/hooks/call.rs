//! One call of a webhook, and what comes of it.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::client::Unanswered;
use super::configuration::{FailurePolicy, Hook};
use super::credentials::Credentials;
use super::review::{self, Answer, Payload, Wrong};
use crate::Cluster;
use crate::error::Error;
use crate::gotext::quote;
use crate::metrics::{HookCall, HookRejection};
use crate::options::DryRun;
use crate::request::Request;
use crate::traces::Span;
use crate::webhook::Sent;

/// Why a webhook did not allow a request.
#[derive(Debug)]
pub enum Refusal {
    /// The call failed, which the webhook's failure policy may forgive. The code is told to metrics.
    Call { why: String, code: u16 },
    /// The webhook said no.
    Denied { error: Error, code: u16 },
    /// The request ends, whatever the policy says.
    Direct(Error),
}

/// The request that a webhook is called for, and what a call needs beside it.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    pub cluster: &'a Cluster,
    pub request: &'a Request<'a>,
    pub credentials: &'a Credentials,
    /// Upstream's label `type`.
    pub kind: &'static str,
    pub operation: &'static str,
    pub mutates: bool,
}

impl Caller<'_> {
    /// Asks a webhook. Its warnings and annotations are passed on.
    pub async fn call(&self, hook: &Hook, payload: &Payload) -> Result<Answer, Refusal> {
        let request = self.request;
        if request.options.dry_run() == DryRun::Yes && !hook.is_harmless {
            let why = format!("admission webhook {} does not support dry run", quote(&hook.name));
            return Err(Refusal::Direct(Error::BadRequest(why)));
        }
        let Some(version) = hook.review else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)";
            return Err(Refusal::Call { why: why.to_owned(), code: 400 });
        };
        let uid = self.cluster.runtime.random.uuid().to_string();
        let body = payload.body(version, &uid);
        let span = self.span(hook, &uid);
        let answer = self.post(hook, &body, span.as_ref()).await?;
        if let Some(span) = &span {
            span.event("Request completed");
        }
        let unusable = |why: String| Refusal::Call { why, code: 503 };
        let answer = review::read(&answer, version, &uid, self.mutates).map_err(|wrong| match wrong {
            Wrong::Undecodable(why) => unusable(format!("failed to call webhook: {why}")),
            Wrong::Invalid(why) => unusable(format!("received invalid webhook response: {why}")),
        })?;
        for (key, value) in &answer.annotations {
            self.annotate(format!("{}/{key}", hook.name), value.clone());
        }
        answer.warnings.iter().for_each(|warning| request.warnings.add(warning.as_str()));
        if !answer.is_allowed {
            let (status, code) = review::refusal(&hook.name, answer.status);
            return Err(Refusal::Denied { error: Error::Denied { status: Box::new(status), code }, code });
        }
        Ok(answer)
    }

    /// The call's part of the request's trace.
    fn span(&self, hook: &Hook, uid: &str) -> Option<Span> {
        let name = if self.mutates { "Call mutating webhook" } else { "Call validating webhook" };
        let Request { target, subresource, span, .. } = *self.request;
        let resource = target.resource.definition.gvr().to_string();
        Some(span?.child(
            name,
            &[
                ("configuration", hook.configuration.as_str().into()),
                ("webhook", hook.name.as_str().into()),
                ("resource", resource.as_str().into()),
                ("subresource", subresource.into()),
                ("operation", self.operation.into()),
                ("UID", uid.into()),
            ],
        ))
    }

    async fn post(&self, hook: &Hook, body: &Bytes, span: Option<&Span>) -> Result<Bytes, Refusal> {
        let left = self.time_left().unwrap_or(hook.timeout);
        let traceparent = span.and_then(Span::traceparent);
        let sent = Sent { body, traceparent: traceparent.as_ref() };
        let answer = hook.post(self.cluster, self.credentials, sent, hook.timeout.min(left)).await;
        answer.map_err(|unanswered| match unanswered {
            Unanswered::NoClient(why) => {
                Refusal::Call { why: format!("could not get REST client: {why}"), code: 500 }
            }
            Unanswered::Failed(failed) => Refusal::Call {
                why: format!("failed to call webhook: {}", failed.why),
                code: failed.status.unwrap_or(503),
            },
        })
    }

    /// The time that is left until the request's deadline.
    fn time_left(&self) -> Option<Duration> {
        let deadline = self.request.deadline?;
        Some(deadline.saturating_duration_since(Instant::now()))
    }

    /// 504 if the request's time is over.
    pub fn check_time(&self) -> Result<(), Error> {
        match self.time_left() {
            Some(left) if left.is_zero() => Err(Error::deadline()),
            _ => Ok(()),
        }
    }

    pub fn annotate(&self, key: String, value: String) {
        if let Some(record) = self.request.audit {
            record.annotate(key, value);
        }
    }

    /// Counts a call, and decides by the failure policy. A failure that is forgiven is told to `opened`.
    pub fn judged<T>(
        &self,
        hook: &Hook,
        began: Instant,
        answer: Result<T, Refusal>,
        opened: impl FnOnce(),
    ) -> Result<Option<T>, Error> {
        let metrics = &self.cluster.runtime.metrics;
        let ignores = hook.on_failure == FailurePolicy::Ignore;
        let (code, rejection) = match &answer {
            Ok(_) => (200, None),
            Err(Refusal::Call { code, .. }) if ignores => (*code, None),
            Err(Refusal::Call { code, .. }) => (*code, Some(HookRejection::Call)),
            Err(Refusal::Denied { code, .. }) => (*code, Some(HookRejection::None)),
            Err(Refusal::Direct(_)) => (0, Some(HookRejection::Internal)),
        };
        let took = began.elapsed();
        if let Some(time) = self.request.webhook_time {
            if self.kind == "admit" { time.mutated(took) } else { time.validated(took) }
        }
        metrics.webhook_called(&HookCall {
            name: &hook.name,
            kind: self.kind,
            operation: self.operation,
            code,
            rejection,
            took,
        });
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(Refusal::Call { why, .. }) if ignores => {
                tracing::warn!(webhook = hook.name, why, "a webhook failed, and the request goes on");
                metrics.webhook_failed_open(&hook.name, self.kind);
                opened();
                self.check_time().map(|()| None)
            }
            Err(Refusal::Call { why, .. }) => {
                tracing::warn!(webhook = hook.name, why, "a webhook failed, and the request with it");
                Err(Error::Internal(format!("failed calling webhook {}: {why}", quote(&hook.name))))
            }
            Err(Refusal::Denied { error, .. } | Refusal::Direct(error)) => Err(error),
        }
    }
}
