//! The `scale` subresource: the number of replicas, in the same form for all kinds.
//!
//! For built-in kinds (upstream's `pkg/registry/apps/*/storage/storage.go`, `scaleFrom…`). The caller checks
//! preconditions on revision and uid, and stores the parent.

use super::error::Error;
use super::resource::Resource;
use super::{ObjectMap, fields};
use crate::causes::Cause;
use crate::schema::kind::Kind;
use crate::schema::names::{GroupKind, Gvk};
use crate::tree::{Value, json};

pub const GVK: Gvk = Gvk::fixed("autoscaling/v1", "Scale");

/// The kind of the resource's subresource `scale`.
pub fn kind(resource: &Resource) -> Result<&Kind, Error> {
    let scale = resource.definition.subresource("scale").and_then(|scale| scale.kind.as_ref());
    scale.ok_or(Error::UnknownResource)
}

/// The number that upstream's defaults give to a parent without replicas.
const DEFAULT_REPLICAS: i64 = 1;

/// The `autoscaling/v1 Scale` of a parent. A zero in the spec is left out, as `encoding/json` does.
pub fn of(parent: &ObjectMap) -> ObjectMap {
    let mut metadata = ObjectMap::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = fields::at(parent, &["metadata", field]) {
            metadata.insert(field, value.clone());
        }
    }
    let number = |path: &[&str]| fields::at(parent, path).and_then(Value::as_i64);
    let mut spec = ObjectMap::new();
    match number(&["spec", "replicas"]).unwrap_or(DEFAULT_REPLICAS) {
        0 => {}
        replicas => {
            spec.insert("replicas", replicas.into());
        }
    }
    let mut status = ObjectMap::new();
    status.insert("replicas", number(&["status", "replicas"]).unwrap_or(0).into());
    let selector = selector_text(parent);
    if !selector.is_empty() {
        status.insert("selector", selector.into());
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

/// Sets the parent's replicas to those of `scale`; 422 if the number is negative. A missing number means zero.
pub fn apply(parent: &mut ObjectMap, scale: &ObjectMap, name: &str) -> Result<(), Error> {
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
        assert_eq!(Value::Object(of(&object(parent))), want);
    }

    #[test]
    fn of_little() {
        let parts = |parent: Value| {
            let scale = of(&object(parent));
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
