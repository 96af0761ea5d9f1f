//! A request that a proxy passes on, and its answer (upstream's `UpgradeAwareHandler` and `proxy.Transport`).

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context as Polling, Poll};

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Version};
use axum::response::Response;
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};

use super::Context;
use super::hops::{forwarded_for, without_hops};
use super::page::{Page, Rewrite, encoding_of_page};
use super::passing::passing;
use crate::api::error::Error;
use crate::api::subresource::connect::Location;
use crate::http::request::raw_query;
use crate::http::response::plain_error;
use crate::http::router::Below;
use crate::metrics::LongRunning;
use crate::relay::dial::dial;
use crate::relay::exchange::exchange;
use crate::webhook::words;

/// The headers by which this server alone may allow something to pages of other origins.
pub const CORS: [HeaderName; 4] = [
    header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
    header::ACCESS_CONTROL_ALLOW_HEADERS,
    header::ACCESS_CONTROL_ALLOW_METHODS,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
];
pub const FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");

impl Context<'_> {
    pub(super) async fn forward(
        &self,
        location: &Location,
        body: Body,
        active: LongRunning,
    ) -> Result<Response, Error> {
        if location.path.is_empty() && matches!(self.parts.method, Method::GET | Method::HEAD) {
            return self.redirect_to_root();
        }
        let unreachable = |why: String| Error::Unavailable {
            message: format!("error trying to reach service: {why}"),
            retry_after: 0,
        };
        let request = self.forwarded(location, body).map_err(unreachable)?;
        let answer = async { exchange(dial(&location.address).await?, request).await };
        let answer = answer.await.map_err(unreachable)?;
        let mut response = Response::new(Body::empty());
        *response.status_mut() = answer.status();
        *response.headers_mut() = without_hops(answer.headers());
        let headers = response.headers_mut();
        CORS.iter().for_each(|name| _ = headers.remove(name));
        self.rewrite_location(location, headers);
        let body = match begun(answer.into_body()).await {
            Ok(body) => body,
            Err(why) => return Ok(plain_error(StatusCode::BAD_GATEWAY, &why)),
        };
        // A redirect's page is read by nobody, and an answer to HEAD has none.
        let encoding = if body.is_end_stream() || headers.contains_key(header::LOCATION) {
            None
        } else {
            encoding_of_page(headers)
        };
        let body = match encoding {
            Some(encoding) => {
                headers.remove(header::CONTENT_LENGTH);
                passing(Page::new(body, encoding, self.rewrite_links(location)), self.revocation(), active)
            }
            None => passing(body, self.revocation(), active),
        };
        Ok(response.map(|_| body))
    }

    /// Pages at the root of what is behind a proxy refer to what is beside them, which only works below a slash. Several
    /// slashes at the beginning would make a host of the first segment.
    fn redirect_to_root(&self) -> Result<Response, Error> {
        let uri = &self.parts.uri;
        let query = raw_query(self.parts).map(|query| format!("?{query}")).unwrap_or_default();
        let path = uri.path().trim_start_matches('/');
        let to = HeaderValue::from_str(&format!("{}/{path}/{query}", self.taken_off()));
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        response
            .headers_mut()
            .insert(header::LOCATION, to.map_err(|error| Error::bad_request(error.to_string()))?);
        Ok(response)
    }

    fn forwarded(&self, location: &Location, body: Body) -> Result<Request<Body>, String> {
        let parts = self.parts;
        let mut request = Request::new(body);
        *request.method_mut() = parts.method.clone();
        *request.uri_mut() = location.target().parse().map_err(|error| format!("{error}"))?;
        *request.version_mut() = Version::HTTP_11;
        let headers = request.headers_mut();
        *headers = without_hops(&parts.headers);
        headers.remove(header::CONTENT_LENGTH);
        if let Some(host) = self.host() {
            headers.insert(header::HOST, host);
        }
        forwarded_for(parts, headers);
        let uri = format!("{}{}", self.prefix(), location.path);
        headers.insert(FORWARDED_URI, HeaderValue::from_str(&uri).map_err(|error| error.to_string())?);
        Ok(request)
    }

    /// The host that the client has asked for, which HTTP/2 has no header for.
    fn host(&self) -> Option<HeaderValue> {
        let parts = self.parts;
        let authority = || HeaderValue::from_str(parts.uri.authority()?.as_str()).ok();
        parts.headers.get(header::HOST).cloned().or_else(authority)
    }

    /// The path that tells the cluster from others behind the listener; empty if none does.
    fn taken_off(&self) -> &str {
        self.parts.extensions.get::<Below>().map_or("", |Below(path)| path)
    }

    /// The path of the proxy itself, as clients have to ask for it.
    fn prefix(&self) -> String {
        let segments = if self.path.namespace.is_some() { 7 } else { 5 };
        let path = self.parts.uri.path().trim_start_matches('/');
        let below = path.split('/').take(segments).flat_map(|segment| ["/", segment]);
        [self.taken_off()].into_iter().chain(below).collect()
    }

    /// Links to somewhere behind the proxy lead through the proxy. A link is compared as it stands in the page: references to
    /// characters are not looked through.
    fn rewrite_links(&self, location: &Location) -> Rewrite {
        let host = self.host();
        let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
        let (prefix, backend) = (escaped(&self.prefix()), location.address.authority());
        Box::new(move |link| rewritten(link, &prefix, &backend, &host))
    }

    /// A redirect to somewhere behind the proxy leads through the proxy.
    fn rewrite_location(&self, location: &Location, headers: &mut HeaderMap) {
        let Some(to) = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) else { return };
        let host = self.host();
        let host = host.as_ref().and_then(|host| host.to_str().ok()).unwrap_or_default();
        let to = rewritten(to, &self.prefix(), &location.address.authority(), host);
        if let Ok(value) = HeaderValue::from_str(&to) {
            headers.insert(header::LOCATION, value);
        }
    }
}

