//! Calls of webhooks: a POST of JSON over HTTPS, with upstream's words for what goes wrong. HTTP is for kubeconfigs that say so.
//!
//! The caller resolves Services, and says what the answer has to be. A connection is kept for the next call; it is
//! driven by the call that uses it, so that no task runs for it.

mod fetch;
mod kubeconfig;
mod link;
mod patient;
mod redirect;
mod sent;
#[cfg(test)]
mod tests;
pub mod words;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::HeaderValue;
use hyper::{Method, Request, header};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

pub use self::fetch::Fetcher;
use self::link::{Link, Multiplexed, Opened, Response};
use crate::egress::{Egress, Route};
use crate::server_trust::{self, Identity, Trusted};
use crate::traces::TRACEPARENT;

/// Connections that are kept while nobody uses them.
const MOST_IDLE: usize = 4;

/// How often a call is made of which the hook says that it should come again, as client-go does.
const MOST_REPETITIONS: usize = 10;

/// Redirects that ask for the same request at another path.
const KEEPING_METHOD: [u16; 2] = [307, 308];

/// Bytes of an answer, unpacked; upstream has no bound.
const LARGEST_ANSWER: usize = 16 << 20;

pub use self::kubeconfig::{CurrentCluster, HostUsers, KubeconfigError};
pub use self::patient::{Ended, Retries};
pub use self::sent::Sent;

/// Why a call failed, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallError(pub String);

/// A call that brought no usable answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub why: String,
    /// The status of the answer, if there was one.
    pub status: Option<u16>,
}

/// The address of a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    pub scheme: Scheme,
    /// `host:port`, as errors show it and as the hook reads it.
    pub authority: String,
    /// The name that the hook's certificate has to be of.
    pub server_name: String,
    /// With its leading slash.
    pub path: String,
}

/// How a hook is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Https,
    /// Without TLS, which only kubeconfigs may ask for.
    Http,
}

/// Finds the way to a hook; asked when a connection is made. Its error is the call's.
pub type FindRoute<'a> = &'a (dyn Fn() -> Result<Route, String> + Send + Sync);

/// A hook, and the connections to it.
#[derive(Debug)]
pub struct Webhook {
    endpoint: Endpoint,
    tls: Result<Arc<ClientConfig>, String>,
    timeout: Duration,
    client: Client,
    /// The way to the endpoint's own address.
    egress: Egress,
    idle: Mutex<Vec<Link>>,
    /// The connection of a hook that speaks HTTP/2.
    shared: Mutex<Option<Multiplexed>>,
}

/// Credentials that a hook is shown by its caller.
#[derive(Debug, Default)]
pub struct Client {
    /// A certificate's chain and its key.
    pub identity: Option<Identity>,
    /// The header Authorization.
    pub authorization: Option<HeaderValue>,
}

impl Endpoint {
    /// Reads an `https` URL.
    pub fn parse(url: &str) -> Option<Self> {
        let url = url::Url::parse(url).ok()?;
        let host = url.host_str()?;
        let server_name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        Some(Self { scheme: Scheme::Https, authority, server_name, path: cleaned(url.path()) })
    }

    /// A Service, as upstream names it.
    pub fn of_service(namespace: &str, name: &str, port: u16, path: &str) -> Self {
        let server_name = format!("{name}.{namespace}.svc");
        let authority = format!("{server_name}:{port}");
        Self { scheme: Scheme::Https, authority, server_name, path: cleaned(path) }
    }

    /// Whether it is on this machine.
    fn is_local(&self) -> bool {
        let address = self.server_name.parse::<IpAddr>();
        self.server_name.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address| address.is_loopback())
    }

    /// The host and port to connect to unless a Service leads elsewhere.
    pub fn address(&self) -> String {
        let has_port = self.authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        match self.scheme {
            _ if has_port => self.authority.clone(),
            Scheme::Https => format!("{}:443", self.authority),
            Scheme::Http => format!("{}:80", self.authority),
        }
    }

    /// The URL of a path there.
    fn url(&self, path: &str) -> String {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
        };
        format!("{scheme}://{}{path}", self.authority)
    }
}

