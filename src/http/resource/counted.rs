//! The words by which requests for resources are counted.

use axum::http::request::Parts;

use super::action::Action;
use crate::api::options::query::Query;
use crate::http::app::App;
use crate::http::request::audit_record;
use crate::http::request::path::ResourcePath;
use crate::metrics::{RequestLabels, Scope};
use crate::schema::resource::ResourceDefinition;

/// Counts a request for a deprecated version, and has its audit event say so.
pub(super) fn note_deprecation(
    app: &App,
    definition: &ResourceDefinition,
    path: &ResourcePath,
    parts: &Parts,
) {
    let subresource = path.subresource.as_deref().and_then(|name| definition.subresource(name));
    let subresource = subresource.map_or("", |subresource| &subresource.name);
    app.metrics.deprecated_api_requested(&definition.gvr(), subresource);
    if let Some(record) = audit_record(parts) {
        record.annotate("k8s.io/deprecated", "true");
    }
}

/// The labels of a request in upstream's metrics.
pub(super) fn labels(
    action: Action,
    parts: &Parts,
    path: &ResourcePath,
    definition: &ResourceDefinition,
    query: &Query,
) -> RequestLabels {
    let scope = match (&path.name, &path.namespace) {
        _ if action == Action::Create => Scope::Resource,
        (Some(_), _) => Scope::Resource,
        (None, Some(_)) => Scope::Namespace,
        (None, None) => Scope::Cluster,
    };
    let dry_run = match query.get("dryRun") {
        None => "",
        Some(_) if query.all("dryRun").all(|value| value == "All") => "All",
        Some(_) => "invalid",
    };
    let subresource = path.subresource.as_deref().and_then(|name| definition.subresource(name));
    RequestLabels {
        verb: action.metric(&parts.headers),
        dry_run,
        resource: definition.gvr(),
        subresource: subresource.map(|sub| sub.name.clone()).unwrap_or_default(),
        scope,
    }
}
