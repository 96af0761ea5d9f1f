//! The part of a request's trace that its verb takes (the spans of apiserver's `pkg/endpoints/handlers`).

use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Version, header};

use super::Context;
use super::action::Action;
use crate::http::request::header_text;
use crate::http::request::path::ResourcePath;
use crate::http::server::ConnectionInfo;
use crate::traces::Span;

/// The span of a verb; `None` unless the request is sampled, and for streams.
pub(super) fn verb(action: Action, parts: &Parts, path: &ResourcePath) -> Option<Span> {
    let request = parts.extensions.get::<Arc<Span>>()?;
    let name = match action {
        Action::Get => "Get",
        Action::List => "List",
        Action::Create => "Create",
        Action::Update => "Update",
        Action::Patch => "Patch",
        Action::Delete | Action::DeleteCollection => "Delete",
        Action::Watch | Action::Log | Action::Connect(_) => return None,
    };
    let text = |name| header_text(&parts.headers, name).unwrap_or_default();
    let connection = parts.extensions.get::<Arc<ConnectionInfo>>();
    let scope = match (&path.name, &path.namespace) {
        (Some(_), _) => "resource",
        (None, Some(_)) => "namespace",
        (None, None) => "cluster",
    };
    let protocol = match parts.version {
        Version::HTTP_2 => "HTTP/2.0",
        Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    };
    Some(request.child(
        name,
        &[
            ("accept", text(header::ACCEPT).into()),
            ("audit-id", request.text("audit-id").as_str().into()),
            ("client", connection.map_or("", |connection| connection.client.as_str()).into()),
            ("api-group", path.resource.group().as_str().into()),
            ("api-version", path.resource.version().into()),
            ("name", path.name.as_deref().unwrap_or_default().into()),
            ("subresource", path.subresource.as_deref().unwrap_or_default().into()),
            ("namespace", path.namespace.as_deref().unwrap_or_default().into()),
            ("protocol", protocol.into()),
            ("resource", path.resource.plural.as_str().into()),
            ("scope", scope.into()),
            ("url", parts.uri.path().into()),
            ("user-agent", text(header::USER_AGENT).into()),
            ("verb", action.as_verb().as_str().into()),
        ],
    ))
}

impl Context<'_> {
    /// Notes an event of the verb's span.
    pub(super) fn event(&self, name: &'static str) {
        if let Some(span) = &self.span {
            span.event(name);
        }
    }
}
