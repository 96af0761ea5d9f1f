//! `/`: the list of paths.

use std::collections::BTreeSet;

use crate::schema::registry::Registry;
use crate::tree::{Value, json};

/// The paths that do not depend on what is registered.
const FIXED: &[&str] = &[
    "/api",
    "/apis",
    "/apis/",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/readyz",
    "/version",
];

pub fn document(registry: &Registry) -> Value {
    let mut paths: BTreeSet<String> = FIXED.iter().map(|&path| path.to_owned()).collect();
    for group in registry.groups() {
        if !group.name.is_empty() {
            paths.insert(format!("/apis/{}", group.name));
        }
        paths.extend(group.versions.iter().map(|version| format!("/{}", version.path())));
    }
    json!({"paths": paths})
}
