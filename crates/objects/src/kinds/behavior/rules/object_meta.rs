//! Validation of metadata, part by part (apimachinery `ValidateObjectMeta`); its fields are told as `metadata.…`.
//!
//! Absent, null and wrongly typed fields read as empty.

use crate::causes::{Cause, Causes};
use crate::fields::{self, ObjectMap};
use crate::gotext;
use crate::kinds::behavior::format;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::rules::metadata::ANNOTATIONS_MAX;
use crate::schema::resource::Scope;
use crate::tree::Value;

const OWNERS: &str = "metadata.ownerReferences";

fn text<'a>(object: &'a ObjectMap, field: &str) -> &'a str {
    fields::text(object, &[field])
}

/// The entries of `labels` or `annotations`.
fn pairs<'a>(metadata: &'a ObjectMap, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let entries = metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    entries.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

pub fn names(metadata: &ObjectMap, names: NameFormat, causes: &mut Causes) {
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        refuse("metadata.generateName", prefix, names.check_prefix(prefix), causes);
    }
    let name = text(metadata, "name");
    if !name.is_empty() {
        refuse("metadata.name", name, names.check(name), causes);
    }
}

pub fn namespace(metadata: &ObjectMap, scope: Scope, causes: &mut Causes) {
    let field = "metadata.namespace";
    match (scope, text(metadata, "namespace")) {
        (Scope::Namespaced, "") => causes.push(Cause::required(field, "")),
        (Scope::Namespaced, namespace) => refuse(field, namespace, format::dns1123_label(namespace), causes),
        (Scope::Cluster, "") => {}
        (Scope::Cluster, _) => causes.push(Cause::forbidden(field, "not allowed on this type")),
    }
}

pub fn generation(metadata: &ObjectMap, causes: &mut Causes) {
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|n| *n < 0) {
        let why = "must be greater than or equal to 0";
        causes.push(Cause::invalid("metadata.generation", generation, why));
    }
}

pub fn labels(metadata: &ObjectMap, causes: &mut Causes) {
    for (key, value) in pairs(metadata, "labels") {
        refuse("metadata.labels", key, format::label_key(key), causes);
        refuse("metadata.labels", value, format::label_value(value), causes);
    }
}

pub fn annotations(metadata: &ObjectMap, causes: &mut Causes) {
    let field = "metadata.annotations";
    let mut size = 0;
    for (key, value) in pairs(metadata, "annotations") {
        size += key.len() + value.len();
        refuse(field, key, format::label_key(&key.to_lowercase()), causes);
    }
    if size > ANNOTATIONS_MAX {
        causes.push(Cause::too_long(field, ANNOTATIONS_MAX));
    }
}

pub fn finalizers(metadata: &ObjectMap, causes: &mut Causes) {
    let field = "metadata.finalizers";
    let all = || {
        let list = metadata.get("finalizers").and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str)
    };
    for finalizer in all() {
        refuse(field, finalizer, format::label_key(finalizer), causes);
    }
    let has = |name: &str| all().any(|finalizer| finalizer == name);
    if has("orphan") && has("foregroundDeletion") {
        let list = gotext::json(&all().collect::<Vec<_>>().into());
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid(field, list, why));
    }
}

pub fn owners(metadata: &ObjectMap, causes: &mut Causes) {
    let Some(list) = metadata.get("ownerReferences").filter(|value| value.is_array()) else { return };
    let references = list.as_array().into_iter().flatten().filter_map(Value::as_object);
    let mut controller: Option<String> = None;
    for (i, reference) in references.enumerate() {
        owner(reference, &format!("{OWNERS}[{i}]"), causes);
        if reference.get("controller").and_then(Value::as_bool) != Some(true) {
            continue;
        }
        let name = format!("{}/{}", text(reference, "kind"), text(reference, "name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                causes.add(|| Cause::invalid(OWNERS, gotext::json(list), &why));
            }
        }
    }
}

fn owner(reference: &ObjectMap, field: &str, causes: &mut Causes) {
    let version = text(reference, "apiVersion");
    let bare = version.split_once('/').map_or(version, |(_, version)| version);
    if version.is_empty() {
        causes.push(Cause::required(format!("{field}.apiVersion"), "must not be empty"));
    } else if bare.is_empty() || bare.contains('/') {
        let why = "must be <group>/<version> or <version>";
        causes.push(Cause::invalid(format!("{field}.apiVersion"), gotext::quote(version), why));
    }
    for key in ["kind", "name", "uid"] {
        if text(reference, key).is_empty() {
            causes.push(Cause::required(format!("{field}.{key}"), "must not be empty"));
        }
    }
    if version == "v1" && text(reference, "kind") == "Event" {
        let value = gotext::json(&Value::Object(reference.clone()));
        causes.push(Cause::invalid(field, value, "/v1, Kind=Event is disallowed from being an owner"));
    }
}

/// One cause per message about a text value.
pub fn refuse(field: &str, value: &str, messages: Vec<String>, causes: &mut Causes) {
    for message in &messages {
        causes.add(|| Cause::invalid(field, gotext::quote(value), message));
    }
}

/// Errors of an object within an object, at a path: its kind need not exist, and it needs no name.
pub fn embedded(path: &str, object: &ObjectMap, causes: &mut Causes) {
    let field = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in ["apiVersion", "kind"] {
        if !object.contains_key(name) {
            causes.add(|| Cause::required(field(name), ""));
        }
    }
    if let Some(version) = object.get("apiVersion") {
        causes.extend(
            wrong_version(version).map(|why| Cause::invalid(field("apiVersion"), shown(version), &why)),
        );
    }
    if let Some(kind) = object.get("kind") {
        causes.extend(wrong_kind(kind).map(|why| Cause::invalid(field("kind"), shown(kind), &why)));
    }
    let Some(metadata) = object.get("metadata").and_then(Value::as_object) else { return };
    let scope = if text(metadata, "namespace").is_empty() { Scope::Cluster } else { Scope::Namespaced };
    let mut found = Causes::default();
    names(metadata, NameFormat::PathSegment, &mut found);
    namespace(metadata, scope, &mut found);
    generation(metadata, &mut found);
    labels(metadata, &mut found);
    annotations(metadata, &mut found);
    owners(metadata, &mut found);
    finalizers(metadata, &mut found);
    causes.append_within(found, path);
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| gotext::json(value), gotext::quote)
}

fn wrong_version(version: &Value) -> Option<String> {
    match version.as_str() {
        None => Some("must be a string".to_owned()),
        Some("") => Some("must not be empty".to_owned()),
        Some(text) if text.matches('/').count() > 1 => {
            Some(format!("unexpected GroupVersion string: {text}"))
        }
        Some(_) => None,
    }
}

fn wrong_kind(kind: &Value) -> Option<String> {
    match kind.as_str() {
        None => Some("must be a string".to_owned()),
        Some("") => Some("must not be empty".to_owned()),
        Some(text) => {
            let messages = format::dns1035_label(&text.to_lowercase());
            let why = "may have mixed case, but should otherwise match: ";
            (!messages.is_empty()).then(|| format!("{why}{}", messages.join(",")))
        }
    }
}
