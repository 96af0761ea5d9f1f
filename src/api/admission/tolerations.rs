//! DefaultTolerationSeconds and TaintNodesByCondition: Pods stay for five minutes on a Node that is lost, and nothing
//! goes to a Node before it is ready.

use super::view::View;
use crate::api::{ObjectMap, fields};
use crate::tree::{Value, json};

const SECONDS: i64 = 300;
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(super) fn complete(_: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
    add(pod);
    Ok(())
}

/// What the Pod does not say of lost Nodes.
pub(super) fn add(pod: &mut ObjectMap) {
    let spec = fields::object_mut(pod, "spec");
    let said = fields::items(spec, &["tolerations"]);
    let tolerated = |key: &str| {
        said.iter().any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own.is_empty() || own == key) && (effect.is_empty() || effect == "NoExecute")
        })
    };
    let missing: Vec<Value> = [NOT_READY, UNREACHABLE]
        .into_iter()
        .filter(|key| !tolerated(key))
        .map(|key| {
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS})
        })
        .collect();
    list_mut(spec, "tolerations").extend(missing);
}

pub(super) fn taint(_: &View<'_>, node: &mut ObjectMap) -> Result<(), String> {
    let spec = fields::object_mut(node, "spec");
    let said = fields::items(spec, &["taints"]);
    if !said.iter().any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule") {
        list_mut(spec, "taints").push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
    Ok(())
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The list under `name`, made if there is none.
pub(super) fn list_mut<'a>(parent: &'a mut ObjectMap, name: &str) -> &'a mut Vec<Value> {
    let value = parent.entry(name).or_insert(Value::Null);
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("made a list above"),
    }
}
