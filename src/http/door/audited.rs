//! How a request and its answer become audit events: the record begins when it is known who asks, and is completed by the
//! answer.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use jiff::Timestamp;

use crate::audit::{Audit, Head, Level, Lost, Record, Sources, Stage, Storing};
use crate::auth::authn::Notes;
use crate::gotext;
use crate::http::ask;
use crate::http::past::door::Door;
use crate::http::request::info::RequestInfo;
use crate::http::request::path::CHANGES;
use crate::http::request::{audit_record, header_text, long_query, request_uri};
use crate::http::response::plain_error;
use crate::http::server::ConnectionInfo;
use crate::tasks::panic_message;
use crate::user::User;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");
const TOTAL_LATENCY: &str = "apiserver.latency.k8s.io/total";
/// Latencies of faster requests are not recorded.
const NOTABLE_LATENCY: Duration = Duration::from_millis(500);

/// A record that has begun.
#[derive(Default)]
pub struct Begun {
    /// `None` if the policy does not want the request.
    pub record: Option<Arc<Record>>,
    /// The storing of the first event, for which the request has to wait before it goes on.
    pub storing: Option<Storing>,
}

/// Begins the record of a request and puts it into the extensions, if the policy wants it. Without a user the request was
/// not authenticated: it has one event, when the answer is made.
pub fn begin(
    audit: &Arc<Audit>,
    parts: &mut Parts,
    info: &RequestInfo,
    user: Option<&Arc<User>>,
    notes: &Notes,
    audit_id: Option<&HeaderValue>,
    received: Timestamp,
) -> Begun {
    let nobody = User::default();
    let attributes = info.attributes(user.map_or(&nobody, |user| user));
    let head = |level| head(level, parts, info, user.cloned(), audit_id.cloned(), received);
    let Some(record) = audit.record(&attributes, head) else { return Begun::default() };
    for (key, value) in notes.annotations() {
        record.annotate(*key, value.clone());
    }
    let storing = user.and_then(|_| record.stage(Stage::RequestReceived));
    parts.extensions.insert(record.clone());
    Begun { record: Some(record), storing }
}

/// Notes whether the user may do what he asks for, and why.
pub fn note_decision(parts: &Parts, is_allowed: bool, reason: &str) {
    if let Some(record) = audit_record(parts) {
        record.annotate("authorization.k8s.io/decision", if is_allowed { "allow" } else { "forbid" });
        record.annotate("authorization.k8s.io/reason", reason.to_owned());
    }
}

/// Notes that it could not be found out whether the user may do this.
pub fn note_failure(parts: &Parts) {
    if let Some(record) = audit_record(parts) {
        record.annotate("authorization.k8s.io/reason", "internal error");
    }
}

fn head(
    level: Level,
    parts: &Parts,
    info: &RequestInfo,
    user: Option<Arc<User>>,
    audit_id: Option<HeaderValue>,
    received: Timestamp,
) -> Head {
    let peer = parts.extensions.get::<Arc<ConnectionInfo>>().map(|connection| &connection.client);
    let forwarded = header_text(&parts.headers, FORWARDED_FOR).unwrap_or_default();
    let real = header_text(&parts.headers, REAL_IP).unwrap_or_default();
    Head {
        level,
        audit_id,
        uri: asked_uri(parts).clone(),
        long_query: long_query(parts).cloned(),
        verb: info.shared_verb(),
        user,
        sources: Sources::of(forwarded, real, peer),
        sent_user_agent: parts.headers.get(USER_AGENT).cloned(),
        received,
        text: OnceLock::new(),
    }
}

/// The URL as the client sent it, with its doors.
fn asked_uri(parts: &Parts) -> &Uri {
    let past = Door::of(parts).map(Door::uri);
    past.or_else(|| ask::Door::of(parts).map(ask::Door::uri)).unwrap_or(&parts.uri)
}

/// The answer to a request whose first event could not be stored.
pub fn refused(parts: &Parts) -> Response {
    let uri = request_uri(parts);
    plain_error(
        StatusCode::INTERNAL_SERVER_ERROR,
        &format!("Internal Server Error: {}: {Lost}", gotext::quote(&uri)),
    )
}

