//! Requests to what is not built in: definitions come and change at any time, on any server.

mod repeatable;

use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::response::Response;

use self::repeatable::Repeatable;
use super::{Outcome, serve_found, unknown};
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::http::app::App;
use crate::http::request::audit_record;
use crate::http::request::path::ResourcePath;
use crate::http::response;

/// How often a request is judged again whose definition has changed meanwhile.
const ATTEMPTS: usize = 5;

/// Answers a request from what is served now. What is refused, or is not there, may be so by a definition that has been
/// changed, on another server even: the request is judged again if that is so.
pub async fn serve(app: &App, path: &ResourcePath, parts: &Parts, body: Body) -> Response {
    let answer = serve_newest(app, path, parts, &Repeatable::new(body)).await;
    answer.unwrap_or_else(|error| response::failure(&error, parts))
}

async fn serve_newest(
    app: &App,
    path: &ResourcePath,
    parts: &Parts,
    body: &Repeatable,
) -> Result<Response, Error> {
    let mut served = first(app, path, parts).await?;
    for _ in 1..ATTEMPTS {
        let refused = match serve_from(app, &served, path, parts, body).await {
            Outcome::Answered(response) => return Ok(response),
            Outcome::Refused(response) => response,
        };
        let newest = app.api.newest_served().await?;
        if is_same(&served, &newest, path) {
            return Ok(refused);
        }
        if let Some(record) = audit_record(parts) {
            record.unanswered();
        }
        served = newest;
    }
    Ok(serve_from(app, &served, path, parts, body).await.response())
}

/// Answers a request from one generation.
async fn serve_from(
    app: &App,
    served: &Served,
    path: &ResourcePath,
    parts: &Parts,
    body: &Repeatable,
) -> Outcome {
    match served.find(&path.resource) {
        Some(resource) => serve_found(app, resource, path, (parts, None), body.body()).await,
        None => Outcome::Refused(unknown(served, path, parts)),
    }
}

/// Reads want to be told by the newest definition; writes are judged by the store. While the store is away, reads of an
/// older state are answered all the same, but nobody is told that there is no such resource.
async fn first(app: &App, path: &ResourcePath, parts: &Parts) -> Result<Arc<Served>, Error> {
    let served = app.api.catalog.served();
    let is_known = served.get(&path.resource).is_some();
    if is_known && !parts.method.is_safe() {
        return Ok(served);
    }
    match app.api.served_everywhere().await {
        Err(_) if is_known => Ok(served),
        newest => newest,
    }
}

/// Whether two generations serve a resource alike.
fn is_same(one: &Arc<Served>, other: &Arc<Served>, path: &ResourcePath) -> bool {
    match (one.get(&path.resource), other.get(&path.resource)) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}
