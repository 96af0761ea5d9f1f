//! `status`: who may set it, and what a write to `/status` may change besides.

use crate::fields;
use crate::fields::ObjectMap;
use crate::tree::{Map, Value, json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusRule {
    /// No subresource: part of the body like any other field.
    Open,
    /// Create sets it to this JSON text, updates keep the stored one.
    Reset(&'static str),
    /// Create drops it, updates keep the stored one: custom resources.
    Dropped,
    /// Create takes it, updates keep the stored one: nodes, which register with their status.
    Born,
}

impl StatusRule {
    pub fn create(self, object: &mut ObjectMap) {
        match self {
            StatusRule::Open | StatusRule::Born => {}
            StatusRule::Dropped => {
                object.shift_remove("status");
            }
            StatusRule::Reset(text) => {
                let value = serde_json::from_str(text).unwrap_or_else(|_| json!({}));
                object.insert("status", value);
            }
        }
    }

    pub fn update(self, new: &mut ObjectMap, old: &ObjectMap) {
        if self != StatusRule::Open {
            fields::restore(new, old, "status");
        }
    }
}

/// The fields of the metadata that a write to `/status` may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMetadata {
    /// All that an update may change: upstream's older kinds.
    Open,
    /// All but these.
    Except(&'static [&'static str]),
    /// Nothing; managedFields and resourceVersion are the caller's.
    Closed,
}

/// apimachinery `ResetObjectMetaForStatus`.
pub const RESET: StatusMetadata =
    StatusMetadata::Except(&["labels", "annotations", "finalizers", "ownerReferences"]);

impl StatusMetadata {
    pub fn update(self, new: &mut ObjectMap, old: &ObjectMap) {
        for field in ["generation", "deletionTimestamp"] {
            fields::restore_metadata(new, old, field);
        }
        match self {
            StatusMetadata::Open => {}
            StatusMetadata::Except(kept) => {
                for field in kept {
                    fields::restore_metadata(new, old, field);
                }
            }
            StatusMetadata::Closed => close(new, old),
        }
    }
}

fn close(new: &mut ObjectMap, old: &ObjectMap) {
    let sent = new.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut metadata = fields::object(old, "metadata").cloned().unwrap_or_else(Map::new);
    for field in ["managedFields", "resourceVersion"] {
        fields::restore(&mut metadata, &sent, field);
    }
    new.insert("metadata", Value::Object(metadata));
}

/// `new` keeps of its own only `apiVersion`, `kind`, `metadata` and `status`.
pub fn keep_all_but_status(new: &mut ObjectMap, old: &ObjectMap) {
    let own = |key: &str| matches!(key, "apiVersion" | "kind" | "metadata" | "status");
    new.retain(|key, _| own(key));
    for (key, value) in old.iter().filter(|(key, _)| !own(key)) {
        new.insert(key.clone(), value.clone());
    }
}
