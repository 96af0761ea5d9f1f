//! Encodes objects of kinds without a Go type as JSON, with members in the order in which upstream prints them.

use crate::json::text::{write_json, write_string};
use crate::tree::{Map, Value};

/// Members of `metadata` that come before `resourceVersion`, in upstream's declaration order.
pub(super) const BEFORE_VERSION: [&str; 5] = ["name", "generateName", "namespace", "selfLink", "uid"];
/// Members of `metadata` that come after `resourceVersion`.
const AFTER_VERSION: [&str; 8] = [
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
];

/// Encodes an object: kind, apiVersion and metadata come first. The metadata are in upstream's order, without
/// resourceVersion; managedFields are last.
pub(super) fn encode(object: &Map) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    out.push(b'{');
    let mut writer = MemberWriter { out: &mut out, first: true };
    for name in ["kind", "apiVersion"] {
        writer.copy(object, name);
    }
    let empty = Map::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    writer.name("metadata");
    encode_metadata(writer.out, metadata);
    for (name, value) in object {
        if !matches!(name.as_str(), "kind" | "apiVersion" | "metadata") {
            writer.member(name, value);
        }
    }
    out.push(b'}');
    out.shrink_to_fit();
    out
}

fn encode_metadata(out: &mut Vec<u8>, metadata: &Map) {
    out.push(b'{');
    let mut writer = MemberWriter { out, first: true };
    for name in BEFORE_VERSION.iter().chain(&AFTER_VERSION) {
        writer.copy(metadata, name);
    }
    for (name, value) in metadata {
        let placed = BEFORE_VERSION.contains(&name.as_str()) || AFTER_VERSION.contains(&name.as_str());
        if !placed && name != "resourceVersion" {
            writer.member(name, value);
        }
    }
    out.push(b'}');
}

struct MemberWriter<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

impl MemberWriter<'_> {
    fn copy(&mut self, from: &Map, name: &str) {
        if let Some(value) = from.get(name) {
            self.member(name, value);
        }
    }

    fn member(&mut self, name: &str, value: &Value) {
        self.name(name);
        write_json(self.out, value);
    }

    fn name(&mut self, name: &str) {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        write_string(self.out, name);
        self.out.push(b':');
    }
}
