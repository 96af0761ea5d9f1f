//! The request as the extension server reads it.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{self, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Request, Uri, Version};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Bytes;
use url::form_urlencoded;

use crate::http::request::raw_query;
use crate::http::resource::forward::FORWARDED_URI;
use crate::http::resource::hops::{forwarded_for, without_hops};
use crate::http::resource::upgrade::upgrade_request_to;
use crate::relay::call::{Route, show_user};
use crate::relay::pool::Outgoing;
use crate::user::User;

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// A request, and the way to its extension server.
pub(super) struct Target<'a> {
    pub route: Route,
    pub parts: &'a Parts,
    /// The user whose request it is.
    pub user: Arc<User>,
}

impl Target<'_> {
    /// The host and port that the request names.
    pub fn authority(&self) -> &str {
        self.route.to.addresses.first().map_or("", String::as_str)
    }

    /// The request with its body.
    pub fn request(&self, body: Body) -> Result<Request<Outgoing>, String> {
        let mut request = Request::new(body.map_err(Into::into).boxed_unsync());
        *request.method_mut() = self.parts.method.clone();
        *request.uri_mut() = self.uri()?;
        *request.version_mut() = Version::HTTP_11;
        let mut headers = without_hops(&self.parts.headers);
        // The body knows its length, if the client has told it.
        headers.remove(header::CONTENT_LENGTH);
        self.name(&mut headers)?;
        forwarded_for(self.parts, &mut headers);
        let value = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        headers.insert(FORWARDED_URI, value(self.parts.uri.path())?);
        headers.insert(FORWARDED_HOST, value(self.authority())?);
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// The request for an upgrade.
    pub fn upgrade(&self) -> Result<Request<Empty<Bytes>>, String> {
        let mut request = upgrade_request_to(self.parts, &self.path_and_query())?;
        self.name(request.headers_mut())?;
        Ok(request)
    }

    /// Names the server and the user.
    fn name(&self, headers: &mut HeaderMap) -> Result<(), String> {
        let host = HeaderValue::from_str(self.authority()).map_err(|error| error.to_string())?;
        headers.insert(header::HOST, host);
        show_user(headers, &self.user)
    }

    fn uri(&self) -> Result<Uri, String> {
        self.path_and_query().parse().map_err(|error| format!("{error}"))
    }

    /// The path as the client has written it, and the query as Go's `Values.Encode` writes it: sorted by keys.
    fn path_and_query(&self) -> String {
        let path = self.parts.uri.path();
        match raw_query(self.parts) {
            None | Some("") => path.to_owned(),
            Some(query) => format!("{path}?{}", sorted(query)),
        }
    }
}

fn sorted(query: &str) -> String {
    let mut pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    pairs.sort_by(|one, other| one.0.cmp(&other.0));
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

#[cfg(test)]
mod tests {
    use super::sorted;

    #[test]
    fn parameters_are_sorted_and_those_of_one_name_keep_their_order() {
        assert_eq!(sorted("b=2&a=x%20y&b=1&watch"), "a=x+y&b=2&b=1&watch=");
    }
}
