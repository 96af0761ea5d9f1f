//! CONNECT: what is passed on to a kubelet, a Pod or a Service (upstream's `ConnectResource` and `UpgradeAwareHandler`).

use axum::body::Body;
use axum::http::{HeaderMap, Method, header};
use axum::response::Response;

use super::Context;
use super::translation::offers_channels;
use super::tunnel::offers_tunnel;
use crate::api::error::Error;
use crate::api::request::Options;
use crate::api::subresource::connect::options;
use crate::http::request::raw_query;
use crate::metrics::LongRunning;
use crate::schema::resource::{Nature, Subresource};

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
}

/// Upstream's `IsUpgradeRequest`.
pub fn wants_upgrade(headers: &HeaderMap) -> bool {
    let names = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    names.into_iter().any(|names| names.to_ascii_lowercase().contains("upgrade"))
}
