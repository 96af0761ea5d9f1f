//! `etcd`: a stand-in for programs that start an etcd beside kube-apiserver, as test environments do. It answers health
//! checks on the given addresses, and stores nothing (`docs/spec/cluster.md`, 4.3).

use std::net::SocketAddr;

use axum::Router;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::config::Lifetime;
use super::error::Error;
use super::signals::Ends;

/// The version of etcd that this program claims to be.
const VERSION: &str = "3.6.0";
/// The default address.
const LISTEN: &str = "http://localhost:2379";
const HELP: &str = "rowplane's stand-in for etcd: it answers health checks and keeps nothing.

Usage:
  etcd [flags]

Any flag of etcd's is accepted. These count:
  --listen-client-urls 'http://localhost:2379'
    Where health checks are answered.

These do not, and test environments look for them here:
  --unsafe-no-fsync 'false'
";

/// The action that a command line requests.
#[derive(Debug, PartialEq, Eq)]
pub enum Asked {
    Serve(Vec<Uri>),
    Print(String),
}

/// Parses `--x=y`, `--x y` and `-x y`. All flags but one are ignored.
pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Asked, Error> {
    let mut urls = LISTEN.to_owned();
    let mut arguments = arguments.into_iter().peekable();
    while let Some(argument) = arguments.next() {
        let flag = argument.trim_start_matches('-');
        let (name, inline) = flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        match name {
            "help" | "h" => return Ok(Asked::Print(HELP.to_owned())),
            "version" => return Ok(Asked::Print(format!("etcd Version: {VERSION}\n"))),
            "listen-client-urls" => {
                urls = inline.map(str::to_owned).or_else(|| arguments.next()).unwrap_or_default();
            }
            _ => {}
        }
    }
    let parse = |url: &str| match url.trim().parse::<Uri>() {
        Ok(url) if url.scheme_str() == Some("http") && url.host().is_some() => Ok(url),
        _ => Err(Error::Refused(format!("--listen-client-urls: {url:?} is no URL with http"))),
    };
    Ok(Asked::Serve(urls.split(',').map(parse).collect::<Result<_, _>>()?))
}

/// Answers requests until a signal arrives.
pub async fn serve(urls: Vec<Uri>) -> Result<(), Error> {
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    let mut serving = JoinSet::new();
    for url in urls {
        let listener = bind(&url).await?;
        serving.spawn(async move { axum::serve(listener, router()).await });
    }
    // Running requests need not finish.
    ends.next().await;
    Ok(())
}

async fn bind(url: &Uri) -> Result<TcpListener, Error> {
    let address = (url.host().unwrap_or_default(), url.port_u16().unwrap_or(2379));
    let failed = |error| Error::Refused(format!("cannot listen on {url}: {error}"));
    let mut last = None;
    for address in tokio::net::lookup_host(address).await.map_err(failed)? {
        let address: SocketAddr = address;
        match TcpListener::bind(address).await {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    Err(failed(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into())))
}

fn router() -> Router {
    let health = || get(async || json(r#"{"health":"true","reason":""}"#.to_owned()));
    let version = format!(
        r#"{{"etcdserver":"{VERSION}","etcdcluster":"{VERSION}","storage":"{VERSION}","rowplane":"{}"}}"#,
        env!("CARGO_PKG_VERSION")
    );
    Router::new()
        .route("/health", health())
        .route("/livez", health())
        .route("/readyz", health())
        .route("/version", get(async move || json(version)))
        .fallback(async || (StatusCode::NOT_FOUND, "this is rowplane's stand-in for etcd\n"))
}

fn json(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::http::Request;
    use tower::ServiceExt as _;

    use super::*;

    fn parse_all(arguments: &[&str]) -> Result<Asked, Error> {
        parse(arguments.iter().map(|argument| (*argument).to_owned()))
    }

    #[test]
    fn one_flag_counts_however_it_is_written() {
        let url: Uri = "http://127.0.0.1:7".parse().unwrap();
        for arguments in [
            &["--data-dir=d", "--listen-client-urls=http://127.0.0.1:7", "--unsafe-no-fsync=true"][..],
            &["-data-dir", "d", "--listen-client-urls", "http://127.0.0.1:7"],
        ] {
            assert_eq!(parse_all(arguments).unwrap(), Asked::Serve(vec![url.clone()]));
        }
        let Asked::Print(help) = parse_all(&["--help"]).unwrap() else { panic!("help") };
        // envtest searches the help for this flag.
        assert!(help.lines().any(|line| line.trim_start().starts_with("--unsafe-no-fsync")));
        assert!(parse_all(&["--listen-client-urls=unix://x"]).is_err());
    }

    #[tokio::test]
    async fn health_is_answered_and_nothing_else() {
        for (path, status) in [("/health", 200), ("/readyz", 200), ("/version", 200), ("/v3/kv/range", 404)] {
            let request = Request::get(path).body(Body::empty()).unwrap();
            assert_eq!(router().oneshot(request).await.unwrap().status(), status, "{path}");
        }
    }
}
