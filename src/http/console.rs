//! `/console/`: the files of a page for browsers. They hold no data and are served to anybody; the page asks the API as
//! any other client does.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

/// The path of the page, without the slash at its end.
const PATH: &str = "/console";

/// The origins from which the page may load: its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// A file of the page.
struct Asset {
    /// The path below `/console/`.
    name: &'static str,
    media: &'static str,
    /// The entity tag: a hash of the content.
    tag: &'static str,
    plain: &'static [u8],
    /// The content, compressed by gzip.
    packed: &'static [u8],
}

/// All files, as `build/console.rs` has found them.
static ASSETS: &[Asset] = &include!(concat!(env!("OUT_DIR"), "/console.rs"));

/// Whether a server offers the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Console {
    /// Only if nobody but this host can reach the server.
    #[default]
    Auto,
    On,
    Off,
}

impl Console {
    /// Whether the page is offered by a server that listens on loopback addresses alone, or elsewhere.
    pub fn is_offered(self, is_loopback: bool) -> bool {
        match self {
            Self::Auto => is_loopback,
            Self::On => true,
            Self::Off => false,
        }
    }
}

/// The answer to a request for the page or one of its files; `None` for paths outside of it.
pub fn answer<B>(request: &Request<B>) -> Option<Response> {
    let name = request.uri().path().strip_prefix(PATH)?;
    let name = match name.strip_prefix('/') {
        Some("") => "index.html",
        Some(name) => name,
        None if name.is_empty() => return Some(moved()),
        None => return None,
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response());
    }
    let mut response = match ASSETS.iter().find(|asset| asset.name == name) {
        Some(asset) => asset.answer(request.headers()),
        None => (StatusCode::NOT_FOUND, "404 page not found\n").into_response(),
    };
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}

/// The redirection to the path with a slash. It is relative, because the client may know the server by another path.
fn moved() -> Response {
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "console/")]).into_response()
}

impl Asset {
    fn answer(&self, request: &HeaderMap) -> Response {
        let mut response = if names(request, header::IF_NONE_MATCH, self.tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else if names(request, header::ACCEPT_ENCODING, "gzip") {
            let mut response = Response::new(Body::from(self.packed));
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        } else {
            Response::new(Body::from(self.plain))
        };
        for (name, value) in [
            (header::CONTENT_TYPE, self.media),
            (header::ETAG, self.tag),
            (header::CACHE_CONTROL, "no-cache"),
            (header::VARY, "Accept-Encoding"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Whether a header's list contains this element.
fn names(headers: &HeaderMap, header: HeaderName, element: &str) -> bool {
    let values = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|named| named.trim() == element)
}

#[cfg(test)]
mod tests;
