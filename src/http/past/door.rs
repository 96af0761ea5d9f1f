//! The door to the past: the prefix `/asof/<when>` of a path, or the header `Rowplane-As-Of`.
//!
//! The prefix is taken off before the server asks who may do what, so that verb, resource and path are those of the API.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderName, Uri};

use super::when::When;
use crate::api::error::Error;
use crate::http::request::header_text;
use crate::http::request::path::decode;
use crate::http::router::without;

/// The header of a request that names a time, and of every answer from the past.
pub const AS_OF: HeaderName = HeaderName::from_static("rowplane-as-of");
const PREFIX: &str = "/asof/";

/// The time that a request asks for, in its extensions. Requests of the present have none.
#[derive(Clone)]
pub struct Door(Arc<Asked>);

struct Asked {
    when: Result<When, String>,
    /// The URL with the prefix.
    uri: Uri,
}

impl Door {
    /// The door of a request.
    pub fn of(parts: &Parts) -> Option<&Self> {
        parts.extensions.get()
    }

    /// Takes the door off a request's URL, and notes it in the extensions.
    pub fn open(request: &mut Request) {
        let path = request.uri().path();
        let header = request.headers().contains_key(AS_OF);
        let segment = path.strip_prefix(PREFIX).map(|rest| rest.split('/').next().unwrap_or_default());
        if !header && segment.is_none_or(str::is_empty) {
            return;
        }
        let uri = request.uri().clone();
        let by_path = segment.map(read);
        let by_header = header.then(|| read(header_text(request.headers(), AS_OF).unwrap_or("?").trim()));
        let when = match (by_path, by_header) {
            (Some(Ok(path)), Some(Ok(header))) if path != header => {
                Err(format!("the path asks for {path}, and the header {AS_OF} for {header}"))
            }
            (Some(Err(why)), _) | (_, Some(Err(why))) => Err(why),
            (Some(Ok(when)), _) | (None, Some(Ok(when))) => Ok(when),
            (None, None) => return,
        };
        if let Some(segment) = segment
            && let Some(rest) = without(&uri, PREFIX.len() + segment.len())
        {
            *request.uri_mut() = rest;
        }
        request.extensions_mut().insert(Self(Arc::new(Asked { when, uri })));
    }

    /// The time; 400 if the client named none.
    pub fn when(&self) -> Result<When, Error> {
        self.0.when.clone().map_err(Error::BadRequest)
    }

    /// The URL as the client sent it.
    pub fn uri(&self) -> &Uri {
        &self.0.uri
    }
}

fn read(text: &str) -> Result<When, String> {
    let decoded = decode(text);
    When::parse(decoded.as_deref().unwrap_or(text)).map_err(|error| error.to_string())
}
