//! The `scale` subresource: the number of replicas, in the same form for all kinds.
//!
//! For built-in kinds (upstream's `pkg/registry/apps/*/storage/storage.go`, `scaleFrom…`), and for custom resources, whose
//! definitions name the paths (apiextensions-apiserver `pkg/registry/customresource/etcd.go`). The caller checks
//! preconditions on revision and uid, and stores the parent.

use crate::causes::Cause;
use crate::error::Error;
use crate::kinds::behavior::scale::{ScalePaths, WrongType};
use crate::resource::Resource;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupKind, Gvk};
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

pub const GVK: Gvk = Gvk::fixed("autoscaling/v1", "Scale");

/// The kind of the resource's subresource `scale`.
pub fn kind(resource: &Resource) -> Result<&Kind, Error> {
    let scale = resource.definition.subresource("scale").and_then(|scale| scale.kind.as_ref());
    scale.ok_or(Error::UnknownResource)
}

/// The number that upstream's defaults give to a parent without replicas.
const DEFAULT_REPLICAS: i64 = 1;

/// The number that stands for replicas which a custom resource does not say, while a Scale of it is changed: upstream's least
/// integer.
const UNSAID: i64 = i32::MIN as i64;

/// The replicas and the selector of a parent.
struct Replicas {
    /// `None` where a custom resource says nothing.
    wanted: Option<i64>,
    counted: i64,
    selector: String,
}

/// The Scale that a GET answers.
pub fn read(resource: &Resource, parent: &ObjectMap) -> Result<ObjectMap, Error> {
    let replicas = replicas(resource, parent)?;
    match &resource.behavior.scale {
        Some(paths) if replicas.wanted.is_none() => {
            let path = &paths.spec_replicas.declared;
            Err(Error::Internal(format!("the spec replicas field \"{path}\" does not exist")))
        }
        _ => Ok(scale(parent, replicas.wanted.unwrap_or_default(), replicas)),
    }
}

/// The Scale of a parent that was written, or that plugins look at.
pub fn of(resource: &Resource, parent: &ObjectMap) -> Result<ObjectMap, Error> {
    let replicas = replicas(resource, parent)?;
    Ok(scale(parent, replicas.wanted.unwrap_or_default(), replicas))
}

/// The Scale that a patch changes.
pub fn to_change(resource: &Resource, parent: &ObjectMap) -> Result<ObjectMap, Error> {
    let replicas = replicas(resource, parent)?;
    Ok(scale(parent, replicas.wanted.unwrap_or(UNSAID), replicas))
}

/// 400 for a changed Scale that still says nothing of replicas.
pub fn check_changed(resource: &Resource, scale: &ObjectMap) -> Result<(), Error> {
    let Some(paths) = &resource.behavior.scale else { return Ok(()) };
    match fields::at(scale, &["spec", "replicas"]).and_then(Value::as_i64) {
        Some(UNSAID) => {
            let path = &paths.spec_replicas.declared;
            Err(Error::BadRequest(format!("the spec replicas field \"{path}\" cannot be empty")))
        }
        _ => Ok(()),
    }
}

fn replicas(resource: &Resource, parent: &ObjectMap) -> Result<Replicas, Error> {
    match &resource.behavior.scale {
        None => Ok(built_in_replicas(parent)),
        Some(paths) => Ok(declared_replicas(paths, parent)?),
    }
}

fn built_in_replicas(parent: &ObjectMap) -> Replicas {
    let number = |path: &[&str]| fields::at(parent, path).and_then(Value::as_i64);
    Replicas {
        wanted: Some(number(&["spec", "replicas"]).unwrap_or(DEFAULT_REPLICAS)),
        counted: number(&["status", "replicas"]).unwrap_or(0),
        selector: selector_text(parent),
    }
}

/// Numbers are those of 32 bits that upstream cuts them to.
fn declared_replicas(paths: &ScalePaths, parent: &ObjectMap) -> Result<Replicas, WrongType> {
    let cut = |number: i64| i64::from(number as i32);
    let selector = paths.selector.as_ref().map(|path| path.text(parent)).transpose()?.flatten();
    Ok(Replicas {
        wanted: paths.spec_replicas.integer(parent)?.map(cut),
        counted: cut(paths.status_replicas.integer(parent)?.unwrap_or_default()),
        selector: selector.unwrap_or_default().to_owned(),
    })
}

/// A zero in the spec is left out, as `encoding/json` does.
fn scale(parent: &ObjectMap, wanted: i64, replicas: Replicas) -> ObjectMap {
    let mut metadata = ObjectMap::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = fields::at(parent, &["metadata", field]) {
            metadata.insert(field, value.clone());
        }
    }
    let mut spec = ObjectMap::new();
    if wanted != 0 {
        spec.insert("replicas", wanted.into());
    }
    let mut status = ObjectMap::new();
    status.insert("replicas", replicas.counted.into());
    if !replicas.selector.is_empty() {
        status.insert("selector", replicas.selector.into());
    }
    let scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    });
    match scale {
        Value::Object(scale) => scale,
        _ => ObjectMap::new(),
    }
}

