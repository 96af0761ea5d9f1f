//! The server behind the page.

use std::path::Path;

use axum::body::Body;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::BodyExt as _;
use url::Url;

use super::super::past::kubeconfig::Kubeconfig;
use crate::egress::Route;
use crate::relay::pool::{Pool, Receiving};
use crate::server_trust::{Trusted, client_config};
use crate::webhook::CurrentCluster;

/// The server of a kubeconfig's context, and connections to it.
pub struct Upstream {
    route: Route,
    pool: Pool,
    /// The host with its port.
    authority: String,
    /// The path of the server's URL, without a slash at its end.
    path: String,
    authorization: Option<HeaderValue>,
}

impl Upstream {
    /// Reads the files that the kubeconfig names, and runs its plugin for credentials.
    pub fn of_kubeconfig(kubeconfig: &Kubeconfig) -> Result<Self, String> {
        let cluster = CurrentCluster::of(&kubeconfig.with_credentials()?, Path::new("/"))?;
        let url = Url::parse(&cluster.server).ok().filter(|url| url.scheme() == "https");
        let url = url.ok_or_else(|| format!("{:?} is no URL of https", cluster.server))?;
        let host = url.host_str().ok_or("the server's URL has no host")?;
        let authority = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let trusted = match cluster.authorities.as_slice() {
            [] => Trusted::system(),
            bundle => Trusted::of_bundle(bundle)?,
        };
        let tls = client_config(Some(trusted), cluster.client.identity)?;
        let address = format!("{host}:{}", url.port_or_known_default().unwrap_or(443));
        Ok(Self {
            route: Route { addresses: vec![address], egress: Default::default() },
            pool: Pool::new(tls, host.trim_matches(['[', ']']).to_owned()),
            authority,
            path: url.path().trim_end_matches('/').to_owned(),
            authorization: cluster.client.authorization,
        })
    }

    /// Sends a request whose URI is a path below the server's URL. The error is one for people.
    pub async fn send(&self, mut request: Request<Body>) -> Result<Response<Receiving>, String> {
        let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
        let path =
            PathAndQuery::try_from(format!("{}{path}", self.path)).map_err(|error| error.to_string())?;
        *request.uri_mut() = Uri::from(path);
        let host = HeaderValue::from_str(&self.authority).map_err(|error| error.to_string())?;
        let headers = request.headers_mut();
        headers.insert(header::HOST, host);
        if let Some(authorization) = &self.authorization {
            headers.insert(header::AUTHORIZATION, authorization.clone());
        }
        self.pool.send(&self.route, request.map(|body| body.map_err(Into::into).boxed_unsync())).await
    }
}
