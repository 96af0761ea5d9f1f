//! GET of a Pod's log (upstream's `LocationStreamer`).

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Empty, Limited};

use super::Context;
use super::passing::streaming;
use crate::api::error::Error;
use crate::api::request::Options;
use crate::api::subresource::connect::Location;
use crate::api::subresource::connect::log::LogOptions;
use crate::auth::authn::is_websocket;
use crate::gotext::quote;
use crate::http::response::negotiate::Shape;
use crate::http::websocket;
use crate::metrics::LongRunning;
use crate::relay::dial::dial;
use crate::relay::exchange::{Answer, exchange};
use crate::tree::{Map, json};

/// The media types that the route offers, in the order of upstream's text.
const ROUTE_TYPES: &[&str] =
    &["text/plain", "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
/// How much of a kubelet's refusal is told, in bytes.
const MOST_TOLD: usize = 50_000;
const AGENT: HeaderValue = HeaderValue::from_static(concat!("rowplane/", env!("CARGO_PKG_VERSION")));

impl Context<'_> {
    pub async fn log(&self, active: LongRunning) -> Result<Response, Error> {
        self.negotiate_of(ROUTE_TYPES, Shape::Single)?;
        self.check_permit().await?;
        let request = self.request(Options::None);
        let options = LogOptions::parse(&self.query, request.target.name)?;
        self.app.metrics.logs_asked(options.skips_verification);
        let Some(location) = self.app.api.log_location(&request, &options).await? else {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Ok(response);
        };
        let answer = get(&location).await.map_err(|why| {
            if why.contains("x509:") {
                self.app.metrics.logs_not_trusted();
            }
            Error::Unclassified(format!("Get {}: {why}", quote(&location.url())))
        })?;
        let answer = accepted(answer, request.target.name).await?;
        let end = if options.follow { self.stream_end() } else { self.revocation() };
        let body = streaming(answer.into_body(), end, active);
        if is_websocket(&self.parts.headers) {
            // An empty message comes first, as upstream sends one.
            let first = stream::once(async { Ok(Bytes::new()) });
            let messages = first.chain(body.into_data_stream().map(|piece| piece.map_err(Into::into)));
            return match websocket::accept_log(self.parts) {
                Ok(accepted) => websocket::answer(self.parts, accepted, Box::pin(messages)),
                Err(refusal) => Ok(*refusal),
            };
        }
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        Ok(response)
    }
}

async fn get(location: &Location) -> Result<Answer, String> {
    let request = Request::builder()
        .uri(location.target())
        .header(header::HOST, location.address.authority())
        .header(header::USER_AGENT, AGENT)
        .body(Empty::new())
        .map_err(|error| error.to_string())?;
    exchange(dial(&location.address).await?, request).await
}

/// The answer if it is one, or what clients are told of any other.
async fn accepted(answer: Answer, pod: &str) -> Result<Answer, Error> {
    let status = answer.status().as_u16();
    let location = answer.headers().get(header::LOCATION);
    match (status, location.and_then(|value| value.to_str().ok())) {
        (200..=206, _) => return Ok(answer),
        (301 | 302 | 303 | 307 | 308, Some(location)) => {
            return Err(Error::Unclassified(format!("Get {}: redirects forbidden", quote(location))));
        }
        _ => {}
    }
    let mut body = Limited::new(answer.into_body(), MOST_TOLD);
    let mut text = Vec::new();
    while let Some(Ok(frame)) = body.frame().await {
        text.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    Err(match status {
        500 => Error::Internal(text),
        400 => Error::BadRequest(text),
        _ => refusal(status, &text, pod),
    })
}

/// The error that client-go makes of an answer which says nothing in the form of the API.
fn refusal(code: u16, text: &str, pod: &str) -> Error {
    let own = |fixed: &str| match text {
        "" | "unknown" => fixed.to_owned(),
        text => text.to_owned(),
    };
    let (reason, message) = match code {
        401 => ("Unauthorized", "the server has asked for the client to provide credentials".to_owned()),
        403 => ("Forbidden", text.to_owned()),
        404 => ("NotFound", "the server could not find the requested resource".to_owned()),
        405 => {
            ("MethodNotAllowed", "the server does not allow this method on the requested resource".to_owned())
        }
        406 => {
            let fixed = "the server was unable to respond with a content type that the client supports";
            ("NotAcceptable", own(fixed))
        }
        409 => ("Conflict", "the server reported a conflict".to_owned()),
        415 => {
            let fixed = "the server was unable to respond with a content type that the client supports";
            ("UnsupportedMediaType", own(fixed))
        }
        422 => ("Invalid", "the server rejected our request due to an error in our request".to_owned()),
        429 => (
            "TooManyRequests",
            "the server has received too many requests and has asked us to try again later".to_owned(),
        ),
        503 => {
            ("ServiceUnavailable", "the server is currently unable to handle the request".to_owned())
        }
        504 => (
            "Timeout",
            "the server was unable to return a response in the time allotted, but may still be processing the request"
                .to_owned(),
        ),
        500.. => (
            "InternalError",
            format!("an error on the server ({}) has prevented the request from succeeding", quote(text)),
        ),
        _ => (
            "",
            format!("the server responded with the status code {code} but did not return more information"),
        ),
    };
    let mut status = Map::new();
    status.insert("kind", "Status".into());
    status.insert("apiVersion", "v1".into());
    status.insert("metadata", json!({}));
    status.insert("status", "Failure".into());
    status.insert("message", format!("{message} ( pods/log {pod})").into());
    if !reason.is_empty() {
        status.insert("reason", reason.into());
    }
    status.insert("details", json!({"name": pod, "kind": "pods/log"}));
    status.insert("code", code.into());
    Error::Denied { status: Box::new(status), code }
}
