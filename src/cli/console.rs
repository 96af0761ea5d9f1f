//! `rowplane console`: a page for browsers at an address of this machine, whose requests go to the server of a
//! kubeconfig with the credentials of its user. It only reads.

mod upstream;

use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use clap::Args;
use data_encoding::HEXLOWER;
use rustls::crypto::aws_lc_rs;
use tokio::net::TcpListener;

use self::upstream::Upstream;
use super::config::Lifetime;
use super::error::Error;
use super::past::kubeconfig::Kubeconfig;
use super::signals::Ends;
use crate::http::console;
use crate::server::data_dir::Temporary;

/// The paths, below the server's URL, to which the page may post: questions that change nothing.
const QUESTIONS: [&str; 4] = [
    "/rowplane/sql",
    "/apis/authentication.k8s.io/v1/selfsubjectreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
];

/// The headers of a request that the server is sent; of others, such as cookies, it needs none.
const FORWARDED: [HeaderName; 6] = [
    header::ACCEPT,
    header::ACCEPT_ENCODING,
    header::CONTENT_TYPE,
    header::CONTENT_LENGTH,
    header::IF_NONE_MATCH,
    header::USER_AGENT,
];

/// Arguments of `rowplane console`.
#[derive(Clone, Debug, Args)]
pub struct ConsoleArgs {
    /// The kubeconfig [default: $KUBECONFIG, or else ~/.kube/config]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context to use [default: the current one]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Only prints the URL, and opens no browser
    #[arg(long)]
    no_open: bool,
}

/// Serves the page until a signal arrives.
pub async fn run(arguments: ConsoleArgs) -> Result<(), Error> {
    let kubeconfig = Kubeconfig::load(arguments.kubeconfig.as_deref(), arguments.context.as_deref());
    let upstream =
        kubeconfig.and_then(|kubeconfig| Upstream::of_kubeconfig(&kubeconfig)).map_err(Error::Usage)?;
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    let address = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), arguments.port);
    let failed = |error: io::Error| Error::Refused(format!("cannot listen on {address}: {error}"));
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let proxy = Proxy { address: listener.local_addr().map_err(failed)?, path: secret()?, upstream };
    let url = format!("http://{}{}/console/", proxy.address, proxy.path);
    writeln!(io::stdout().lock(), "{url}").map_err(Error::Output)?;
    let _opened = if arguments.no_open { None } else { Some(open(&url)?) };
    let routes = Router::new().fallback(answer).with_state(Arc::new(proxy));
    tokio::select! {
        served = axum::serve(listener, routes) => served.map_err(failed),
        _ = ends.next() => Ok(()),
    }
}

/// A path that nobody guesses.
fn secret() -> Result<String, Error> {
    let mut bytes = [0; 16];
    let drawn = aws_lc_rs::default_provider().secure_random.fill(&mut bytes);
    drawn.map_err(|_| Error::Refused("the system has no random numbers".to_owned()))?;
    Ok(format!("/{}", HEXLOWER.encode(&bytes)))
}

/// Shows the URL in the desktop's browser, if there is one, by a file that redirects to it and only this user can read:
/// arguments of programs are for everybody. The file is there until it is dropped.
fn open(url: &str) -> Result<Temporary, Error> {
    let directory = Temporary::create().map_err(Error::Server)?;
    let path = directory.path().join("console.html");
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">\n");
    std::fs::write(&path, page).map_err(|source| Error::Assets { path: path.clone(), source })?;
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    // Whoever has no desktop has the URL.
    drop(command.arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn());
    Ok(directory)
}

/// A server of the page at an address of this machine.
struct Proxy {
    address: SocketAddr,
    /// The first segment of all paths, with its slash. Who does not know it is told nothing.
    path: String,
    upstream: Upstream,
}

async fn answer(State(proxy): State<Arc<Proxy>>, request: Request) -> Response {
    match proxy.pass(request).await {
        Ok(response) => response,
        Err((status, why)) => (status, format!("{why}\n")).into_response(),
    }
}

impl Proxy {
    async fn pass(&self, request: Request) -> Result<Response, (StatusCode, String)> {
        let refuse = |status: StatusCode, why: &str| Err((status, why.to_owned()));
        if !self.is_own(request.headers()) {
            return refuse(StatusCode::FORBIDDEN, "this address is for the page of `rowplane console` alone");
        }
        let Some(uri) = self.without_secret(request.uri()) else {
            return refuse(StatusCode::FORBIDDEN, "use the URL that `rowplane console` has printed");
        };
        let (mut parts, body) = request.into_parts();
        parts.uri = uri;
        let mut request = Request::from_parts(parts, body);
        if let Some(response) = console::answer(&request) {
            return Ok(response);
        }
        let may_pass = match *request.method() {
            Method::GET | Method::HEAD => true,
            Method::POST => QUESTIONS.contains(&request.uri().path()),
            _ => false,
        };
        if !may_pass {
            return refuse(StatusCode::METHOD_NOT_ALLOWED, "the page only reads");
        }
        let headers = std::mem::take(request.headers_mut());
        let forwarded = headers.into_iter().filter_map(|(name, value)| Some((name?, value)));
        request.headers_mut().extend(forwarded.filter(|(name, _)| FORWARDED.contains(name)));
        let answered = self.upstream.send(request).await;
        let mut response = answered.map_err(|why| (StatusCode::BAD_GATEWAY, why))?;
        let headers = response.headers_mut();
        for hop in [header::CONNECTION, header::TRANSFER_ENCODING, header::STRICT_TRANSPORT_SECURITY] {
            headers.remove(hop);
        }
        // No answer of the API is a document of this origin.
        for (name, value) in [
            (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'; sandbox"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        Ok(response.map(Body::new))
    }

    /// Whether the request is for this address, and by no page but this proxy's own. Other pages could otherwise
    /// reach it by a name that resolves to this machine.
    fn is_own(&self, headers: &HeaderMap) -> bool {
        let port = self.address.port();
        let names = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
        let is_here = text(header::HOST).is_some_and(|host| names.iter().any(|name| name == host));
        let from = text(header::ORIGIN).map(|origin| origin.strip_prefix("http://").unwrap_or_default());
        is_here && from.is_none_or(|from| names.iter().any(|name| name == from))
    }

    /// The URI as the server knows it; `None` if it does not begin with the secret.
    fn without_secret(&self, uri: &Uri) -> Option<Uri> {
        let given = uri.path_and_query()?.as_str();
        let (secret, rest) = (self.path.as_bytes(), given.get(self.path.len()..)?);
        let is_equal = subtle::ConstantTimeEq::ct_eq(secret, given.as_bytes().get(..secret.len())?);
        let is_known = bool::from(is_equal) && rest.starts_with('/');
        let uri = is_known.then(|| PathAndQuery::try_from(rest).ok()).flatten()?;
        Some(Uri::from(uri))
    }
}

#[cfg(test)]
mod tests;
