//! Responses that are not streamed, and the one way an error becomes one.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::Value;

use super::encode::encode_json;
use super::status::Failure;
use crate::api::error::Error;

pub const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// A response with a body of JSON text.
pub fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// A JSON value as a response.
pub fn value(status: StatusCode, value: &Value, pretty: bool) -> Response {
    json(status, encode_json(value, pretty))
}

/// An error as a `Status`.
pub fn failure(error: &Error, pretty: bool) -> Response {
    let failure = Failure::from(error);
    let code = StatusCode::from_u16(failure.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = value(code, &failure.body, pretty);
    if let Some(seconds) = failure.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if matches!(failure.code, 401 | 403) {
        response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
    response
}

/// What a path that nobody serves answers, as Go's mux does.
pub fn not_found() -> Response {
    let mut response = Response::new(Body::from("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
