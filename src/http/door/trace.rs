//! The span of a request (apiserver's `pkg/endpoints/filters/traces.go`, and otelhttp's attributes).

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderValue, Version, header};

use super::Door;
use crate::auth::authorizer::Attributes;
use crate::http::request::header_text;
use crate::http::request::info::RequestInfo;
use crate::http::server::ConnectionInfo;
use crate::traces::Span;
use crate::user::{MASTERS, User};

/// Whoever watches the cluster, whose traces go on as those of masters do.
const MONITORING: &str = "system:monitoring";

impl Door {
    /// Begins the span of a request, if it is sampled; what follows finds it in the extensions.
    pub(super) fn trace(
        &self,
        parts: &mut Parts,
        info: &RequestInfo,
        user: Option<&Arc<User>>,
        audit_id: Option<&HeaderValue>,
    ) -> Option<Arc<Span>> {
        let (tracer, user) = (self.tracer.as_ref()?, user?);
        let is_trusted = user.is_in(MASTERS) || user.is_in(MONITORING);
        let method = parts.method.as_str();
        let name = || name(method, parts.uri.path(), &info.attributes(user));
        let span = tracer.request(&parts.headers, is_trusted, name)?;
        let connection = parts.extensions.get::<Arc<ConnectionInfo>>();
        let client = connection.map_or("", |connection| connection.client.as_str());
        let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
        let audit_id = audit_id.and_then(|id| id.to_str().ok()).unwrap_or_default();
        span.describe(&[
            ("http.request.method", method.into()),
            ("url.scheme", "https".into()),
            ("url.path", parts.uri.path().into()),
            ("http.target", target.into()),
            ("network.protocol.version", version(parts.version).into()),
            ("client.address", client.into()),
            (
                "user_agent.original",
                header_text(&parts.headers, header::USER_AGENT).unwrap_or_default().into(),
            ),
            ("audit-id", audit_id.into()),
        ]);
        let span = Arc::new(span);
        parts.extensions.insert(span.clone());
        Some(span)
    }
}

/// The method, and for a resource the route, without names.
fn name(method: &str, path: &str, attributes: &Attributes<'_>) -> String {
    let Attributes { group, version, resource, namespace, name, subresource, .. } = *attributes;
    if resource.is_empty() {
        return method.to_owned();
    }
    let prefix = path.split('/').nth(1).unwrap_or_default();
    let mut route = format!("{method} /{prefix}");
    let namespaced = if namespace.is_empty() { "" } else { "namespaces/{:namespace}" };
    let named = if name.is_empty() { "" } else { "{:name}" };
    for segment in [group, version, namespaced, resource, named, subresource] {
        if !segment.is_empty() {
            route.push('/');
            route.push_str(segment);
        }
    }
    route
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_2 => "2",
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
