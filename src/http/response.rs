//! Responses that are not streamed, and the only conversion of errors into responses.

pub(in crate::http) mod body;
pub(in crate::http) mod compress;
pub(in crate::http) mod encode;
pub(in crate::http) mod holding;
pub mod negotiate;
pub mod status;
pub mod table;
pub(in crate::http) mod warnings;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;

use self::encode::{encode, encode_json};
use self::negotiate::PLAIN;
use self::status::Failure;
use super::request::{accept, audit_record, pretty, request_uri};
use crate::api::error::Error;
use crate::codec::media_type::MediaType;
use crate::gotext::quote;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// A failure of the datastore, which is logged under the audit id of the answer.
#[derive(Clone)]
pub struct Unlogged {
    pub method: Method,
    pub path: String,
    pub error: String,
}

/// A response with a body of JSON text.
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A response with a body in the negotiated encoding.
pub fn encoded(status: StatusCode, media: MediaType, body: impl Into<Body>) -> Response {
    let mut response = json(status, body);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media.as_str()));
    response
}

/// Marks an answer whose Status is that of an admission webhook: it may tell anything.
#[derive(Clone, Copy)]
pub struct WordsOfWebhook;

/// An error as a `Status`, in an encoding that the request accepts, but never transformed. If it accepts none, indented
/// JSON, as upstream does.
pub fn failure(error: &Error, request: &Parts) -> Response {
    if let Error::NotAuthorized(why) = error {
        return not_authorized(request, why);
    }
    if let Error::NoSeat { retry_after } = error {
        return no_seat(*retry_after);
    }
    let mut response = status(error, request);
    if let Error::Datastore(_) = error {
        let (method, path) = (request.method.clone(), request.uri.path().to_owned());
        response.extensions_mut().insert(Unlogged { method, path, error: error.to_string() });
    }
    if let Error::Denied { .. } = error {
        response.extensions_mut().insert(WordsOfWebhook);
    }
    response
}

fn status(error: &Error, request: &Parts) -> Response {
    let failure = Failure::from(error);
    if let Some(record) = audit_record(request) {
        record.answered_status(&failure.body);
    }
    if let Error::Timeout(_) = error {
        return timed_out(failure);
    }
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let negotiated = negotiate::negotiate(accept(&request.headers), PLAIN);
    let media = negotiated.as_ref().map_or(MediaType::Json, |negotiated| negotiated.media);
    let pretty = negotiated.map_or(true, |negotiated| negotiated.pretty) || pretty(request);
    let mut response = match encode(&failure.body, media, pretty) {
        Ok(body) => encoded(code, media, body),
        Err(_) => json(code, encode_json(&failure.body, pretty)),
    };
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(failure.code, 401 | 403) {
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    response
}

/// The answer of upstream's filter of timeouts: a Status without kind and version, in the type that Go's server takes its text for.
/// Clients that look for a Status find none, and say of the code that the request may still be processed.
fn timed_out(mut failure: Failure) -> Response {
    if let Some(status) = failure.body.as_object_mut() {
        status.shift_remove("kind");
        status.shift_remove("apiVersion");
    }
    let mut response = json(StatusCode::GATEWAY_TIMEOUT, encode_json(&failure.body, false));
    response.headers_mut().insert(header::CONTENT_TYPE, PLAIN_TEXT);
    response
}

/// The answer for unknown paths; the same as that of Go's mux.
pub fn not_found() -> Response {
    plain_error(StatusCode::NOT_FOUND, "404 page not found")
}

/// The answer of upstream's filters while a limit of requests in flight is exceeded.
pub fn too_many_requests() -> Response {
    no_seat(1)
}

/// The answer of upstream's filters to a request that gets no seat; `retry_after` is in seconds.
pub fn no_seat(retry_after: u64) -> Response {
    let mut response =
        plain_error(StatusCode::TOO_MANY_REQUESTS, "Too many requests, please try again later.");
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    response
}

/// The answer of upstream's filters if it cannot be found out whether the user may do this.
fn not_authorized(request: &Parts, why: &str) -> Response {
    let uri = request_uri(request);
    let text = format!("Internal Server Error: {}: {why}", quote(&uri));
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    plain_error(StatusCode::INTERNAL_SERVER_ERROR, &text)
}

/// An error as Go's `http.Error` writes it.
pub fn plain_error(status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{why}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, PLAIN_TEXT);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
