//! The schemas of a group version. Their references are rendered by the caller, whose documents keep them in
//! different places.

use serde_json::{Map, Value, json};

use super::names;
use crate::schema::registry::{GroupVersion, Origin};
use crate::schema::resource::{ForeignKind, ResourceDefinition, Verb};

/// Adds the kinds and list kinds of `version`, and the foreign kinds of its subresources.
pub(super) fn add_kinds(
    schemas: &mut Map<String, Value>,
    origin: Origin,
    version: &GroupVersion,
    refs: &str,
) {
    for definition in &version.resources {
        let (kind, list) =
            (own_kind(definition, &definition.kind), own_kind(definition, &definition.list_kind));
        let item = schema_name(origin, &kind);
        if definition.allows(Verb::List) {
            schemas.insert(schema_name(origin, &list), list_schema(&list, refs, &item));
        }
        schemas.insert(item, object_schema(&kind, refs));
        for foreign in definition.subresources.iter().filter_map(|sub| sub.kind.as_ref()) {
            schemas.insert(schema_name(Origin::BuiltIn, foreign), object_schema(foreign, refs));
        }
    }
}

/// Adds what every group version refers to.
pub(super) fn add_common(schemas: &mut Map<String, Value>, version: &GroupVersion) {
    let core = kind("", "v1", "DeleteOptions");
    let own = kind(&version.group, &version.version, "DeleteOptions");
    let mut delete_options = open_object(&core);
    if !version.group.is_empty() {
        delete_options[GVK] = json!([gvk(&core), gvk(&own)]);
    }
    schemas.insert(names::DELETE_OPTIONS.to_owned(), delete_options);
    schemas.insert(names::STATUS.to_owned(), open_object(&kind("", "v1", "Status")));
    schemas.insert(names::PATCH.to_owned(), json!({"type": "object"}));
    schemas.insert(names::OBJECT_META.to_owned(), object_meta());
    schemas.insert(names::LIST_META.to_owned(), list_meta());
}

/// The extension by which clients find the schema of a kind.
pub(super) const GVK: &str = "x-kubernetes-group-version-kind";

pub(super) fn gvk(kind: &ForeignKind) -> Value {
    json!({"group": &*kind.group, "kind": &*kind.kind, "version": &*kind.version})
}

fn object_schema(kind: &ForeignKind, refs: &str) -> Value {
    let mut schema = open_object(kind);
    schema["properties"]["metadata"] = reference(refs, names::OBJECT_META);
    schema
}

fn list_schema(kind: &ForeignKind, refs: &str, item: &str) -> Value {
    json!({
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": reference(refs, item)},
            "kind": {"type": "string"},
            "metadata": reference(refs, names::LIST_META),
        },
        GVK: [gvk(kind)],
    })
}

fn open_object(kind: &ForeignKind) -> Value {
    json!({
        "type": "object",
        "properties": {"apiVersion": {"type": "string"}, "kind": {"type": "string"}},
        GVK: [gvk(kind)],
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let time = json!({"type": "string", "format": "date-time"});
    let number = json!({"type": "integer", "format": "int64"});
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let objects = json!({"type": "array", "items": {"type": "object"}});
    json!({
        "type": "object",
        "properties": {
            "annotations": strings,
            "creationTimestamp": time,
            "deletionGracePeriodSeconds": number,
            "deletionTimestamp": time,
            "finalizers": {
                "type": "array",
                "items": {"type": "string"},
                "x-kubernetes-list-type": "set",
                "x-kubernetes-patch-strategy": "merge",
            },
            "generateName": text,
            "generation": number,
            "labels": strings,
            "managedFields": objects,
            "name": text,
            "namespace": text,
            "ownerReferences": {
                "type": "array",
                "items": {"type": "object"},
                "x-kubernetes-list-map-keys": ["uid"],
                "x-kubernetes-list-type": "map",
                "x-kubernetes-patch-merge-key": "uid",
                "x-kubernetes-patch-strategy": "merge",
            },
            "resourceVersion": text,
            "selfLink": text,
            "uid": text,
        },
    })
}

fn list_meta() -> Value {
    json!({
        "type": "object",
        "properties": {
            "continue": {"type": "string"},
            "remainingItemCount": {"type": "integer", "format": "int64"},
            "resourceVersion": {"type": "string"},
            "selfLink": {"type": "string"},
        },
    })
}

fn reference(refs: &str, name: &str) -> Value {
    json!({"$ref": format!("{refs}{name}")})
}

fn schema_name(origin: Origin, kind: &ForeignKind) -> String {
    names::schema(origin, &kind.group, &kind.version, &kind.kind)
}

fn own_kind(definition: &ResourceDefinition, name: &str) -> ForeignKind {
    kind(&definition.group, &definition.version, name)
}

fn kind(group: &str, version: &str, kind: &str) -> ForeignKind {
    ForeignKind { group: group.into(), version: version.into(), kind: kind.into() }
}
