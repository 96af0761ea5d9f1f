//! Discovery, OpenAPI and version: documents that are encoded once, with their caching headers.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::discovery::{AGGREGATED_CACHE_CONTROL, AGGREGATED_VARY, Discovery, Legacy};
use super::document::Document;
use super::negotiate::{self, DISCOVERY, DISCOVERY_CONTENT_TYPE, MediaType, PLAIN, Transform};
use super::openapi::{self, Kept, OpenApi};
use super::response;
use crate::api::error::Error;
use crate::api::options::query::Query;

/// How long clients may keep a document that is named by its hash.
const YEAR: jiff::SignedDuration = jiff::SignedDuration::from_hours(365 * 24);

/// A document as JSON.
pub fn plain(document: &Document) -> Response {
    response::json(StatusCode::OK, document.body.clone())
}

/// A legacy discovery document.
pub fn legacy(document: &Legacy, headers: &HeaderMap) -> Result<Response, Error> {
    let negotiated = negotiate::negotiate(accept(headers), PLAIN)?;
    Ok(in_encoding(document, negotiated.media))
}

fn in_encoding(document: &Legacy, media: MediaType) -> Response {
    let body = match media {
        MediaType::Protobuf => &document.protobuf,
        MediaType::Json => &document.json.body,
        MediaType::Yaml => &document.yaml,
    };
    response::encoded(StatusCode::OK, media, body.clone())
}

/// `/api` and `/apis`: aggregated where the client asks for it, else the legacy document.
pub fn discovery(discovery: &Discovery, headers: &HeaderMap) -> Result<Response, Error> {
    let negotiated = negotiate::negotiate(accept(headers), DISCOVERY)?;
    if negotiated.transform != Some(Transform::ApiGroupDiscoveryList) {
        return Ok(in_encoding(&discovery.legacy, negotiated.media));
    }
    let document = &discovery.aggregated;
    let etag = document.etag();
    let unchanged =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = if unchanged { not_modified() } else { plain(document) };
    set(&mut response, header::CONTENT_TYPE, DISCOVERY_CONTENT_TYPE);
    set(&mut response, header::VARY, AGGREGATED_VARY);
    set(&mut response, header::CACHE_CONTROL, AGGREGATED_CACHE_CONTROL);
    set(&mut response, header::ETAG, &etag);
    Ok(response)
}

/// `/openapi/v2`: JSON, or protobuf for who asks for nothing else.
pub fn openapi_v2(openapi: &OpenApi, headers: &HeaderMap) -> Response {
    let accept = accept(headers).unwrap_or("*/*");
    let wanted =
        accept.split(',').find_map(|range| match range.split(';').next().unwrap_or_default().trim() {
            "*/*" | "application/json" | "application/*" => Some(openapi::CONTENT_TYPE),
            openapi::V2_PROTOBUF_CONTENT_TYPE | openapi::V2_PROTOBUF_ALIAS => {
                Some(openapi::V2_PROTOBUF_CONTENT_TYPE)
            }
            _ => None,
        });
    let (kept, content_type) = match wanted {
        Some(openapi::CONTENT_TYPE) => (openapi.v2(), openapi::CONTENT_TYPE),
        Some(_) => (openapi.v2_protobuf(), openapi::V2_PROTOBUF_CONTENT_TYPE),
        None => return empty(StatusCode::NOT_ACCEPTABLE),
    };
    // Whatever is not taken as it is kept must be unpacked, so this is the cheaper answer.
    let encoding = if takes_gzip(headers) { Encoding::Gzip } else { Encoding::Identity };
    let mut response = conditional(kept, headers, encoding);
    set(&mut response, header::CONTENT_TYPE, content_type);
    set(&mut response, header::VARY, openapi::V2_VARY);
    response
}

/// `/openapi/v3` (empty `path`) and `/openapi/v3/<path>`.
pub fn openapi_v3(openapi: &OpenApi, path: &str, query: &Query, headers: &HeaderMap) -> Response {
    if path.is_empty() {
        return plain(openapi.v3_index());
    }
    let Some(document) = openapi.v3(path) else { return empty(StatusCode::NOT_FOUND) };
    let hash = query.text("hash");
    if !hash.is_empty() && hash != document.hash {
        let mut response = empty(StatusCode::MOVED_PERMANENTLY);
        set(&mut response, header::LOCATION, &OpenApi::v3_url(path, document.hash));
        return response;
    }
    let takes_json = |range: &str| {
        matches!(
            range.split(';').next().unwrap_or_default().trim(),
            "*/*" | "application/*" | "application/json"
        )
    };
    if !accept(headers).is_none_or(|accept| accept.split(',').any(takes_json)) {
        return empty(StatusCode::NOT_ACCEPTABLE);
    }
    let mut response = conditional(document, headers, Encoding::Identity);
    set(&mut response, header::CONTENT_TYPE, openapi::CONTENT_TYPE);
    set(&mut response, header::VARY, openapi::VARY);
    if !hash.is_empty() {
        set(&mut response, header::CACHE_CONTROL, openapi::HASHED_CACHE_CONTROL);
        let expires = (jiff::Timestamp::now() + YEAR).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        set(&mut response, header::EXPIRES, &expires);
    }
    response
}

/// How a body is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

/// Some element of `Accept-Encoding` is gzip, and not refused by its weight.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    accepted.unwrap_or_default().split(',').any(|element| {
        let mut parts = element.split(';').map(str::trim);
        let refused = |parameter: &str| {
            let weight = parameter.strip_prefix("q=").map(str::parse::<f32>);
            matches!(weight, Some(Ok(weight)) if weight <= 0.0)
        };
        parts.next() == Some("gzip") && !parts.any(refused)
    })
}

/// 304 for a client that has the document already.
fn conditional(kept: Kept<'_>, headers: &HeaderMap, encoding: Encoding) -> Response {
    let etag = format!("\"{}\"", kept.hash);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let unchanged = known.split(',').any(|tag| tag.trim().trim_start_matches("W/") == etag);
    let mut response = match encoding {
        _ if unchanged => not_modified(),
        Encoding::Identity => Response::new(kept.body().into()),
        Encoding::Gzip => {
            let mut response = Response::new(Body::from(kept.gzip()));
            set(&mut response, header::CONTENT_ENCODING, "gzip");
            response
        }
    };
    set(&mut response, header::ETAG, &etag);
    response
}

fn not_modified() -> Response {
    empty(StatusCode::NOT_MODIFIED)
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Values that are no header are our own mistake and leave the header out.
fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The first `Accept` line; only that one counts.
pub fn accept(headers: &HeaderMap) -> Option<&str> {
    headers.get(header::ACCEPT).and_then(|value| value.to_str().ok())
}
