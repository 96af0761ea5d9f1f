//! The answer of an extension server as the client gets it.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use super::target::Target;
use super::{Passed, Refusal, unreachable};
use crate::http::resource::forward::CORS;
use crate::http::resource::hops::without_hops;
use crate::http::resource::passing::passing;
use crate::http::resource::stream_end::StreamEnd;

impl Passed<'_> {
    /// Passes a request on, and the answer back.
    pub(super) async fn forward(&self, target: &Target<'_>, body: Body) -> Result<Response, Refusal> {
        let failed = |why: String| Refusal::Unreachable(unreachable(&why));
        let request = target.request(body).map_err(failed)?;
        let answer = target.route.pool.send(&target.route.to, request).await.map_err(failed)?;
        let (head, body) = answer.into_parts();
        let leads_on = head.headers.get(header::LOCATION).is_some_and(|to| !to.is_empty());
        if head.status.is_redirection() && leads_on && self.app.rejects_redirects {
            return Err(Refusal::Redirected);
        }
        let mut headers = without_hops(&head.headers);
        CORS.iter().for_each(|name| _ = headers.remove(name));
        name_host(&mut headers, target.authority());
        let body = match self.info.is_long_running() {
            true => passing(body, StreamEnd::of(&self.app.door, self.parts), ()),
            false => Body::new(body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// A redirect to a path is one to that path of the extension server (`proxy.Transport`).
fn name_host(headers: &mut HeaderMap, authority: &str) {
    let Some(to) = headers.get(header::LOCATION).and_then(|value| value.to_str().ok()) else { return };
    if to.starts_with('/')
        && !to.starts_with("//")
        && let Ok(value) = HeaderValue::from_str(&format!("https://{authority}{to}"))
    {
        headers.insert(header::LOCATION, value);
    }
}

/// The answer in place of a redirect.
pub(super) fn redirected() -> Response {
    let why = "the backend attempted to redirect this request, which is not permitted";
    let mut response = Response::new(Body::from(why));
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
}
