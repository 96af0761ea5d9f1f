//! How a request and its answer become audit events: the record begins when it is known who asks, and is completed by the
//! answer.

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::Response;
use futures_util::FutureExt as _;
use http_body::{Body as _, Frame, SizeHint};
use jiff::Timestamp;

use super::request::{AUDIT_ID, header_text};
use super::request_info::RequestInfo;
use super::response::plain_error;
use super::server::ConnectionInfo;
use crate::audit::{Audit, Head, Level, Lost, Record, Stage, source_ips, user_agent};
use crate::auth::authn::Notes;
use crate::gotext;
use crate::tasks::panic_message;
use crate::user::User;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const TOTAL_LATENCY: &str = "apiserver.latency.k8s.io/total";
/// Latencies of faster requests are not recorded.
const NOTABLE_LATENCY: Duration = Duration::from_millis(500);

/// The record of a request, if there is one: a part of the request's extensions.
pub fn record(parts: &Parts) -> Option<&Arc<Record>> {
    parts.extensions.get::<Arc<Record>>()
}

/// Begins the record of a request and puts it into the extensions, if the policy wants it. Without a user the request was
/// not authenticated: it has one event, when the answer is made.
pub async fn begin(
    audit: &Arc<Audit>,
    parts: &mut Parts,
    info: &RequestInfo,
    user: Option<&Arc<User>>,
    notes: &Notes,
    received: Timestamp,
) -> Result<(), Lost> {
    let nobody = User::default();
    let attributes = info.attributes(user.map_or(&nobody, |user| user));
    let head = |level| head(level, parts, info, user.cloned(), received);
    let Some(record) = audit.record(&attributes, head) else { return Ok(()) };
    for (key, value) in notes.annotations() {
        record.annotate(*key, value);
    }
    let stored = match user {
        Some(_) => record.stage(Stage::RequestReceived).await,
        None => Ok(()),
    };
    if stored.is_err() {
        audit.rejected();
    }
    parts.extensions.insert(record);
    stored
}

/// Notes whether the user may do what he asks for, and why.
pub fn note_decision(parts: &Parts, is_allowed: bool, reason: &str) {
    if let Some(record) = record(parts) {
        record.annotate("authorization.k8s.io/decision", if is_allowed { "allow" } else { "forbid" });
        record.annotate("authorization.k8s.io/reason", reason);
    }
}

/// Notes that it could not be found out whether the user may do this.
pub fn note_failure(parts: &Parts) {
    if let Some(record) = record(parts) {
        record.annotate("authorization.k8s.io/reason", "internal error");
    }
}

fn head(
    level: Level,
    parts: &Parts,
    info: &RequestInfo,
    user: Option<Arc<User>>,
    received: Timestamp,
) -> Head {
    let text = |name| parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let peer = parts.extensions.get::<Arc<ConnectionInfo>>().map(|connection| connection.remote.ip());
    let forwarded = header_text(&parts.headers, FORWARDED_FOR).unwrap_or_default();
    let real = header_text(&parts.headers, REAL_IP).unwrap_or_default();
    let uri = parts.uri.path_and_query().map_or(parts.uri.path(), |uri| uri.as_str());
    Head {
        level,
        audit_id: text(AUDIT_ID).unwrap_or_default().into_owned(),
        uri: uri.to_owned(),
        verb: info.verb().to_owned(),
        user,
        source_ips: source_ips(forwarded, real, peer),
        user_agent: user_agent(&text(header::USER_AGENT).unwrap_or_default()),
        received,
        text: OnceLock::new(),
    }
}

/// The answer to a request whose first event could not be stored.
pub fn refused(parts: &Parts) -> Response {
    let uri = parts.uri.path_and_query().map_or(parts.uri.path(), |uri| uri.as_str());
    plain_error(
        StatusCode::INTERNAL_SERVER_ERROR,
        &format!("Internal Server Error: {}: {Lost}", gotext::quote(uri)),
    )
}

