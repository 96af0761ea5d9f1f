//! `/`: the list of paths.

use std::collections::BTreeSet;

use crate::schema::registry::Registry;
use crate::tree::{Value, json};

/// The paths of documents that do not depend on what is registered.
const DOCUMENTS: &[&str] =
    &["/api", "/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/", "/statusz"];
/// The paths that `/statusz` tells whoever looks for a fault.
pub const DEBUGGING: &[&str] = &["/flagz", "/healthz", "/livez", "/metrics", "/readyz", "/version"];

pub fn document(registry: &Registry) -> Value {
    let mut paths: BTreeSet<String> =
        [DOCUMENTS, DEBUGGING].concat().into_iter().map(str::to_owned).collect();
    for group in registry.groups() {
        if !group.name.is_empty() {
            paths.insert(format!("/apis/{}", group.name));
        }
        paths.extend(group.versions.iter().map(|version| format!("/{}", version.path())));
    }
    json!({"paths": paths})
}
