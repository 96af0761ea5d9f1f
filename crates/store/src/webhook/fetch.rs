//! A document that is fetched over HTTPS.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::HeaderValue;
use hyper::{Method, Request, header};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use super::link::{Multiplexed, Opened, Response};
use super::{CallError, client_config, redirect};
use crate::egress::{Egress, Route};
use crate::server_trust;

/// Redirects of a request that has no body.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// Bytes of a document, unpacked.
const LARGEST: usize = 1 << 20;

/// Fetches documents from servers that certain CAs vouch for.
#[derive(Debug)]
pub struct Fetcher {
    tls: Result<Arc<ClientConfig>, String>,
    timeout: Duration,
    egress: Egress,
    /// The last server that spoke HTTP/2 (`host:port`), and the connection to it.
    shared: Mutex<Option<(String, Multiplexed)>>,
}

impl Fetcher {
    /// `authorities` is PEM; without any, those of the system are trusted. Blocks where these are read.
    pub fn new(authorities: &[u8], timeout: Duration) -> Self {
        let tls = client_config(authorities, None).map(|tls| server_trust::with_http2(&tls));
        Self { tls, timeout, egress: Egress::default(), shared: Mutex::default() }
    }

    /// The same, with this way to the servers.
    pub fn through(self, egress: Egress) -> Self {
        Self { egress, ..self }
    }

    /// The body of a success.
    pub async fn get(&self, url: &str) -> Result<Bytes, CallError> {
        self.get_as(url, None).await
    }

    /// The body of a success, for whoever has this token.
    pub async fn get_as(&self, url: &str, bearer: Option<&str>) -> Result<Bytes, CallError> {
        let failed = |why: String| CallError(format!("Get \"{url}\": {why}"));
        match tokio::time::timeout(self.timeout, self.exchange(url, bearer)).await {
            Ok(Ok(Response { status: 200, body, .. })) => Ok(body),
            Ok(Ok(Response { status, body, .. })) => {
                let body = String::from_utf8_lossy(&body[..body.len().min(256)]).into_owned();
                Err(CallError(format!("{status}: {body}")))
            }
            Ok(Err(why)) => Err(failed(why)),
            Err(_) => Err(failed("context deadline exceeded".to_owned())),
        }
    }

    async fn exchange(&self, url: &str, bearer: Option<&str>) -> Result<Response, String> {
        let mut url = Cow::Borrowed(url);
        for _ in 0..=redirect::MOST {
            let response = self.exchange_once(&url, bearer).await?;
            let Some(target) = redirect::target(&response, &REDIRECTS, &url)? else { return Ok(response) };
            let from = url::Url::parse(&url).map_err(|error| error.to_string())?;
            url = format!("{}{target}", &from[..url::Position::BeforePath]).into();
        }
        Err(redirect::STOPPED.to_owned())
    }

    async fn exchange_once(&self, url: &str, bearer: Option<&str>) -> Result<Response, String> {
        let parsed = url::Url::parse(url).map_err(|error| error.to_string())?;
        let host = parsed.host_str().filter(|_| parsed.scheme() == "https").ok_or("no https URL")?;
        let port = parsed.port_or_known_default().unwrap_or(443);
        let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error| error.to_string())?;
        let path = &parsed[url::Position::BeforePath..url::Position::AfterQuery];
        let mut request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .header(header::HOST, &parsed[url::Position::BeforeHost..url::Position::AfterPort])
            .header(header::ACCEPT, "application/json, */*")
            .header(header::ACCEPT_ENCODING, "gzip")
            .header(header::USER_AGENT, concat!("rowplane/", env!("CARGO_PKG_VERSION")))
            .body(Full::new(Bytes::new()))
            .map_err(|error| error.to_string())?;
        if let Some(bearer) = bearer {
            let mut value =
                HeaderValue::from_str(&format!("Bearer {bearer}")).map_err(|error| error.to_string())?;
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let address = format!("{host}:{port}");
        let shared = || self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = shared().clone().filter(|(known, link)| *known == address && link.is_open());
        if let Some((_, link)) = kept
            && let Ok(answer) = link.exchange(request.clone(), LARGEST).await
        {
            return Ok(answer);
        }
        let route = Route::of(address, self.egress.clone());
        match Opened::at(&route, self.tls.clone()?, name).await? {
            Opened::One(mut link) => link.exchange(request, LARGEST).await,
            Opened::Many(link) => {
                *shared() = Some((route.addresses.concat(), link.clone()));
                link.exchange(request, LARGEST).await
            }
        }
    }
}
