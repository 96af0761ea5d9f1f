//! RuntimeClass: a Pod gets the overhead and the scheduling constraints of its class.

use std::collections::HashSet;

use super::tolerations::list_mut;
use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::gotext::quote;
use crate::quantity;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const CLASSES: Gvr = Gvr::fixed("node.k8s.io/v1", "runtimeclasses");

pub(in crate::admission) struct RuntimeClass;

impl Admission for RuntimeClass {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        view::complete(attempt, complete)
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        view::check(attempt, check)
    }
}

fn complete(view: &View<'_>, pod: &mut ObjectMap) -> Result<(), String> {
    let spec = fields::object_mut(pod, "spec");
    let class = class_of(view, spec)?;
    let overhead = class.as_ref().and_then(|class| fields::object(class, "overhead"));
    let said = fields::object(spec, "overhead");
    match (overhead.map(|overhead| fields::object(overhead, "podFixed").cloned().unwrap_or_default()), said) {
        (None, _) => {}
        (Some(fixed), Some(said)) if !equal(&fixed, said) => {
            return Err(
                "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead".to_owned()
            );
        }
        (Some(fixed), _) => {
            spec.insert("overhead", fixed.into());
        }
    }
    match class.as_ref().and_then(|class| fields::object(class, "scheduling")) {
        Some(scheduling) => place(spec, scheduling),
        None => Ok(()),
    }
}

/// Refuses an overhead that does not come from a class.
fn check(view: &View<'_>, pod: &ObjectMap) -> Result<(), String> {
    let Some(spec) = fields::object(pod, "spec").filter(|spec| fields::object(spec, "overhead").is_some())
    else {
        return Ok(());
    };
    let class = class_of(view, spec)?;
    if class.is_some_and(|class| fields::object(&class, "overhead").is_some()) {
        return Ok(());
    }
    Err("pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead".to_owned())
}

fn class_of(view: &View<'_>, spec: &ObjectMap) -> Result<Option<ObjectMap>, String> {
    let Some(name) = spec.get("runtimeClassName").and_then(Value::as_str) else { return Ok(None) };
    let found = view.get(&CLASSES, name);
    found.map(Some).ok_or_else(|| format!("pod rejected: RuntimeClass {} not found", quote(name)))
}

fn equal(one: &ObjectMap, other: &ObjectMap) -> bool {
    let amount = |value: Option<&Value>| value.and_then(Value::as_str).and_then(quantity::nanos);
    one.len() == other.len() && one.iter().all(|(name, value)| amount(Some(value)) == amount(other.get(name)))
}

fn place(spec: &mut ObjectMap, scheduling: &ObjectMap) -> Result<(), String> {
    if let Some(wanted) = fields::object(scheduling, "nodeSelector") {
        let selector = fields::object_mut(spec, "nodeSelector");
        for (key, value) in wanted {
            if let Some(own) = selector.get(key).filter(|own| *own != value) {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let (value, own) = (text(value), text(own));
                return Err(format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                     pod.spec.nodeSelector[{key}] = {own}"
                ));
            }
            selector.insert(key.clone(), value.clone());
        }
        selector.sort_keys();
    }
    let mut all = std::mem::take(list_mut(spec, "tolerations"));
    all.extend_from_slice(fields::items(scheduling, &["tolerations"]));
    *list_mut(spec, "tolerations") = merged(&all);
    Ok(())
}

/// The most tolerations that are compared with each other; comparing a body full of them would take minutes.
const MOST_COMPARED: usize = 2000;

/// Drops tolerations that another one includes; of equal ones the first stays. Of more than [`MOST_COMPARED`], drops
/// only duplicates.
pub(in crate::admission) fn merged(all: &[Value]) -> Vec<Value> {
    if all.len() > MOST_COMPARED {
        let mut seen = HashSet::with_capacity(all.len());
        return all.iter().filter(|one| seen.insert(*one)).cloned().collect();
    }
    let mut kept: Vec<Value> = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let behind = &all[index + 1..];
        if !kept.iter().any(|other| includes(other, one))
            && !behind.iter().any(|other| other != one && includes(other, one))
        {
            kept.push(one.clone());
        }
    }
    kept
}

pub(in crate::admission) fn includes(large: &Value, small: &Value) -> bool {
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).unwrap_or("").to_owned();
    let seconds = |value: &Value| value.get("tolerationSeconds").and_then(Value::as_i64);
    if large == small {
        return true;
    }
    let (operator, effect) = (text(large, "operator"), text(large, "effect"));
    let any_key = text(large, "key").is_empty() && operator == "Exists";
    if text(large, "key") != text(small, "key") && !any_key {
        return false;
    }
    if !effect.is_empty() && effect != text(small, "effect") {
        return false;
    }
    if effect == "NoExecute"
        && let Some(longest) = seconds(large)
        && seconds(small).is_none_or(|own| own > longest)
    {
        return false;
    }
    match &*operator {
        "" | "Equal" => text(small, "operator") == "Equal" && text(large, "value") == text(small, "value"),
        _ => operator == "Exists",
    }
}
