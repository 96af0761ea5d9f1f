//! A client of a running server, for commands that look at it.

use std::path::Path;
use std::time::Duration;

use axum::body::Bytes;
use axum::http::request::Builder;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use jiff::Timestamp;
use url::Url;

use crate::relay::Address;
use crate::relay::dial::dial;
use crate::relay::exchange;
use crate::server_trust::{Identity, Trusted, client_config};
use crate::webhook::CurrentCluster;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 64 << 20;

/// A server's answer.
pub struct Answer {
    pub status: StatusCode,
    /// The time of the server's host, in whole seconds.
    pub date: Option<Timestamp>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// A client that makes a connection for each request.
pub struct Client {
    url: Url,
    address: Address,
    authorization: Option<HeaderValue>,
}

impl Client {
    /// The user of a kubeconfig's current context. Reads files.
    pub fn of_kubeconfig(path: &Path) -> Result<Self, String> {
        Self::of_cluster(CurrentCluster::read(path).map_err(|error| error.to_string())?)
    }

    /// The user of a cluster.
    pub fn of_cluster(cluster: CurrentCluster) -> Result<Self, String> {
        let trusted = match cluster.authorities.as_slice() {
            [] => Trusted::system(),
            bundle => Trusted::of_bundle(bundle)?,
        };
        let client = Self::new(&cluster.server, Some(trusted), cluster.client.identity)?;
        Ok(Self { authorization: cluster.client.authorization, ..client })
    }

    /// An anonymous client that believes any certificate, as probes of kubelets do.
    pub fn anonymous(url: &str) -> Result<Self, String> {
        Self::new(url, None, None)
    }

    /// A client of a server. Without authorities, every certificate is believed.
    pub fn new(url: &str, trusted: Option<Trusted>, identity: Option<Identity>) -> Result<Self, String> {
        let url = parse(url)?;
        let mut address = address(&url)?;
        if url.scheme() == "https" {
            address.tls = Some(client_config(trusted, identity)?);
        }
        Ok(Self { url, address, authorization: None })
    }

    /// The URL of the server.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The answer to a GET of a path below the server's URL. The error is one for people.
    pub async fn get(&self, path: &str, timeout: Duration) -> Result<Answer, String> {
        within(timeout, self.ask(Request::get(self.path(path)), Bytes::new())).await
    }

    /// The answer to a server-side apply of an object in JSON, whose path is below the server's URL.
    pub async fn apply(&self, path: &str, object: String, timeout: Duration) -> Result<Answer, String> {
        let request =
            Request::patch(self.path(path)).header(header::CONTENT_TYPE, "application/apply-patch+yaml");
        within(timeout, self.ask(request, object.into())).await
    }

    /// The answer to a GET, whose body is read as it comes.
    pub async fn open(&self, path: &str) -> Result<exchange::Answer, String> {
        self.exchange(Request::get(self.path(path)), Bytes::new()).await
    }

    /// The answer to a POST of JSON, whose body is read as it comes.
    pub async fn post(&self, path: &str, body: String) -> Result<exchange::Answer, String> {
        let request = Request::post(self.path(path)).header(header::CONTENT_TYPE, "application/json");
        self.exchange(request, body.into()).await
    }

    /// The answer to a request with a body of a media type, or without one. The path is below the server's URL.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        accept: &str,
        body: Option<(&str, String)>,
        timeout: Duration,
    ) -> Result<Answer, String> {
        let request = Request::builder()
            .method(method)
            .uri(self.path(path))
            .header(header::ACCEPT, accept)
            .header(header::USER_AGENT, concat!("rowplane/", env!("CARGO_PKG_VERSION")));
        let (request, body) = match body {
            Some((media, body)) => (request.header(header::CONTENT_TYPE, media), body.into()),
            None => (request, Bytes::new()),
        };
        within(timeout, self.ask(request, body)).await
    }

    fn path(&self, path: &str) -> String {
        format!("{}{path}", self.url.path().trim_end_matches('/'))
    }

    async fn ask(&self, request: Builder, body: Bytes) -> Result<Answer, String> {
        let (head, body) = self.exchange(request, body).await?.into_parts();
        let body = Limited::new(body, LONGEST).collect().await.map_err(|error| error.to_string())?;
        let date = head
            .headers
            .get(header::DATE)
            .and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
        let date = date.and_then(|date| Timestamp::try_from(date).ok());
        Ok(Answer { status: head.status, date, headers: head.headers, body: body.to_bytes() })
    }

    async fn exchange(&self, request: Builder, body: Bytes) -> Result<exchange::Answer, String> {
        let mut request = request.header(header::HOST, self.address.authority());
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body)).map_err(|error| error.to_string())?;
        exchange::exchange(dial(&self.address).await?, request).await
    }
}

async fn within(
    timeout: Duration,
    asked: impl Future<Output = Result<Answer, String>>,
) -> Result<Answer, String> {
    let asked = tokio::time::timeout(timeout, asked).await;
    asked.unwrap_or_else(|_| Err(format!("no answer within {timeout:?}")))
}

fn parse(url: &str) -> Result<Url, String> {
    let parsed =
        Url::parse(url).ok().filter(|url| matches!(url.scheme(), "https" | "http") && url.has_host());
    parsed.ok_or_else(|| format!("{url:?} is no URL of https or http"))
}

/// The address without TLS.
fn address(url: &Url) -> Result<Address, String> {
    let host = url.host_str().ok_or("the URL has no host")?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port().map(|port| port.to_string()).unwrap_or_default();
    Ok(Address { host, port, tls: None, checked: Vec::new(), egress: Default::default() })
}
