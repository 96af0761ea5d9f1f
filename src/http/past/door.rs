//! The door to the past: the prefix `/asof/<when>` of a path, or the header `Rowplane-As-Of`.
//!
//! The prefix is taken off before the server asks who may do what, so that verb, resource and path are those of the API.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Uri;
use axum::http::request::Parts;

use super::history::{CHANGES, RANGE};
pub use super::when::AS_OF;
use super::when::When;
use crate::http::request::header_text;
use crate::http::request::path::decode;
use crate::http::router::without;

const PREFIX: &str = "/asof/";
const HISTORY: &str = "/history/";

/// The time that a request asks for, in its extensions. Requests of the present have none.
#[derive(Clone)]
pub struct Door(Arc<Asked>);

struct Asked {
    view: View,
    /// The URL with the prefix.
    uri: Uri,
}

/// The view of the past that a request asks for.
pub enum View {
    /// The state at a time, or why the request names none.
    State(Result<When, String>),
    /// The changes of an object, or of many.
    History,
}

impl Door {
    /// The door of a request.
    pub fn of(parts: &Parts) -> Option<&Self> {
        parts.extensions.get()
    }

    /// Takes the door off a request's URL, and notes it in the extensions.
    pub fn open(request: &mut Request) {
        let path = request.uri().path();
        if path == CHANGES || path.starts_with(HISTORY) {
            return Self::open_history(request);
        }
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
        request.extensions_mut().insert(Self(Arc::new(Asked { view: View::State(when), uri })));
    }

    fn open_history(request: &mut Request) {
        let uri = request.uri().clone();
        let is_of_an_object = !matches!(uri.path(), CHANGES | RANGE);
        if let Some(rest) = without(&uri, CHANGES.len()).filter(|_| is_of_an_object) {
            *request.uri_mut() = rest;
        }
        request.extensions_mut().insert(Self(Arc::new(Asked { view: View::History, uri })));
    }

    pub fn view(&self) -> &View {
        &self.0.view
    }

    /// Whether the answer has only what the user may see anyway: the server asks for each kind who may list it.
    pub fn is_filtered(&self) -> bool {
        matches!((self.view(), self.uri().path()), (View::History, CHANGES | RANGE))
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
