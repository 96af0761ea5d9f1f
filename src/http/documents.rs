//! Discovery, OpenAPI and version: documents that are encoded once, with their caching headers.

pub(in crate::http) mod conditional;
pub mod discovery;
pub mod document;
pub mod openapi;
pub mod publications;

use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;

use self::conditional::{Validators, Verdict};
use self::discovery::{
    AGGREGATED_CACHE_CONTROL, AGGREGATED_PARAMETERS, AGGREGATED_VARY, Discovery, Encodings,
};
use self::document::Document;
use self::openapi::{Form, Kept, Names, OpenApi};
use super::request::{accept, pretty};
use super::response;
use super::response::negotiate::{self, DISCOVERY, Negotiated, PLAIN, ROUTE_TYPES, Transform};
use super::server::unsent::SharedBody;
use crate::api::error::Error;
use crate::api::options::query::Query;
use crate::codec::media_type::MediaType;

/// How long clients may cache a document whose URL contains its hash.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A JSON document without caching headers.
pub fn plain(document: &Document) -> Response {
    response::json(StatusCode::OK, document.body.clone())
}

/// A legacy discovery document, in the encoding that the client accepts.
pub fn legacy(document: &Encodings, request: &Parts) -> Result<Response, Error> {
    let negotiated = negotiate::negotiate(accept(&request.headers), PLAIN)?;
    Ok(in_encoding(document, &negotiated, request))
}

/// `/api/v1` and `/apis/<group>/<version>`, for which upstream's router also checks the Accept header.
pub fn resources(document: &Encodings, request: &Parts) -> Result<Response, Error> {
    negotiate::check_route(accept(&request.headers), ROUTE_TYPES)?;
    legacy(document, request)
}

fn in_encoding(document: &Encodings, negotiated: &Negotiated, request: &Parts) -> Response {
    let body = match negotiated.media {
        MediaType::Protobuf => document.protobuf(),
        MediaType::Json if negotiated.pretty || pretty(request) => document.json().indented_body(),
        MediaType::Json => document.json().body.clone(),
        MediaType::Yaml => document.yaml(),
    };
    response::encoded(StatusCode::OK, negotiated.media, body)
}

/// `/api` and `/apis`: the aggregated document if the client accepts it, otherwise the legacy document.
pub fn discovery(discovery: &Discovery, request: &Parts) -> Result<Response, Error> {
    let headers = &request.headers;
    let negotiated = negotiate::negotiate(accept(headers), DISCOVERY)?;
    if negotiated.transform != Some(Transform::ApiGroupDiscoveryList) {
        return Ok(in_encoding(&discovery.legacy, &negotiated, request));
    }
    let document = &discovery.aggregated;
    // One for all encodings: they say the same, and caches look at `Vary`.
    let etag = document.json().etag();
    let unchanged =
        headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes());
    let mut response = if unchanged {
        empty(StatusCode::NOT_MODIFIED)
    } else {
        let mut response = in_encoding(document, &negotiated, request);
        let content_type = format!("{}{AGGREGATED_PARAMETERS}", negotiated.media.as_str());
        set(&mut response, header::CONTENT_TYPE, &content_type);
        response
    };
    set(&mut response, header::VARY, AGGREGATED_VARY);
    set(&mut response, header::CACHE_CONTROL, AGGREGATED_CACHE_CONTROL);
    set(&mut response, header::ETAG, &etag);
    Ok(response)
}

/// `/openapi/v2`.
pub fn openapi_v2(openapi: &OpenApi, headers: &HeaderMap) -> Response {
    let mut response = match openapi_form(&openapi::V2_NAMES, headers) {
        Some(form) => openapi_v2_in(openapi, form, headers),
        None => empty(StatusCode::NOT_ACCEPTABLE),
    };
    set(&mut response, header::VARY, openapi::V2_VARY);
    response
}

fn openapi_v2_in(openapi: &OpenApi, form: Form, headers: &HeaderMap) -> Response {
    // The document is stored compressed, so sending it without unpacking is cheaper.
    let encoding = if takes_gzip(headers) { Encoding::Gzip } else { Encoding::Identity };
    let content_type = match form {
        Form::Json => openapi::CONTENT_TYPE,
        Form::Protobuf => openapi::V2_PROTOBUF_CONTENT_TYPE,
    };
    kept(openapi.v2(form), content_type, headers, encoding)
}

