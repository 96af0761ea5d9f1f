//! Reads the head of a request: the user, the parameters, and the wanted form of the answer.

pub(in crate::http) mod body;
pub(in crate::http) mod info;
pub(in crate::http) mod path;
use std::borrow::Cow;
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use uuid::Uuid;

use super::response::negotiate::wants_pretty;
use super::server::{LONG, LongQuery};
use crate::api::options::query::Query;
use crate::audit::Record;
use crate::random::Random;
use crate::user::User;

pub const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

pub fn new_audit_id(random: &Random) -> Option<HeaderValue> {
    HeaderValue::from_str(random.uuid().hyphenated().encode_lower(&mut Uuid::encode_buffer())).ok()
}

/// The user of the request, set before any handler runs.
pub fn user(parts: &Parts) -> Arc<User> {
    parts.extensions.get::<Arc<User>>().cloned().unwrap_or_default()
}

/// The audit record of the request, if one was begun.
pub fn audit_record(parts: &Parts) -> Option<&Arc<Record>> {
    parts.extensions.get::<Arc<Record>>()
}

/// The parsed query string.
pub fn query(parts: &Parts) -> Query {
    Query::parse(raw_query(parts).unwrap_or_default())
}

/// The query string, which may be longer than that of a URI can be.
pub fn raw_query(parts: &Parts) -> Option<&str> {
    match long_query(parts) {
        Some(query) => Some(query),
        None => parts.uri.query(),
    }
}

/// The query string, if it is too long for the URI.
pub fn long_query(parts: &Parts) -> Option<&Arc<str>> {
    // The extensions are looked at only where the URI says so.
    let long = parts.uri.query().filter(|query| *query == LONG);
    long.and_then(|_| parts.extensions.get::<LongQuery>()).map(|LongQuery(query)| query)
}

/// The path and the query.
pub fn request_uri(parts: &Parts) -> Cow<'_, str> {
    match long_query(parts) {
        Some(query) => format!("{}?{query}", parts.uri.path()).into(),
        None => parts.uri.path_and_query().map_or(parts.uri.path(), |uri| uri.as_str()).into(),
    }
}

/// Whether the answer should be indented.
pub fn pretty(parts: &Parts) -> bool {
    let agent = header_text(&parts.headers, header::USER_AGENT);
    // Most requests have no such parameter, so the query is searched before it is parsed.
    let asked = raw_query(parts).is_some_and(|query| query.contains("pretty"));
    let parameter = asked.then(|| query(parts).text("pretty").to_owned());
    wants_pretty(parameter.as_deref(), agent)
}

/// A header as text.
pub fn header_text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| std::str::from_utf8(value.as_bytes()).ok())
}

/// The first `Accept` header; others are ignored.
pub fn accept(headers: &HeaderMap) -> Option<&str> {
    /// The text in place of a header that is not UTF-8, which matches no media type.
    const UNREADABLE: &str = "?";
    let accept = headers.get(header::ACCEPT)?;
    Some(std::str::from_utf8(accept.as_bytes()).unwrap_or(UNREADABLE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::media_type::MediaType;
    use crate::http::response::negotiate::{self, PLAIN};

    #[test]
    fn a_header_that_cannot_be_read_accepts_nothing() {
        let negotiate = |accept: &[u8]| {
            let accept = HeaderValue::from_bytes(accept).expect("a header value");
            let headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
            negotiate::negotiate(super::accept(&headers), PLAIN).map(|negotiated| negotiated.media)
        };
        assert_eq!(negotiate(b""), Ok(MediaType::Json));
        assert_eq!(negotiate("text/é,application/yaml".as_bytes()), Ok(MediaType::Yaml));
        assert!(negotiate(b"\xff").is_err());
    }
}