/// Whether a request has no end of its own.
pub fn is_long_running(info: &RequestInfo) -> bool {
    let subresource = info.resource().and_then(|path| path.subresource.as_deref()).unwrap_or_default();
    info.resource().is_some_and(|_| matches!(info.verb(), "watch" | "proxy"))
        || matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
        || info.is_at(CHANGES)
}

/// The events that the answer of a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answering {
    /// One when it is complete.
    Short,
    /// One when it begins, and one when it is complete.
    LongRunning,
    /// One when it begins.
    Unauthenticated,
}

impl Answering {
    /// The events of a request whose sender is known.
    pub fn of(info: &RequestInfo) -> Self {
        if is_long_running(info) { Self::LongRunning } else { Self::Short }
    }
}

/// The state of a recorded request while it is answered. A request that is broken off is recorded, too.
pub struct Watched {
    /// `None` once the answer is made, and for a request that nobody records.
    record: Option<Arc<Record>>,
    answering: Answering,
    has_waited: bool,
}

impl Watched {
    pub fn new(record: Option<Arc<Record>>, answering: Answering) -> Self {
        Self { record, answering, has_waited: false }
    }

    /// Polls what answers the request. A panic is caught if it is to be recorded.
    pub fn poll(
        &mut self,
        handler: Pin<&mut impl Future<Output = Response>>,
        context: &mut Context<'_>,
    ) -> Poll<Answered> {
        let Some(record) = &self.record else { return handler.poll(context).map(Ok) };
        let answered = match catch_unwind(AssertUnwindSafe(|| handler.poll(context))) {
            Ok(Poll::Pending) => {
                if !std::mem::replace(&mut self.has_waited, true) {
                    record.hurry();
                }
                return Poll::Pending;
            }
            Ok(Poll::Ready(response)) => Ok(response),
            Err(panic) => Err(panic),
        };
        self.record = None;
        Poll::Ready(answered)
    }
}

impl Drop for Watched {
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

/// An answer, or the panic of what should have made it.
pub type Answered = Result<Response, Box<dyn Any + Send>>;

/// Records the answer, or the panic. Returns it with what it has to wait for.
pub fn complete(
    record: Arc<Record>,
    answering: Answering,
    received: Timestamp,
    answered: Answered,
) -> (Answered, Option<Storing>) {
    match answered {
        Ok(response) => {
            let (response, storing) = completed(record, answering, received, response);
            (Ok(response), storing)
        }
        Err(panic) => {
            record.panicked(panic_message(&*panic));
            let storing = record.stage(Stage::Panic);
            (Err(panic), storing)
        }
    }
}

/// The answer with what still has to be recorded of it, and what it has to wait for.
fn completed(
    record: Arc<Record>,
    answering: Answering,
    received: Timestamp,
    response: Response,
) -> (Response, Option<Storing>) {
    record.answered_code(response.status().as_u16());
    let is_streamed = response.body().size_hint().exact().is_none();
    match answering {
        Answering::Unauthenticated => {
            let storing = record.stage(Stage::ResponseStarted);
            (response, storing)
        }
        Answering::LongRunning => {
            let storing = record.stage(Stage::ResponseStarted);
            record.hurry();
            (recorded(response, record, None), storing)
        }
        Answering::Short if is_streamed => {
            record.hurry();
            (recorded(response, record, Some(received)), None)
        }
        Answering::Short => {
            let now = record.now();
            note_latency(&record, received, now);
            let storing = record.stage_at(Stage::ResponseComplete, now);
            (response, storing)
        }
    }
}

fn recorded(response: Response, record: Arc<Record>, received: Option<Timestamp>) -> Response {
    response.map(|body| Body::new(Recorded { body, record: Some(record), received }))
}

fn note_latency(record: &Record, received: Timestamp, now: Timestamp) {
    let took = now.duration_since(received).unsigned_abs();
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
            self.received.into_iter().for_each(|received| note_latency(&record, received, record.now()));
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
