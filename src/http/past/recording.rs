//! A server over a recording: it shows the state at its end where no other time is asked for.

use axum::extract::Request;
use axum::http::HeaderValue;

use super::when::AS_OF;
use crate::revision::Revision;

/// A part of a cluster's history that is served from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The end of the recording.
    pub revision: Revision,
    /// The file as its reader calls it.
    pub file: String,
}

/// The paths that have a past.
const OF_THE_API: [&str; 6] = ["/api", "/apis", "/ask", "/openapi", "/version", "/watch"];

impl Recording {
    /// Has a request that names no time see the end of the recording.
    pub fn freeze(&self, request: &mut Request) {
        let path = request.uri().path();
        let is_below = |prefix: &str| {
            path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if OF_THE_API.into_iter().any(is_below)
            && !request.headers().contains_key(AS_OF)
            && let Ok(when) = HeaderValue::try_from(format!("rv-{}", self.revision))
        {
            request.headers_mut().insert(AS_OF, when);
        }
    }
}
