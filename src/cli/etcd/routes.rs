//! Paths of etcd's API beside gRPC: health, versions, metrics, and what rowplane in kube-apiserver's place asks.

mod metrics;

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path as UrlPath, RawQuery};
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use hyper::body::Incoming;
use rowplane_etcd::wire::{Peer, Server, is_call};
use tower::ServiceExt as _;
use url::form_urlencoded;

use super::datastore::{self, Place};

/// The paths that are answered at an address.
#[derive(Clone)]
pub struct Routes {
    router: Router,
    /// `None` where only health and metrics are answered.
    server: Option<Server>,
}

impl Routes {
    /// Health and metrics.
    pub fn of_metrics(server: &Server) -> Self {
        Self { router: health(server), server: None }
    }

    /// Everything.
    pub fn of_clients(server: &Server, place: Option<&Place>) -> Self {
        let version = versions(server);
        let mut router = health(server).route("/version", get(async move || json(version)));
        if let Some(place) = place.map(Place::to_json) {
            router = router.route(datastore::PATH, get(async move || json(place)));
        }
        Self { router, server: Some(server.clone()) }
    }

    pub async fn answer(
        self,
        client: Peer,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Infallible> {
        match &self.server {
            Some(server) if is_call(&request) => Ok(server.answer(request, client).await.map(Body::new)),
            _ => self.router.oneshot(request).await,
        }
    }
}

/// Health and metrics.
fn health(server: &Server) -> Router {
    let (of_health, of_metrics) = (server.clone(), server.clone());
    let router = Router::new()
        .fallback(async || (StatusCode::NOT_FOUND, "404 page not found\n"))
        .route("/health", get(async move || told(of_health.is_healthy().await)))
        .route("/metrics", get(async move || metrics::text(&of_metrics).await));
    CHECKS.iter().fold(router, |router, (root, checks)| {
        let (all, one) = (server.clone(), server.clone());
        router.route(root, get(async move |query| check(&all, checks, query).await)).route(
            &format!("{root}/{{check}}"),
            get(async move |UrlPath(name): UrlPath<String>, query| {
                let known = checks.iter().position(|known| *known == name);
                match known.and_then(|at| checks.get(at..=at)) {
                    Some(one_check) => check(&one, one_check, query).await,
                    None => (StatusCode::NOT_FOUND, "404 page not found\n").into_response(),
                }
            }),
        )
    })
}

/// The checks of each path. All of them ask whether the store answers, which is what can fail.
const CHECKS: [(&str, &[&str]); 2] = [
    ("/livez", &["serializable_read"]),
    ("/readyz", &["data_corruption", "linearizable_read", "non_learner", "serializable_read"]),
];

async fn check(server: &Server, checks: &[&str], RawQuery(query): RawQuery) -> Response<Body> {
    let query: Vec<_> = form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect();
    let excluded = |check: &str| query.iter().any(|(name, value)| name == "exclude" && value == check);
    let checks: Vec<_> = checks.iter().filter(|check| !excluded(check)).collect();
    let failure = if checks.is_empty() { None } else { server.is_healthy().await.err() };
    let line = |check: &&&str| match &failure {
        None => format!("[+]{check} ok\n"),
        Some(why) => format!("[-]{check} failed: {why}\n"),
    };
    let lines: String = checks.iter().map(line).collect();
    match failure {
        Some(_) => (StatusCode::SERVICE_UNAVAILABLE, lines).into_response(),
        None if query.iter().any(|(name, _)| name == "verbose") => format!("{lines}ok\n").into_response(),
        None => "ok\n".into_response(),
    }
}

/// The answer of `/health`.
fn told(health: Result<(), String>) -> Response<Body> {
    match health {
        Ok(()) => json(r#"{"health":"true","reason":""}"#.to_owned()),
        Err(why) => {
            let told = serde_json::json!({"health": "false", "reason": why}).to_string();
            (StatusCode::SERVICE_UNAVAILABLE, json(told)).into_response()
        }
    }
}

fn versions(server: &Server) -> String {
    let version = &server.options().version;
    let minor = version.rsplit_once('.').map_or(version.as_str(), |(minor, _)| minor);
    format!(
        r#"{{"etcdserver":"{version}","etcdcluster":"{minor}.0","storage":"{minor}.0","rowplane":"{}"}}"#,
        env!("CARGO_PKG_VERSION")
    )
}

fn json(text: String) -> Response<Body> {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}
