//! Bearer tokens in a request: in its `Authorization` header, or in a subprotocol of a WebSocket.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, header};

use super::Notes;

/// The subprotocol that carries a token follows this.
const SUBPROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";
const EXTRA_SPACE: &str =
    "the provided Authorization header contains extra space before the bearer token, and is ignored";

/// The token of the first `Authorization: Bearer <token>`. Other schemes are ignored, as if the header were absent.
pub fn in_header(headers: &HeaderMap, notes: &mut Notes) -> Result<Option<String>, &'static str> {
    let Some(header) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let header = String::from_utf8_lossy(header.as_bytes());
    let mut parts = header.trim().splitn(3, ' ');
    let (Some(scheme), Some(token)) = (parts.next(), parts.next()) else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Ok(None);
    }
    if token.is_empty() {
        if parts.next().is_some() {
            notes.warn(EXTRA_SPACE);
        }
        return Ok(None);
    }
    Ok(Some(token.to_owned()))
}

/// The token in the subprotocols of a WebSocket, beside which the client has to offer another one.
pub fn in_subprotocol(headers: &HeaderMap, _: &mut Notes) -> Result<Option<String>, &'static str> {
    if !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) || !is_websocket(headers) {
        return Ok(None);
    }
    let (mut token, mut others) = (None, false);
    for protocol in subprotocols(headers).iter().flat_map(|line| line.split(',')).map(str::trim) {
        let Some(encoded) = protocol.strip_prefix(SUBPROTOCOL) else {
            others = true;
            continue;
        };
        if token.is_some() {
            return Err("multiple base64.bearer.authorization tokens specified");
        }
        let decoded = URL_SAFE_NO_PAD.decode(encoded);
        let decoded = decoded.map_err(|_| "invalid base64.bearer.authorization token encoding")?;
        let text = String::from_utf8(decoded).map_err(|_| "invalid base64.bearer.authorization token")?;
        token = Some(text);
    }
    match token.filter(|token| !token.is_empty()) {
        Some(_) if !others => Err("missing additional subprotocol"),
        token => Ok(token),
    }
}

/// Takes an accepted token out of the headers, so that nobody behind the door can use it.
pub fn withdraw(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    if !headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL) {
        return;
    }
    let lines = subprotocols(headers);
    let all: Vec<&str> = lines.iter().flat_map(|line| line.split(',')).map(str::trim).collect();
    if !all.iter().any(|protocol| protocol.starts_with(SUBPROTOCOL)) {
        return;
    }
    let others: Vec<&str> = all.into_iter().filter(|protocol| !protocol.starts_with(SUBPROTOCOL)).collect();
    if let Ok(value) = HeaderValue::from_str(&others.join(",")) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, value);
    }
}

fn subprotocols(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    lines.map(|line| String::from_utf8_lossy(line.as_bytes()).into_owned()).collect()
}

/// Upstream's `IsWebSocketRequest`.
pub fn is_websocket(headers: &HeaderMap) -> bool {
    let text =
        |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase());
    let upgrade = text(header::UPGRADE).is_some_and(|upgrade| upgrade == "websocket");
    upgrade && text(header::CONNECTION).is_some_and(|connection: String| connection.contains("upgrade"))
}
