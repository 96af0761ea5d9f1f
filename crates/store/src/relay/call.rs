//! Requests that this server makes itself to extension servers: checks, documents, what is left in a namespace. Whose request
//! it is, headers tell.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::time::timeout;

use super::pool::{Outgoing, Pool, Receiving};
use crate::egress;
use crate::user::User;

const REMOTE_USER: HeaderName = HeaderName::from_static("x-remote-user");
const REMOTE_UID: HeaderName = HeaderName::from_static("x-remote-uid");
const REMOTE_GROUP: HeaderName = HeaderName::from_static("x-remote-group");
const REMOTE_EXTRA: &str = "x-remote-extra-";

const LATE: &str = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";

/// A request of this server's own.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub method: Method,
    /// With the query.
    pub path: &'a str,
    pub user: &'a User,
    pub accept: &'a str,
    /// The tag of the document that is known already.
    pub known: Option<&'a str>,
    pub content: Option<Content>,
    /// For the whole answer.
    pub time: Duration,
    /// Bytes of the answer that are read.
    pub limit: usize,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct Content {
    /// The media type.
    pub kind: &'static str,
    pub bytes: Bytes,
}

impl<'a> Call<'a> {
    /// A GET of JSON.
    pub fn get(path: &'a str, user: &'a User, time: Duration, limit: usize) -> Self {
        Self {
            method: Method::GET,
            path,
            user,
            accept: "application/json",
            known: None,
            content: None,
            time,
            limit,
        }
    }
}

/// Bytes that stand for themselves in a segment of a path.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// The segment of a path for an object's name, escaped; `None` if no object can have that name (apimachinery's
/// `IsValidPathSegmentName`).
pub fn segment(name: &str) -> Option<String> {
    let is_name = !["", ".", ".."].contains(&name) && !name.contains(['/', '%']);
    is_name.then(|| utf8_percent_encode(name, PLAIN).to_string())
}

/// An answer that was read to its end.
#[derive(Clone, Debug)]
pub struct Answered {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answered {
    /// A header as text; empty if there is none.
    pub fn header(&self, name: &HeaderName) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The connections to an extension server, and where it is.
pub struct Route {
    pub pool: Arc<Pool>,
    /// At least one address.
    pub to: egress::Route,
}

impl Route {
    /// The URL of a path there, as errors tell it.
    pub fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.to.addresses.first().map_or("", String::as_str))
    }

    /// Makes a request, and reads the answer.
    pub async fn call(&self, call: &Call<'_>) -> Result<Answered, String> {
        let failed = |why: String| format!("Get {:?}: {why}", self.url(call.path));
        match timeout(call.time, self.exchange(call)).await {
            Ok(answer) => answer.map_err(failed),
            Err(_) => Err(failed(LATE.to_owned())),
        }
    }

    /// The status of the answer, of which nothing else is read.
    pub async fn status(&self, call: &Call<'_>) -> Result<u16, String> {
        let failed = |why: String| format!("Get {:?}: {why}", self.url(call.path));
        match timeout(call.time, self.send(call)).await {
            Ok(answer) => answer.map(|answer| answer.status().as_u16()).map_err(failed),
            Err(_) => Err(failed(LATE.to_owned())),
        }
    }

    async fn exchange(&self, call: &Call<'_>) -> Result<Answered, String> {
        let (head, body) = self.send(call).await?.into_parts();
        let body = Limited::new(body, call.limit).collect().await.map_err(|error| error.to_string())?;
        Ok(Answered { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes() })
    }

