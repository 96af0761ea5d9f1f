//! The small kinds of the core group (`pkg/apis/core/v1/defaults.go` and `conversion.go`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::set::{complete, if_zero, is_absent, part, structs, text};
use crate::fields::{self, ObjectMap};
use crate::tree::{Value, json};

/// `stringData` is moved into `data`.
pub(super) fn secret(secret: &mut ObjectMap) {
    if_zero(secret, "type", "Opaque");
    let Some(Value::Object(texts)) = secret.shift_remove("stringData") else { return };
    let data = fields::object_mut(secret, "data");
    for (name, text) in texts {
        let bytes = text.as_str().unwrap_or_default();
        data.insert(name, STANDARD.encode(bytes).into());
    }
    data.sort_keys();
}

pub(super) fn endpoints(endpoints: &mut ObjectMap) {
    for subset in structs(endpoints, "subsets") {
        structs(subset, "ports").for_each(|port| if_zero(port, "protocol", "TCP"));
    }
}

pub(super) fn namespace(namespace: &mut ObjectMap) {
    let name = fields::text(namespace, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let labels = fields::object_mut(fields::object_mut(namespace, "metadata"), "labels");
        labels.insert("kubernetes.io/metadata.name", name.into());
    }
}

pub(super) fn namespace_status(status: &mut ObjectMap) {
    if_zero(status, "phase", "Active");
}

/// `podCIDR` and the first entry of `podCIDRs` are kept equal.
pub(super) fn node(spec: &mut ObjectMap) {
    let first = fields::items(spec, &["podCIDRs"]).first().and_then(Value::as_str).map(str::to_owned);
    match (text(spec, "podCIDR"), first) {
        ("", Some(first)) if !first.is_empty() => {
            spec.insert("podCIDR", first.into());
        }
        ("", _) => {}
        (own, first) if first.as_deref() != Some(own) => {
            let own = json!([own]);
            spec.insert("podCIDRs", own);
        }
        _ => {}
    }
}

pub(super) fn node_status(status: &mut ObjectMap) {
    if is_absent(status, "allocatable")
        && let Some(capacity) = status.get("capacity").cloned()
    {
        status.insert("allocatable", capacity);
    }
}

pub(super) fn limit_range_item(item: &mut ObjectMap) {
    if text(item, "type") != "Container" {
        return;
    }
    for (into, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
        if let Some(from) = part(item, from).map(|from| from.clone()) {
            complete(fields::object_mut(item, into), &from);
        }
    }
}