/// Sets the audit id that the request is recorded under, if its client has not.
pub fn ensure_id(headers: &mut HeaderMap) {
    if headers.get(AUDIT_ID).is_none_or(|id| id.is_empty())
        && let Some(id) = super::request::new_audit_id()
    {
        headers.insert(AUDIT_ID, id);
    }
}

/// Whether a request has no end of its own.
pub fn is_long_running(info: &RequestInfo) -> bool {
    let subresource = info.resource().and_then(|path| path.subresource.as_deref()).unwrap_or_default();
    info.resource().is_some_and(|_| matches!(info.verb(), "watch" | "proxy"))
        || matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
}

/// Which events the answer of a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// One when it is complete.
    Short,
    /// Also one when it begins.
    LongRunning,
    /// Only the one when it begins.
    Unauthenticated,
}

impl Answering {
    /// Of a request whose sender is known.
    pub fn of(info: &RequestInfo) -> Self {
        if is_long_running(info) { Self::LongRunning } else { Self::Short }
    }
}

/// Runs what answers a recorded request, and records the answer. A request that is broken off is recorded, too.
pub async fn answer(
    record: Arc<Record>,
    answering: Answering,
    received: Timestamp,
    handler: impl Future<Output = Response>,
) -> Response {
    let mut unanswered = Unanswered { record: Some(record.clone()), answering };
    let mut handler = pin!(AssertUnwindSafe(handler).catch_unwind());
    let answered = match futures_util::poll!(&mut handler) {
        Poll::Ready(answered) => answered,
        Poll::Pending => {
            record.hurry();
            handler.await
        }
    };
    unanswered.record = None;
    let response = match answered {
        Ok(response) => response,
        Err(panic) => {
            record.panicked(panic_message(&*panic));
            let _ = record.stage(Stage::Panic).await;
            std::panic::resume_unwind(panic)
        }
    };
    complete(record, answering, received, response).await
}

/// A request whose answer is not made yet.
struct Unanswered {
    record: Option<Arc<Record>>,
    answering: Answering,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        let Some(record) = &self.record else { return };
        record.closed_early();
        if self.answering != Answering::Short {
            record.stage_in_passing(Stage::ResponseStarted);
        }
        if self.answering != Answering::Unauthenticated {
            record.stage_in_passing(Stage::ResponseComplete);
        }
    }
}

async fn complete(
    record: Arc<Record>,
    answering: Answering,
    received: Timestamp,
    response: Response,
) -> Response {
    record.answered_code(response.status().as_u16());
    if answering != Answering::Short {
        let _ = record.stage(Stage::ResponseStarted).await;
    }
    if answering == Answering::Unauthenticated {
        return response;
    }
    if answering == Answering::LongRunning || response.body().size_hint().exact().is_none() {
        let received = (answering == Answering::Short).then_some(received);
        record.hurry();
        return response.map(|body| Body::new(Recorded { body, record: Some(record), received }));
    }
    note_latency(&record, received);
    let _ = record.stage(Stage::ResponseComplete).await;
    response
}

fn note_latency(record: &Record, received: Timestamp) {
    let took = Timestamp::now().duration_since(received).unsigned_abs();
    if took > NOTABLE_LATENCY {
        record.annotate(TOTAL_LATENCY, gotext::duration(took));
    }
}

/// A body whose end is recorded.
struct Recorded {
    body: Body,
    record: Option<Arc<Record>>,
    /// `None` for a request without an end of its own, whose length is not notable.
    received: Option<Timestamp>,
}

impl Recorded {
    fn end(&mut self) {
        if let Some(record) = self.record.take() {
            self.received.into_iter().for_each(|received| note_latency(&record, received));
            record.stage_in_passing(Stage::ResponseComplete);
        }
    }
}

impl http_body::Body for Recorded {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            self.end();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        self.end();
    }
}
