//! The door `/ask/`: lists and watches with selectors of any field, filters, order, exact counts and search, on the paths of
//! the API below it (docs/spec/time-and-sql.md, section 5). The parameters are those of `api::options::ask`; without the
//! door they mean nothing.

pub mod search;

use std::sync::Arc;

use axum::extract::Request;
use axum::http::Uri;
use axum::http::request::Parts;

use super::router::without;

const PREFIX: &str = "/ask";
/// The path of a search in all kinds.
const SEARCH: &str = "/ask/search";

/// The door by which a request came, in its extensions: its URL as it was before the door was taken off.
#[derive(Clone)]
pub struct Door(Arc<Uri>);

impl Door {
    /// The door of a request; `None` for the ordinary paths.
    pub fn of(parts: &Parts) -> Option<&Self> {
        parts.extensions.get()
    }

    /// Takes the door off a request's URL, and notes it in the extensions. That of the past is taken off before.
    pub fn open(request: &mut Request) {
        let uri = request.uri();
        let is_door = uri.path().strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('/'));
        if !is_door {
            return;
        }
        let uri = uri.clone();
        if uri.path() != SEARCH
            && let Some(rest) = without(&uri, PREFIX.len())
        {
            *request.uri_mut() = rest;
        }
        request.extensions_mut().insert(Self(Arc::new(uri)));
    }

    /// The URL with the door.
    pub fn uri(&self) -> &Uri {
        &self.0
    }

    /// Whether the request searches all kinds: the answer has only what the user may list anyway.
    pub fn is_search(parts: &Parts) -> bool {
        parts.uri.path() == SEARCH && Self::of(parts).is_some()
    }
}
