//! `etcd`: a stand-in for programs that start an etcd beside kube-apiserver, as kubeadm and test environments do. It
//! stores nothing: it answers health checks, and tells rowplane in kube-apiserver's place where state is to be kept
//! (`docs/spec/cluster.md`, 4.3).

mod command_line;
pub mod datastore;
mod listener;

use std::io::Write as _;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::task::JoinSet;

pub use self::command_line::{Asked, Config, parse};
use self::datastore::Place;
use super::config::Lifetime;
use super::error::Error;
use super::signals::Ends;

/// The version of etcd that this program claims to be.
const VERSION: &str = "3.6.0";
/// The answer to all that is neither health nor a version.
const REFUSAL: &str = "this is rowplane's stand-in for etcd";
/// gRPC's status UNIMPLEMENTED.
const UNIMPLEMENTED: &str = "12";

/// Answers requests until a signal arrives.
pub async fn serve(config: Config) -> Result<(), Error> {
    let mut ends = Ends::catch(Lifetime::UntilSignal).map_err(Error::Signals)?;
    let tls = config.tls.as_ref().map(listener::tls).transpose()?;
    let mut bound = Vec::new();
    for (url, routes) in config.clients.iter().map(|url| (url, Routes::All)).chain(config.metrics()) {
        let tls = (url.scheme_str() == Some("https")).then(|| tls.clone()).flatten();
        bound.push((listener::bind(url).await?, tls, routes));
    }
    let place = Place::of_etcd(&config);
    // Whoever starts this in etcd's place has to know it. A standard error that is closed is no reason to end.
    let _ = writeln!(std::io::stderr(), "etcd: {REFUSAL}, and stores nothing; {place}");
    let mut serving = JoinSet::new();
    for (listener, tls, routes) in bound {
        serving.spawn(listener::accept(listener, tls, routes.router(&place)));
    }
    // Running requests need not finish.
    ends.next().await;
    Ok(())
}

/// The paths that are answered at an address.
#[derive(Clone, Copy)]
enum Routes {
    Health,
    All,
}

impl Routes {
    fn router(self, place: &Place) -> Router {
        let health = || get(async || json(r#"{"health":"true","reason":""}"#.to_owned()));
        let router = Router::new()
            .route("/health", health())
            .route("/livez", health())
            .route("/readyz", health())
            .fallback(refuse);
        match self {
            Routes::Health => router,
            Routes::All => {
                let version = format!(
                    r#"{{"etcdserver":"{VERSION}","etcdcluster":"{VERSION}","storage":"{VERSION}","rowplane":"{}"}}"#,
                    env!("CARGO_PKG_VERSION")
                );
                let place = place.to_json();
                router
                    .route("/version", get(async move || json(version)))
                    .route(datastore::PATH, get(async move || json(place)))
            }
        }
    }
}

/// A call by gRPC gets gRPC's status.
async fn refuse(headers: HeaderMap) -> Response {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|of_type| of_type.starts_with("application/grpc")) {
        let status = [("grpc-status", UNIMPLEMENTED), ("grpc-message", REFUSAL)];
        return ([(header::CONTENT_TYPE, "application/grpc")], status, ()).into_response();
    }
    (StatusCode::NOT_FOUND, format!("{REFUSAL}\n")).into_response()
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

    async fn answer(routes: Routes, path: &str, content_type: &str) -> Response {
        let Ok(Asked::Serve(config)) = parse(["--unsafe-no-fsync".to_owned()]) else { panic!("it is fine") };
        let request = Request::get(path).header(header::CONTENT_TYPE, content_type).body(Body::empty());
        routes.router(&Place::of_etcd(&config)).oneshot(request.unwrap()).await.unwrap()
    }

    #[tokio::test]
    async fn health_is_answered_and_nothing_stored() {
        let cases = [
            ("/health", 200, 200),
            ("/livez", 200, 200),
            ("/readyz", 200, 200),
            ("/version", 200, 404),
            ("/rowplane/v1/datastore", 200, 404),
            ("/v3/kv/range", 404, 404),
        ];
        for (path, to_clients, of_metrics) in cases {
            let all = answer(Routes::All, path, "application/json").await.status();
            let health = answer(Routes::Health, path, "application/json").await.status();
            assert_eq!((all.as_u16(), health.as_u16()), (to_clients, of_metrics), "{path}");
        }
    }

    #[tokio::test]
    async fn calls_by_grpc_are_unimplemented() {
        let answer = answer(Routes::All, "/etcdserverpb.Cluster/MemberList", "application/grpc").await;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((answer.status().as_u16(), header("content-type")), (200, Some("application/grpc")));
        assert_eq!((header("grpc-status"), header("grpc-message")), (Some("12"), Some(REFUSAL)));
    }
}
