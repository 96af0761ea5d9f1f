//! Priority and Fairness at the door: a request waits for its seats there, and keeps them until it is answered.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

use super::audited::is_long_running;
use crate::api::input::options::request_timeout;
use crate::auth::authorizer::Attributes;
use crate::flow_control::{FlowControl, FlowOfLevel, Listing, Refused, Seat, Watching};
use crate::http::request::info::RequestInfo;
use crate::http::request::query;
use crate::http::response;
use crate::user::User;

const FLOW_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");
/// The part of its time that a request may wait.
const WAITING_PART: u32 = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What marks a request that has a seat of a level with limits: a part of its extensions.
#[derive(Clone, Copy)]
pub struct Seated;

/// A request that may run.
pub struct Admitted {
    flow: Arc<FlowOfLevel>,
    seat: Option<Seat>,
    watching: Option<Watching>,
}

/// Waits for the seats of a request. `None` means that it needs none. A refusal is the answer.
pub async fn admit(
    control: &FlowControl,
    parts: &mut Parts,
    info: &RequestInfo,
    user: &User,
    request_time: Duration,
) -> Result<Option<Admitted>, Response> {
    let is_watch = info.verb() == "watch";
    if is_long_running(info) && !is_watch {
        return Ok(None);
    }
    let attributes = info.attributes(user);
    let Some(flow) = control.classify(&attributes) else { return Ok(None) };
    let width = control.width(&attributes, || listing(parts), &flow);
    let longest = longest_wait(parts, request_time);
    match flow.enter(&attributes, parts.uri.path(), width, Instant::now(), longest).await {
        Ok(seat) => {
            let watching = is_watch.then(|| control.watching(&attributes));
            if !flow.is_exempt() {
                parts.extensions.insert(Seated);
            }
            Ok(Some(Admitted { flow, seat: Some(seat), watching }))
        }
        Err(Refused { retry_after, .. }) => {
            let mut response = response::too_many_requests();
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
            tell_flow(response.headers_mut(), &flow);
            Err(response)
        }
    }
}

/// A quarter of the time that the request has.
fn longest_wait(parts: &Parts, request_time: Duration) -> Duration {
    let has_own = parts.uri.query().is_some_and(|query| query.contains("timeout="));
    let time = match has_own {
        // One that is wrong is refused later.
        true => request_timeout(&query(parts), request_time).unwrap_or(request_time),
        false => request_time,
    };
    (time / WAITING_PART).min(LONGEST_WAIT)
}

fn listing(parts: &Parts) -> Listing {
    let query = query(parts);
    let version = query.text("resourceVersion");
    Listing {
        limit: query.text("limit").parse().unwrap_or_default(),
        has_state: query.flag("sendInitialEvents") == Some(true) || matches!(version, "" | "0"),
    }
}

fn tell_flow(headers: &mut HeaderMap, flow: &FlowOfLevel) {
    for (name, uid) in [FLOW_UID, LEVEL_UID].into_iter().zip(flow.uids()) {
        if let Ok(uid) = HeaderValue::from_maybe_shared(uid.clone()) {
            headers.insert(name, uid);
        }
    }
}

impl Admitted {
    /// Says what the request is, for those who look at what runs: one whose work is done at once need not.
    pub fn describe(&self, request: &Attributes<'_>, path: &str) {
        self.seat.iter().for_each(|seat| self.flow.describe(seat, request, path));
    }

    /// Tells the client its flow, and keeps the seats until the answer is made: that of a watch until its first events are
    /// sent.
    pub fn finish(self, mut response: Response) -> Response {
        let Self { flow, seat, watching } = self;
        tell_flow(response.headers_mut(), &flow);
        if watching.is_none() && response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| Body::new(Occupying { body, seat, watching }))
    }
}

/// A body that occupies seats.
struct Occupying {
    body: Body,
    seat: Option<Seat>,
    /// Of a watch.
    watching: Option<Watching>,
}

impl http_body::Body for Occupying {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        // A watch that waits has sent the state that it began with.
        let is_done = match &frame {
            Poll::Pending => self.watching.is_some(),
            Poll::Ready(frame) => frame.is_none(),
        };
        if is_done {
            self.seat = None;
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