/// A path as Go's `path.Join` leaves it, through which client-go sends all of them: envtest names hooks
/// `https://127.0.0.1:9443//mutate`, and they hear of `/mutate`.
fn cleaned(path: &str) -> String {
    let mut kept = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                kept.pop();
            }
            segment => kept.push(segment),
        }
    }
    format!("/{}", kept.join("/"))
}

impl Webhook {
    /// `ca_bundle` is PEM; without one, the system's authorities are trusted. Blocks where these are read.
    pub fn new(endpoint: Endpoint, ca_bundle: &[u8], timeout: Duration) -> Self {
        Self::as_client(endpoint, ca_bundle, timeout, Client::default())
    }

    /// The variant of [`Webhook::new`] with credentials to show.
    pub fn as_client(endpoint: Endpoint, ca_bundle: &[u8], timeout: Duration, mut client: Client) -> Self {
        let tls = client_config(ca_bundle, client.identity.take());
        let (egress, idle, shared) = (Egress::default(), Mutex::default(), Mutex::default());
        let hook = Self { endpoint, tls, timeout, client, egress, idle, shared };
        if hook.endpoint.is_local() { hook.over_http2() } else { hook }
    }

    /// The same, over HTTP/2 if the hook speaks it. Upstream offers it to hooks on its own machine, and to whatever a
    /// kubeconfig names: with others, requests are to be spread over the replicas of a Service.
    pub fn over_http2(mut self) -> Self {
        self.tls = self.tls.map(|tls| server_trust::with_http2(&tls));
        self
    }

    /// The same, with this way to the endpoint's own address.
    pub fn through(self, egress: Egress) -> Self {
        Self { egress, ..self }
    }

    /// The way to the endpoint's own address.
    pub fn own_route(&self) -> Route {
        Route::of(self.endpoint.address(), self.egress.clone())
    }

    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The error of a call that could not be made.
    pub fn failed(&self, why: &str) -> CallError {
        CallError(format!("Post \"{}\": {why}", self.url()))
    }

    /// Posts a body to the hook, and answers with the body of the answer.
    pub async fn post(&self, route: FindRoute<'_>, body: Bytes) -> Result<Bytes, CallError> {
        words::judge(self.answer(route, body).await?)
    }

    /// Posts a body, within a time of its own that the hook is told. An answer that says when to come again is followed
    /// within that time.
    pub async fn call(&self, route: FindRoute<'_>, sent: Sent<'_>, time: Duration) -> Result<Bytes, Failed> {
        let path = self.path_within(time);
        let failed = |why: &str| Failed { why: self.failed_within(time, why), status: None };
        let exchange = async {
            for _ in 1..MOST_REPETITIONS {
                match self.exchange_at(route, &path, sent).await? {
                    Response { status: 429 | 500.., retry_after: Some(after), .. } => {
                        tokio::time::sleep(Duration::from_secs(after)).await;
                    }
                    response => return Ok(response),
                }
            }
            self.exchange_at(route, &path, sent).await
        };
        match tokio::time::timeout(time, exchange).await {
            Ok(Ok(response)) => {
                let status = Some(response.status);
                words::judge(response).map_err(|CallError(why)| Failed { why, status })
            }
            Ok(Err(why)) => Err(failed(&why)),
            Err(_) => Err(failed("context deadline exceeded")),
        }
    }

    /// The error of a call that could not be made within its time.
    pub fn failed_within(&self, time: Duration, why: &str) -> String {
        format!("Post \"{}\": {why}", self.endpoint.url(&self.path_within(time)))
    }

    /// The hook is told seconds, rounded up.
    fn path_within(&self, time: Duration) -> String {
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        format!("{}?timeout={seconds}s", self.endpoint.path)
    }

    /// Why no call can be made at all.
    pub fn unusable(&self) -> Option<&str> {
        self.tls.as_ref().err().map(String::as_str)
    }

    /// Posts a body to the endpoint's own address. An answer may be empty.
    pub async fn send(&self, body: Bytes) -> Result<(), CallError> {
        let response = self.answer(&|| Ok(self.own_route()), body).await?;
        match response.status {
            200..=206 => Ok(()),
            _ => words::judge(response).map(drop),
        }
    }