/// Sets the parent's replicas to those of a Scale. A missing number means zero.
pub fn put(resource: &Resource, parent: &mut ObjectMap, scale: &ObjectMap, name: &str) -> Result<(), Error> {
    let Some(paths) = &resource.behavior.scale else { return apply(parent, scale, name) };
    let replicas = fields::at(scale, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
    Ok(paths.spec_replicas.set(parent, replicas.into())?)
}

/// 422 if the number is negative.
fn apply(parent: &mut ObjectMap, scale: &ObjectMap, name: &str) -> Result<(), Error> {
    let replicas = fields::at(scale, &["spec", "replicas"]).and_then(Value::as_i64).unwrap_or(0);
    if replicas < 0 {
        let why = "must be greater than or equal to 0";
        return Err(Error::Invalid {
            kind: GroupKind::new("autoscaling", "Scale"),
            name: name.to_owned(),
            causes: vec![Cause::invalid("spec.replicas", replicas, why)],
        });
    }
    fields::object_mut(parent, "spec").insert("replicas", replicas.into());
    Ok(())
}

/// The parent's selector as text, sorted by key (apimachinery `labels.Selector.String`). Replication controllers have
/// plain pairs, all others `matchLabels` and `matchExpressions`.
fn selector_text(parent: &ObjectMap) -> String {
    let empty = ObjectMap::new();
    let selector = fields::at(parent, &["spec", "selector"]).and_then(Value::as_object).unwrap_or(&empty);
    let structured = selector.keys().any(|key| matches!(key.as_str(), "matchLabels" | "matchExpressions"));
    let pairs = if structured { fields::object(selector, "matchLabels").unwrap_or(&empty) } else { selector };
    let mut requirements: Vec<(&str, String)> = pairs
        .iter()
        .filter_map(|(key, value)| Some((key.as_str(), format!("{key}={}", value.as_str()?))))
        .collect();
    if structured {
        let expressions = fields::items(selector, &["matchExpressions"]).iter().filter_map(Value::as_object);
        requirements.extend(expressions.filter_map(expression));
    }
    requirements.sort_by_key(|(key, _)| *key);
    let texts: Vec<String> = requirements.into_iter().map(|(_, text)| text).collect();
    texts.join(",")
}

fn expression(expression: &ObjectMap) -> Option<(&str, String)> {
    let key = fields::text(expression, &["key"]);
    let mut values: Vec<&str> =
        fields::items(expression, &["values"]).iter().filter_map(Value::as_str).collect();
    values.sort_unstable();
    values.dedup();
    let values = values.join(",");
    let text = match fields::text(expression, &["operator"]) {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "Exists" => key.to_owned(),
        "DoesNotExist" => format!("!{key}"),
        _ => return None,
    };
    Some((key, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built_in(parent: &ObjectMap) -> ObjectMap {
        let replicas = built_in_replicas(parent);
        scale(parent, replicas.wanted.unwrap_or_default(), replicas)
    }

    fn object(value: Value) -> ObjectMap {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn of_a_deployment() {
        let parent = json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "5",
                "creationTimestamp": "t", "labels": {"a": "b"}, "generation": 3},
            "spec": {"replicas": 3, "selector": {
                "matchLabels": {"b": "c"},
                "matchExpressions": [
                    {"key": "z", "operator": "DoesNotExist"},
                    {"key": "c", "operator": "NotIn", "values": ["y", "x"]},
                    {"key": "a", "operator": "In", "values": ["1"]},
                    {"key": "d", "operator": "Exists"},
                    {"key": "e", "operator": "nonsense"},
                ],
            }},
            "status": {"replicas": 2},
        });
        let want = json!({
            "kind": "Scale", "apiVersion": "autoscaling/v1",
            "metadata": {"name": "d", "namespace": "n", "uid": "u", "resourceVersion": "5", "creationTimestamp": "t"},
            "spec": {"replicas": 3},
            "status": {"replicas": 2, "selector": "a in (1),b=c,c notin (x,y),d,!z"},
        });
        assert_eq!(Value::Object(built_in(&object(parent))), want);
    }

    #[test]
    fn of_little() {
        let parts = |parent: Value| {
            let scale = built_in(&object(parent));
            (scale["spec"].clone(), scale["status"].clone())
        };
        let controller = json!({"spec": {"replicas": 0, "selector": {"b": "2", "a": "1"}}});
        assert_eq!(parts(controller), (json!({}), json!({"replicas": 0, "selector": "a=1,b=2"})));
        assert_eq!(parts(json!({})), (json!({"replicas": 1}), json!({"replicas": 0})));
        assert_eq!(
            parts(json!({"spec": 1, "status": "x"})),
            (json!({"replicas": 1}), json!({"replicas": 0}))
        );
    }

    #[test]
    fn onto_a_parent() {
        let scaled = |spec: Value| {
            let mut parent =
                object(json!({"metadata": {"name": "d"}, "spec": {"replicas": 3, "paused": true}}));
            apply(&mut parent, &object(json!({"spec": spec})), "d").map(|()| parent)
        };
        assert_eq!(scaled(json!({"replicas": 5})).unwrap()["spec"], json!({"replicas": 5, "paused": true}));
        assert_eq!(scaled(json!({})).unwrap()["spec"], json!({"replicas": 0, "paused": true}));
        assert_eq!(
            scaled(json!({"replicas": -1})).unwrap_err().to_string(),
            "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"
        );
    }
}
