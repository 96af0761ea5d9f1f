//! The answers to requests whose heads [`super::Heads`] has passed on: refusals, and what stood beside a head.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;

use super::head::{Aside, LongQuery};
use super::refusal::{Refusal, TOO_MANY};
use super::unread::{Ends, kept};
use super::{Announced, STAYS, SWITCHES, Special};

/// Answers a request that came through [`super::Heads`].
pub async fn serve<F, B: From<Body>>(
    announced: Arc<Announced>,
    mut request: Request<Incoming>,
    respond: impl FnOnce(Request<Body>) -> F,
) -> Result<Response<B>, Infallible>
where
    F: Future<Output = Result<Response<B>, Infallible>>,
{
    let note = announced.notes().pop_front().unwrap_or_default();
    match note.special.map(|special| *special) {
        Some(Special::Refused(refusal)) => return Ok(refusal.response().map(B::from)),
        Some(Special::Aside(aside)) => {
            if let Err(refusal) = aside.join(&mut request) {
                return Ok(refusal.response().map(B::from));
            }
        }
        None => {}
    }
    let ends = Ends::default();
    let is_last = request.version() == Version::HTTP_10 && !asks_to_stay(request.headers());
    let Ok(mut response) = respond(request.map(|body| kept(body, note.expects, &ends))).await;
    if note.may_switch {
        let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        announced.switched.store(if switches { SWITCHES } else { STAYS }, Ordering::Release);
    }
    if ends.is_set() || is_last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(response)
}

/// Whether a client of HTTP/1.0 wants its connection to go on.
fn asks_to_stay(headers: &HeaderMap) -> bool {
    let mut tokens = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    tokens.any(|token| token.trim_ascii().eq_ignore_ascii_case(b"keep-alive"))
}

impl Aside {
    /// Puts into a request what stood beside its head.
    fn join(self, request: &mut Request<Incoming>) -> Result<(), Refusal> {
        if let Some(query) = self.query {
            request.extensions_mut().insert(LongQuery(query.into()));
        }
        let headers = request.headers_mut();
        let mut added = self.headers.into_iter();
        added.try_for_each(|(name, value)| headers.try_append(name, value).map(drop)).map_err(|_| TOO_MANY)
    }
}

impl Refusal {
    fn response(&self) -> Response<Body> {
        let mut response = Response::new(Body::from(format!("{}: {}", self.status, self.text)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}
