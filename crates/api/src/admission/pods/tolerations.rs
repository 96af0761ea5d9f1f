//! DefaultTolerationSeconds and TaintNodesByCondition: Pods stay for some minutes on a Node that is lost, and no Pod is
//! scheduled to a Node before it is ready.

use crate::admission::configuration::TolerationSeconds;
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

pub(in crate::admission) struct DefaultTolerationSeconds(pub TolerationSeconds);

impl Admission for DefaultTolerationSeconds {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(attempt.object_mut().map(|pod| add(pod, self.0)))
    }
}

pub(in crate::admission) struct TaintNodesByCondition;

impl Admission for TaintNodesByCondition {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && of_kind(request, "", "Node")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(attempt.object_mut().map(taint))
    }
}

/// Adds tolerations for lost Nodes, unless the Pod has its own.
fn add(pod: &mut ObjectMap, seconds: TolerationSeconds) {
    let spec = fields::object_mut(pod, "spec");
    let said = fields::items(spec, &["tolerations"]);
    let tolerated = |key: &str| {
        said.iter().any(|toleration| {
            let (own, effect) = (text(toleration, "key"), text(toleration, "effect"));
            (own.is_empty() || own == key) && (effect.is_empty() || effect == "NoExecute")
        })
    };
    let missing: Vec<Value> = [(NOT_READY, seconds.not_ready), (UNREACHABLE, seconds.unreachable)]
        .into_iter()
        .filter(|(key, _)| !tolerated(key))
        .map(|(key, seconds)| {
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds})
        })
        .collect();
    list_mut(spec, "tolerations").extend(missing);
}

fn taint(node: &mut ObjectMap) {
    let spec = fields::object_mut(node, "spec");
    let said = fields::items(spec, &["taints"]);
    if !said.iter().any(|taint| text(taint, "key") == NOT_READY && text(taint, "effect") == "NoSchedule") {
        list_mut(spec, "taints").push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

fn text<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The list in this field, inserted if it is missing.
pub(in crate::admission) fn list_mut<'a>(parent: &'a mut ObjectMap, name: &str) -> &'a mut Vec<Value> {
    let value = parent.entry(name).or_insert(Value::Null);
    if !value.is_array() {
        *value = json!([]);
    }
    match value {
        Value::Array(list) => list,
        _ => unreachable!("made a list above"),
    }
}