/// How much of a body is looked at before its answer goes on, in bytes.
const LOOKED_AT: usize = 16 << 10;

/// A body with what had come of it together with its head.
struct Begun<B> {
    first: VecDeque<Frame<Bytes>>,
    body: B,
}

/// Looks at what has come of a body, so that an answer whose body cannot be read is told in place of a connection that breaks.
/// Nothing waits for more.
async fn begun<B>(mut body: B) -> Result<Begun<B>, String>
where
    B: http_body::Body<Data = Bytes, Error = hyper::Error> + Unpin,
{
    let (mut first, mut length) = (VecDeque::new(), 0);
    let looked = poll_fn(|context| {
        while length < LOOKED_AT && !body.is_end_stream() {
            match Pin::new(&mut body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    length += frame.data_ref().map_or(0, Bytes::len);
                    first.push_back(frame);
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    });
    match looked.await {
        Ok(()) => Ok(Begun { first, body }),
        Err(error) => Err(format!("error trying to reach service: {}", words::broken(&error))),
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for Begun<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Polling<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.first.pop_front() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => Pin::new(&mut self.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first: usize = self.first.iter().filter_map(Frame::data_ref).map(Bytes::len).sum();
        let first = first as u64;
        let rest = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower() + first);
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper + first);
        }
        hint
    }
}

/// Text that is put into an attribute of HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&#34;"),
            '\'' => escaped.push_str("&#39;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// A URL as it leads through the proxy at `prefix`, if it leads to `backend` or to the `host` that the client asked.
pub(super) fn rewritten(url: &str, prefix: &str, backend: &str, host: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) if !scheme.contains(['/', '?', '#']) => (Some(scheme), Some(rest)),
        _ => (None, url.strip_prefix("//")),
    };
    let (authority, path) = match rest {
        Some(rest) => rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len())),
        None => ("", url),
    };
    let is_different = !authority.is_empty() && authority != backend && authority != host;
    if is_different || !path.starts_with('/') {
        return url.to_owned();
    }
    // Where the client finds this server, a full URL stays one.
    let front = match (authority == host && !host.is_empty(), scheme) {
        (true, Some(scheme)) => format!("{scheme}://{authority}"),
        (true, None) => format!("//{authority}"),
        (false, _) => String::new(),
    };
    let path = if path.starts_with(prefix) { path.to_owned() } else { format!("{prefix}{path}") };
    format!("{front}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_through_the_proxy() {
        let prefix = "/api/v1/nodes/n/proxy";
        for (given, want) in [
            ("/x?y=1#z", "/api/v1/nodes/n/proxy/x?y=1#z"),
            ("x", "x"),
            ("?a=/b", "?a=/b"),
            ("http://10.0.0.1:80/x/", "/api/v1/nodes/n/proxy/x/"),
            ("//10.0.0.1:80/x", "/api/v1/nodes/n/proxy/x"),
            ("https://host:6443/x", "https://host:6443/api/v1/nodes/n/proxy/x"),
            ("http://other/x", "http://other/x"),
            ("http://10.0.0.1:80", "http://10.0.0.1:80"),
            ("/api/v1/nodes/n/proxy/x", "/api/v1/nodes/n/proxy/x"),
        ] {
            assert_eq!(rewritten(given, prefix, "10.0.0.1:80", "host:6443"), want);
        }
    }
}