    async fn answer(&self, route: FindRoute<'_>, body: Bytes) -> Result<Response, CallError> {
        let failed = |why: String| self.failed(&why);
        let call = self.exchange(route, body);
        match tokio::time::timeout(self.timeout, call).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => Err(failed(
                "context deadline exceeded (Client.Timeout exceeded while awaiting headers)".into(),
            )),
        }
    }

    /// The URL as upstream prints it.
    fn url(&self) -> String {
        self.endpoint.url(&self.path())
    }

    /// A connection that was kept may have ended meanwhile, so the first failure of one leads to a new one.
    async fn exchange(&self, route: FindRoute<'_>, body: Bytes) -> Result<Response, String> {
        self.exchange_at(route, &self.path(), Sent::of(&body)).await
    }

    fn path(&self) -> String {
        format!("{}?timeout={}s", self.endpoint.path, self.timeout.as_secs())
    }

    async fn exchange_at(
        &self,
        route: FindRoute<'_>,
        path: &str,
        sent: Sent<'_>,
    ) -> Result<Response, String> {
        let mut path = Cow::Borrowed(path);
        for _ in 0..=redirect::MOST {
            let response = self.exchange_once(route, &path, sent).await?;
            match redirect::target(&response, &KEEPING_METHOD, &self.endpoint.url(&path))? {
                Some(target) => path = target.into(),
                None => return Ok(response),
            }
        }
        Err(redirect::STOPPED.to_owned())
    }

    async fn exchange_once(
        &self,
        route: FindRoute<'_>,
        path: &str,
        sent: Sent<'_>,
    ) -> Result<Response, String> {
        let shared = self.shared().clone().filter(Multiplexed::is_open);
        if let Some(shared) = shared
            && let Ok(answer) = shared.exchange(self.request(path, sent)?, LARGEST_ANSWER).await
        {
            return Ok(answer);
        }
        if let Some(mut link) = self.take()
            && let Ok(answer) = link.exchange(self.request(path, sent)?, LARGEST_ANSWER).await
        {
            self.keep(link);
            return Ok(answer);
        }
        let opened = match self.endpoint.scheme {
            Scheme::Http => Opened::without_tls(&route()?).await?,
            Scheme::Https => {
                let tls = self.tls.clone()?;
                let name = ServerName::try_from(self.endpoint.server_name.clone());
                Opened::at(&route()?, tls, name.map_err(|error| error.to_string())?).await?
            }
        };
        match opened {
            Opened::One(mut link) => {
                let answer = link.exchange(self.request(path, sent)?, LARGEST_ANSWER).await?;
                self.keep(link);
                Ok(answer)
            }
            Opened::Many(link) => {
                *self.shared() = Some(link.clone());
                link.exchange(self.request(path, sent)?, LARGEST_ANSWER).await
            }
        }
    }

    fn request(&self, path: &str, sent: Sent<'_>) -> Result<Request<Full<Bytes>>, String> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, &self.endpoint.authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::ACCEPT_ENCODING, "gzip")
            .header(header::USER_AGENT, concat!("rowplane/", env!("CARGO_PKG_VERSION")));
        let request = match &self.client.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        };
        let request = match sent.traceparent {
            Some(traceparent) => request.header(TRACEPARENT, traceparent),
            None => request,
        };
        request.body(Full::new(sent.body.clone())).map_err(|error| error.to_string())
    }

    fn shared(&self) -> MutexGuard<'_, Option<Multiplexed>> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<Link> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn keep(&self, link: Link) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if link.is_open() && idle.len() < MOST_IDLE {
            idle.push(link);
        }
    }
}

fn client_config(ca_bundle: &[u8], identity: Option<Identity>) -> Result<Arc<ClientConfig>, String> {
    let trusted = if ca_bundle.is_empty() { Trusted::system() } else { Trusted::of_bundle(ca_bundle)? };
    // One connection of HTTP/2 with many requests would not be spread over the replicas of a Service.
    server_trust::client_config(Some(trusted), identity)
}
