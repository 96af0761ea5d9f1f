//! `/`: the list of paths.

use std::collections::BTreeSet;

use crate::api::followers::api_services::ApiServices;
use crate::schema::registry::Registry;
use crate::tree::{Value, json};

/// The paths of documents that do not depend on what is registered.
const DOCUMENTS: &[&str] =
    &["/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/statusz"];
/// The paths that `/statusz` tells whoever looks for a fault.
pub const DEBUGGING: &[&str] = &["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/version"];

pub fn document(registry: &Registry, services: &ApiServices) -> Value {
    let mut paths: BTreeSet<String> =
        [DOCUMENTS, DEBUGGING].concat().into_iter().map(str::to_owned).collect();
    for group in registry.groups() {
        if !group.name.is_empty() {
            paths.insert(format!("/apis/{}", group.name));
        }
        paths.extend(group.versions.iter().map(|version| format!("/{}", version.path())));
    }
    for service in services.all.values().filter(|service| !service.version.group().is_empty()) {
        let group = service.version.group();
        paths.extend([format!("/apis/{group}"), format!("/apis/{group}/{}", service.version.version())]);
    }
    json!({"paths": paths})
}
