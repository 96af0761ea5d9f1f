//! An upgrade that is passed on, and the bytes in both directions that follow it (upstream's `UpgradeAwareHandler`).

use std::num::NonZeroU64;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, Version, header};
use axum::response::Response;
use futures_util::TryFutureExt as _;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::Context;
use super::StreamEnd;
use super::hops::{forwarded_for, without_hops};
use crate::api::error::Error;
use crate::api::subresource::connect::Location;
use crate::http::server::takeover::Takeover;
use crate::metrics::LongRunning;
use crate::relay::dial::dial;
use crate::relay::exchange::{Answer, exchange};
use crate::relay::tunnel::copy_both_ways;

/// The time in which a refusal of an upgrade has to be there, and how much of it is passed on.
const REFUSAL_TIME: Duration = Duration::from_secs(10);
const LARGEST_REFUSAL: usize = 1 << 20;

impl Context<'_> {
    /// Passes an upgrade on, and then bytes in both directions.
    pub(super) async fn upgrade(&self, location: &Location, active: LongRunning) -> Result<Response, Error> {
        let client = client(self.parts)?;
        let request =
            upgrade_request(self.parts, location).map_err(|why| failed("error sending request", why))?;
        let answer = self.ask_for_upgrade(location, request).await?;
        match answer.status() {
            StatusCode::SWITCHING_PROTOCOLS => {
                let headers = answer.headers().clone();
                self.take_over(client.map_ok(TokioIo::new), answer, headers, active)
            }
            status if status.is_client_error() || status.is_server_error() => refused(answer).await,
            status => {
                Err(Error::Unclassified(format!("invalid upgrade response: status code {}", status.as_u16())))
            }
        }
    }

    pub(super) fn client(&self) -> Result<OnUpgrade, Error> {
        client(self.parts)
    }

    pub(super) async fn ask_for_upgrade(
        &self,
        location: &Location,
        request: Request<Empty<Bytes>>,
    ) -> Result<Answer, Error> {
        let stream = dial(&location.address).await.map_err(|why| failed("error dialing backend", why))?;
        exchange(stream, request).await.map_err(|why| failed("error sending request", why))
    }

    /// Answers with these headers, and passes bytes on between the client and who has answered.
    pub(super) fn take_over<C>(
        &self,
        client: impl Future<Output = hyper::Result<C>> + Send + 'static,
        answer: Answer,
        headers: HeaderMap,
        active: LongRunning,
    ) -> Result<Response, Error>
    where
        C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let limit = self.app.api.kubelets.config().most_bytes;
        take_over(client, answer, headers, (self.stream_end(), active), limit)
    }
}

/// The client's connection, once an answer has given it away.
pub fn client(parts: &Parts) -> Result<OnUpgrade, Error> {
    parts.extensions.get::<OnUpgrade>().cloned().ok_or_else(|| {
        let why = format!("{:?} has no upgrades", parts.version);
        failed("request connection cannot be hijacked", why)
    })
}

/// Answers with these headers, and passes bytes on between the client and who has answered, at most `limit` in a second,
/// until the stream ends. `active` counts it as under way.
pub fn take_over<C, G>(
    client: impl Future<Output = hyper::Result<C>> + Send + 'static,
    answer: Answer,
    headers: HeaderMap,
    (end, active): (StreamEnd, G),
    limit: Option<NonZeroU64>,
) -> Result<Response, Error>
where
    C: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    G: Send + 'static,
{
    let (mut head, body) = answer.into_parts();
    let (_, mut driven) = body.into_parts();
    let Some(backend) = head.extensions.remove::<OnUpgrade>() else {
        return Err(Error::Unclassified("the backend's connection cannot be upgraded".to_owned()));
    };
    let takeover = Takeover::new(async move {
        let copied = async {
            if let (Ok(client), Ok(backend)) = (client.await, driven.until(backend).await) {
                copy_both_ways(client, TokioIo::new(backend), limit).await;
            }
        };
        end.run_until(copied).await;
        drop(active);
    });
    Ok(takeover.response(headers, Body::empty()))
}

fn failed(what: &str, why: String) -> Error {
    Error::Unclassified(format!("{what}: {why}"))
}

/// The client's request, but for its target.
pub(super) fn upgrade_request(parts: &Parts, location: &Location) -> Result<Request<Empty<Bytes>>, String> {
    upgrade_request_to(parts, &location.target())
}

/// The client's request for another target.
pub fn upgrade_request_to(parts: &Parts, target: &str) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = target.parse().map_err(|error| format!("{error}"))?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.clone_from(&parts.headers);
    for length in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(length);
    }
    forwarded_for(parts, headers);
    Ok(request)
}

/// The backend's own answer to an upgrade that it refuses.
pub async fn refused(answer: Answer) -> Result<Response, Error> {
    let (head, body) = answer.into_parts();
    let read = timeout(REFUSAL_TIME, Limited::new(body, LARGEST_REFUSAL).collect()).await;
    let body = match read {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) => return Err(Error::Unclassified(format!("error reading response: {error}"))),
        Err(_) => return Err(Error::Unclassified("error reading response: i/o timeout".to_owned())),
    };
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = head.status;
    *response.headers_mut() = without_hops(&head.headers);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(response)
}
