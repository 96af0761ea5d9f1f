//! CONNECT: what is passed on to a kubelet, a Pod or a Service (upstream's `ConnectResource` and `UpgradeAwareHandler`).

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, header};
use axum::response::Response;
use futures_util::TryFutureExt as _;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::Context;
use super::forward::without_hops;
use super::translation::offers_channels;
use super::tunnel::offers_tunnel;
use crate::api::error::Error;
use crate::api::request::Options;
use crate::api::subresource::connect::{Location, options};
use crate::http::request::raw_query;
use crate::http::server::ConnectionInfo;
use crate::http::server::takeover::Takeover;
use crate::metrics::LongRunning;
use crate::relay::dial::dial;
use crate::relay::exchange::{Answer, exchange};
use crate::relay::tunnel::copy_both_ways;
use crate::schema::resource::{Nature, Subresource};

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The time in which a refusal of an upgrade has to be there, and how much of it is passed on.
const REFUSAL_TIME: Duration = Duration::from_secs(10);
const LARGEST_REFUSAL: usize = 1 << 20;

impl Context<'_> {
    pub async fn connect(&self, body: Body, active: LongRunning) -> Result<Response, Error> {
        if self.query.get("dryRun").is_some() {
            return Err(Error::bad_request("dryRun is not supported"));
        }
        let subresource = self.subresource()?;
        let kind = subresource.kind.as_ref().unwrap_or(&self.definition.kind);
        let request = self.request(Options::None);
        let options = options::parse(&kind.gvk, &self.query, &self.below())?;
        let options = self.app.api.admit_connection(&request, options).await?;
        let is_stream = subresource.nature == Nature::Stream;
        let location = if is_stream {
            if self.parts.method == Method::GET {
                self.app.api.authorize_stream(&request).await?;
            }
            self.app.api.stream_location(&request, &options).await?
        } else {
            let query = raw_query(self.parts).unwrap_or_default();
            self.app.api.proxy_location(&request, &options, query).await?
        };
        self.check_permit().await?;
        if wants_upgrade(&self.parts.headers) {
            if is_stream {
                self.count_stream(&subresource.name, !location.takes_websockets);
            }
            let is_forwarding = subresource.name == "portforward";
            let translates = is_stream && !location.takes_websockets;
            if translates && is_forwarding && offers_tunnel(&self.parts.headers) {
                return self.tunnel(&location, active).await;
            }
            if translates && !is_forwarding && offers_channels(&self.parts.headers) {
                return self.translate(location, &options, active).await;
            }
            return self.upgrade(&location, active).await;
        }
        match is_stream {
            true => Err(Error::bad_request("Upgrade request required")),
            false => self.forward(&location, body, active).await,
        }
    }

    fn subresource(&self) -> Result<&Subresource, Error> {
        let name = self.path.subresource.as_deref().unwrap_or_default();
        self.definition.subresource(name).ok_or(Error::UnknownResource)
    }

    fn count_stream(&self, subresource: &str, is_translated: bool) {
        let known = ["attach", "exec", "portforward"].into_iter().find(|known| *known == subresource);
        known.into_iter().for_each(|known| self.app.metrics.stream_asked(known, is_translated));
    }

    /// The path behind a proxy, with its slashes.
    fn below(&self) -> String {
        let below = &self.path.below;
        let mut path = if below.is_empty() { String::new() } else { format!("/{below}") };
        if self.parts.uri.path().ends_with('/') {
            path.push('/');
        }
        path
    }

    /// Passes an upgrade on, and then bytes in both directions.
    async fn upgrade(&self, location: &Location, active: LongRunning) -> Result<Response, Error> {
        let client = self.client()?;
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

    /// The client's connection, once an answer has given it away.
    pub(super) fn client(&self) -> Result<OnUpgrade, Error> {
        self.parts.extensions.get::<OnUpgrade>().cloned().ok_or_else(|| {
            let why = format!("{:?} has no upgrades", self.parts.version);
            failed("request connection cannot be hijacked", why)
        })
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
        let (mut head, body) = answer.into_parts();
        let (_, mut driven) = body.into_parts();
        let Some(backend) = head.extensions.remove::<OnUpgrade>() else {
            return Err(Error::Unclassified("the backend's connection cannot be upgraded".to_owned()));
        };
        let (limit, end) = (self.app.api.kubelets.config().most_bytes, self.stream_end());
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
}

fn failed(what: &str, why: String) -> Error {
    Error::Unclassified(format!("{what}: {why}"))
}

/// Upstream's `IsUpgradeRequest`.
fn wants_upgrade(headers: &HeaderMap) -> bool {
    let names = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    names.into_iter().any(|names| names.to_ascii_lowercase().contains("upgrade"))
}

/// The client's request, but for its target.
pub(super) fn upgrade_request(parts: &Parts, location: &Location) -> Result<Request<Empty<Bytes>>, String> {
    let mut request = Request::new(Empty::new());
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = location.target().parse().map_err(|error| format!("{error}"))?;
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    headers.clone_from(&parts.headers);
    for length in [header::CONTENT_LENGTH, header::TRANSFER_ENCODING] {
        headers.remove(length);
    }
    forwarded_for(parts, headers);
    Ok(request)
}

/// Names the client behind those that the request came through before.
pub(super) fn forwarded_for(parts: &Parts, headers: &mut HeaderMap) {
    let Some(connection) = parts.extensions.get::<std::sync::Arc<ConnectionInfo>>() else { return };
    let before = parts.headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let all: Vec<&str> = before.chain([connection.client.as_str()]).collect();
    if let Ok(value) = HeaderValue::from_str(&all.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
}

/// The backend's own answer to an upgrade that it refuses.
pub(super) async fn refused(answer: Answer) -> Result<Response, Error> {
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
