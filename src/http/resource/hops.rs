//! Headers of a request that is passed on: those that are about one connection stay there, and the client is named.

use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};

use crate::http::server::ConnectionInfo;

/// The headers that are about one connection.
const HOPS: [HeaderName; 9] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The headers without those that are about one connection.
pub fn without_hops(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    for name in named.flat_map(|names| names.split(',')) {
        if let Ok(name) = name.trim().parse::<HeaderName>() {
            kept.remove(name);
        }
    }
    HOPS.iter().for_each(|name| _ = kept.remove(name));
    kept
}

/// Names the client behind those that the request came through before.
pub fn forwarded_for(parts: &Parts, headers: &mut HeaderMap) {
    let Some(connection) = parts.extensions.get::<std::sync::Arc<ConnectionInfo>>() else { return };
    let before = parts.headers.get_all(FORWARDED_FOR).iter().filter_map(|value| value.to_str().ok());
    let all: Vec<&str> = before.chain([connection.client.as_str()]).collect();
    if let Ok(value) = HeaderValue::from_str(&all.join(", ")) {
        headers.insert(FORWARDED_FOR, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_stay_there() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "5"),
            ("te", "trailers"),
            ("accept", "*/*"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let kept = without_hops(&headers);
        assert_eq!(kept.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