    async fn send(&self, call: &Call<'_>) -> Result<Response<Receiving>, String> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(call.path)
            .header(header::HOST, self.to.addresses.first().map_or("", String::as_str))
            .header(header::ACCEPT, call.accept)
            .header(header::USER_AGENT, concat!("rowplane/", env!("CARGO_PKG_VERSION")));
        if let Some(known) = call.known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let bytes = match &call.content {
            Some(content) => {
                request = request.header(header::CONTENT_TYPE, content.kind);
                content.bytes.clone()
            }
            None => Bytes::new(),
        };
        let body: Outgoing = Full::new(bytes).map_err(|never| match never {}).boxed_unsync();
        let mut request = request.body(body).map_err(|error| error.to_string())?;
        show_user(request.headers_mut(), call.user)?;
        self.pool.send(&self.to, request).await
    }
}

/// Sets the headers by which an extension server knows whose request it is (client-go's `SetAuthProxyHeaders`). Fails if a
/// name cannot stand in a header.
pub fn show_user(headers: &mut HeaderMap, user: &User) -> Result<(), String> {
    let all: Vec<HeaderName> =
        headers.keys().filter(|name| name.as_str().starts_with("x-remote-")).cloned().collect();
    for name in all {
        let is_users = [REMOTE_USER, REMOTE_UID, REMOTE_GROUP].contains(&name);
        if is_users || name.as_str().starts_with(REMOTE_EXTRA) {
            headers.remove(name);
        }
    }
    let value = |text: &str| {
        HeaderValue::from_bytes(text.as_bytes())
            .map_err(|_| "net/http: invalid header field value".to_owned())
    };
    headers.insert(REMOTE_USER, value(&user.name)?);
    if !user.uid.is_empty() {
        headers.insert(REMOTE_UID, value(&user.uid)?);
    }
    for group in &user.groups {
        headers.append(REMOTE_GROUP, value(group)?);
    }
    for (key, values) in &user.extra {
        let name = format!("{REMOTE_EXTRA}{}", escaped(key));
        let name = name.parse::<HeaderName>().map_err(|error| error.to_string())?;
        for each in values {
            headers.append(name.clone(), value(each)?);
        }
    }
    Ok(())
}

/// A key as a part of a header's name: bytes that may not stand there, and `%`, as `%XX`.
fn escaped(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    for byte in key.bytes() {
        match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => out.push(byte as char),
            b'!' | b'#' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|'
            | b'~' => {
                out.push(byte as char);
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_mean_nothing_but_themselves() {
        for (name, want) in
            [("system:node.1", "system:node.1"), ("..a", "..a"), ("a?b#c", "a%3Fb%23c"), ("é", "%C3%A9")]
        {
            assert_eq!(segment(name).as_deref(), Some(want));
        }
        assert!(["", ".", "..", "a/b", "%2e"].iter().all(|name| segment(name).is_none()));
    }

    #[test]
    fn a_user_is_shown_in_headers_and_nobody_else() {
        let mut headers = HeaderMap::new();
        for name in ["x-remote-user", "x-remote-extra-scopes", "x-remote-group", "x-remote-other"] {
            headers.insert(name.parse::<HeaderName>().expect("a name"), HeaderValue::from_static("evil"));
        }
        let extra = [("example.org/Foo%".to_owned(), vec!["1".to_owned(), "2".to_owned()])].into();
        let user =
            User { name: "alice".into(), uid: "u".into(), groups: vec!["a".into(), "b".into()], extra };
        show_user(&mut headers, &user).expect("shown");
        let all =
            |name: &str| headers.get_all(name).iter().map(|v| v.to_str().expect("text")).collect::<Vec<_>>();
        assert_eq!(all("x-remote-user"), ["alice"]);
        assert_eq!(all("x-remote-uid"), ["u"]);
        assert_eq!(all("x-remote-group"), ["a", "b"]);
        assert_eq!(all("x-remote-extra-example.org%2ffoo%25"), ["1", "2"]);
        assert_eq!(all("x-remote-extra-scopes"), [""; 0]);
        assert_eq!(all("x-remote-other"), ["evil"]);
        let user = User { name: "a\nb".into(), ..User::default() };
        assert!(show_user(&mut headers, &user).is_err());
    }
}
