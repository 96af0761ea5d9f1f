//! Endpoints' `deprecatedTopology`, which cannot be written in `v1` (`dropTopologyOnV1` of
//! `pkg/registry/discovery/endpointslice/strategy.go`).

use std::collections::HashSet;

use crate::fields;
use crate::kinds::prelude::*;

#[derive(Debug)]
pub struct SliceHooks;

impl Hooks for SliceHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        drop_new(object, None);
    }

    /// Upstream drops the field only after it was counted as a change of the generation.
    fn finish_update(&self, new: &mut ObjectMap, old: &ObjectMap) {
        drop_new(new, Some(old));
    }
}

const FIELD: &str = "deprecatedTopology";

const HOST: &str = "kubernetes.io/hostname";

/// Drops the field unless the endpoints are unchanged. If they have changed, a node named in the field moves to
/// `nodeName`.
fn drop_new(new: &mut ObjectMap, old: Option<&ObjectMap>) {
    let stored = old.map(|old| fields::items(old, &["endpoints"])).unwrap_or_default();
    if old.is_some() && fields::items(new, &["endpoints"]) == stored {
        return;
    }
    let known: HashSet<&str> = stored.iter().filter_map(node).collect();
    let endpoints = new.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten();
    for endpoint in endpoints {
        let moved = node(endpoint).filter(|node| known.contains(node)).map(str::to_owned);
        let Some(endpoint) = endpoint.as_object_mut() else { continue };
        endpoint.shift_remove(FIELD);
        if let Some(node) = moved.filter(|_| !endpoint.contains_key("nodeName")) {
            endpoint.insert("nodeName", node.into());
        }
    }
}

fn node(endpoint: &Value) -> Option<&str> {
    endpoint.get(FIELD)?.get(HOST)?.as_str()
}