/// `/openapi/v3` (with an empty `path`) and `/openapi/v3/<path>`.
pub fn openapi_v3(openapi: &OpenApi, path: &str, query: &Query, headers: &HeaderMap) -> Response {
    if path.is_empty() {
        let (index, modified) = openapi.v3_index();
        let (etag, content_type) = (&index.etag(), openapi::V3_INDEX_CONTENT_TYPE);
        let served = Served { etag, modified, content_type };
        return conditional(served, headers, || index.body.clone());
    }
    let form = openapi_form(&openapi::V3_NAMES, headers);
    let Some(document) = openapi.v3(path, form.unwrap_or(Form::Json)) else {
        return empty(StatusCode::NOT_FOUND);
    };
    if negotiate::names_nothing(liked(headers)) {
        // Upstream's handler answers with an empty 200 if the Accept header contains no media range.
        return empty(StatusCode::OK);
    }
    let mut response = match form {
        Some(form) => {
            let until = openapi.clock.now() + YEAR;
            openapi_v3_in((path, query), form, document, headers, until)
        }
        None => empty(StatusCode::NOT_ACCEPTABLE),
    };
    set(&mut response, header::VARY, openapi::VARY);
    response
}

/// `until` is how long a document may be kept whose hash the URL names.
fn openapi_v3_in(
    (path, query): (&str, &Query),
    form: Form,
    document: Kept<'_>,
    headers: &HeaderMap,
    until: SystemTime,
) -> Response {
    let hash = query.text("hash");
    if !hash.is_empty() && hash != document.hash {
        let mut response = empty(StatusCode::MOVED_PERMANENTLY);
        set(&mut response, header::LOCATION, &OpenApi::v3_url(path, document.hash));
        return response;
    }
    let content_type = match form {
        Form::Json => openapi::CONTENT_TYPE,
        Form::Protobuf => openapi::V3_PROTOBUF_CONTENT_TYPE,
    };
    let mut response = kept(document, content_type, headers, Encoding::Identity);
    if !hash.is_empty() {
        set(&mut response, header::CACHE_CONTROL, openapi::HASHED_CACHE_CONTROL);
        set(&mut response, header::EXPIRES, &httpdate::fmt_http_date(until));
    }
    response
}

/// The form of a document that the client prefers.
fn openapi_form(names: &Names, headers: &HeaderMap) -> Option<Form> {
    negotiate::preferred(liked(headers), names)
}

/// The `Accept` header of a request for an OpenAPI document; without one, every form is accepted.
fn liked(headers: &HeaderMap) -> &str {
    accept(headers).filter(|accept| !accept.is_empty()).unwrap_or("*/*")
}

/// The content encoding of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
}

/// Whether `Accept-Encoding` contains gzip with a weight other than 0.
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

fn kept(kept: Kept<'_>, content_type: &str, headers: &HeaderMap, encoding: Encoding) -> Response {
    let etag = &format!("\"{}\"", kept.hash);
    let served = Served { etag, modified: kept.modified, content_type };
    let mut response = match encoding {
        Encoding::Identity => conditional(served, headers, || kept.body()),
        Encoding::Gzip => conditional(served, headers, || kept.gzip()),
    };
    if encoding == Encoding::Gzip && response.status() == StatusCode::OK {
        set(&mut response, header::CONTENT_ENCODING, "gzip");
    }
    response.extensions_mut().insert(SharedBody);
    response
}

/// The headers of a document.
#[derive(Clone, Copy)]
struct Served<'a> {
    etag: &'a str,
    modified: SystemTime,
    content_type: &'a str,
}

/// The document, or the answer that the request's conditions demand.
fn conditional(
    Served { etag, modified, content_type }: Served<'_>,
    headers: &HeaderMap,
    body: impl FnOnce() -> Bytes,
) -> Response {
    let mut response = match conditional::evaluate(headers, Validators { etag, modified }) {
        Verdict::NotModified => empty(StatusCode::NOT_MODIFIED),
        Verdict::PreconditionFailed => empty(StatusCode::PRECONDITION_FAILED),
        Verdict::Send => typed(StatusCode::OK, content_type, body()),
    };
    set(&mut response, header::ETAG, etag);
    if response.status() != StatusCode::NOT_MODIFIED {
        set(&mut response, header::LAST_MODIFIED, &httpdate::fmt_http_date(modified));
    }
    response
}

fn typed(status: StatusCode, content_type: &str, body: Bytes) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, content_type);
    response
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Sets a header. A malformed value would be a mistake in this program; the header is then left out.
fn set(response: &mut Response, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}
