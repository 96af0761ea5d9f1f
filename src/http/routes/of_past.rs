//! Requests through the door to the past: the API as it was.

use std::time::Instant;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;

use super::document_of;
use crate::api::error::Error;
use crate::http::app::App;
use crate::http::ask;
use crate::http::documents;
use crate::http::documents::discovery::version;
use crate::http::documents::document::Document;
use crate::http::past::door::{AS_OF, Door};
use crate::http::past::{Past, Seen, look};
use crate::http::request::info::RequestInfo;
use crate::http::request::path::ApiPath;
use crate::http::{resource, response};

/// Answers a request that was let in through a door.
pub(super) async fn serve(app: &App, door: &Door, info: &RequestInfo, parts: &Parts, body: Body) -> Response {
    let began = Instant::now();
    let response = match look(app, door, info, parts).await {
        Seen::Answered(response) => response,
        Seen::State(past, header) => {
            let mut response = match &info.route {
                None if ask::Door::is_search(parts) => ask::search::serve(app, Some(&past), parts).await,
                Some(ApiPath::Resource(path)) => resource::serve_past(app, &past, path, parts, body).await,
                route => document(app, &past, route.as_ref(), parts)
                    .await
                    .unwrap_or_else(|error| response::failure(&error, parts)),
            };
            response.headers_mut().insert(AS_OF, header);
            response
        }
    };
    app.metrics.past_answered(info.verb(), response.status().as_u16(), began.elapsed());
    response
}

/// Discovery, OpenAPI and the version; everything else that is no resource is of the present.
async fn document(app: &App, past: &Past, path: Option<&ApiPath>, parts: &Parts) -> Result<Response, Error> {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Err(Error::MethodNotAllowed);
    }
    let text = parts.uri.path();
    if matches!(text, "/version" | "/version/") {
        let mut document = version::document();
        document["gitVersion"] = format!("{}+asof.{}", version::release(), past.when.compact()).into();
        return Ok(documents::plain(&Document::compact(&document)));
    }
    let is_openapi = text == "/openapi/v2" || text == "/openapi/v3" || text.starts_with("/openapi/v3/");
    if path.is_none() && !is_openapi && !matches!(text, "/" | "/index.html") {
        return Ok(response::plain_error(StatusCode::NOT_FOUND, "404 page not found"));
    }
    let publication = app.publications.of_past(&past.served).await?;
    document_of(app, &past.served, &publication, path, parts).await
}
