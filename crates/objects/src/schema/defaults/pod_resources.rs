//! Resources of a whole pod (`defaultHugePagePodLimits` and `defaultPodRequests` in `pkg/apis/core/v1/defaults.go`).

use std::cmp::Ordering;

use super::set::text;
use crate::fields::{self, ObjectMap};
use crate::quantity;
use crate::tree::Value;

const HUGE_PAGES: &str = "hugepages-";

/// Completes `resources` of a pod's spec, if it is present.
pub fn complete(spec: &mut ObjectMap) {
    let Some(resources) = fields::object(spec, "resources") else { return };
    let nothing = ObjectMap::new();
    let said = |name| fields::object(resources, name).unwrap_or(&nothing).clone();
    let (mut limits, mut requests) = (said("limits"), said("requests"));
    if limits.is_empty() && requests.is_empty() {
        return;
    }
    for (name, amount) in of_containers(spec, "limits") {
        if name.starts_with(HUGE_PAGES) && !requests.contains_key(&name) {
            limits.entry(name).or_insert(amount);
        }
    }
    if !limits.is_empty() {
        for (name, amount) in of_containers(spec, "requests") {
            if matches!(&*name, "cpu" | "memory") {
                requests.entry(name).or_insert(amount);
            }
        }
        for (name, amount) in &limits {
            if matches!(&**name, "cpu" | "memory") || name.starts_with(HUGE_PAGES) {
                requests.entry(name.clone()).or_insert_with(|| amount.clone());
            }
        }
    }
    let resources = fields::object_mut(spec, "resources");
    for (name, mut amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            amounts.sort_keys();
            resources.insert(name, Value::Object(amounts));
        }
    }
}

/// The most that the containers need at any time (component-helpers' `AggregateContainerRequests`): the sum of those
/// that run side by side, or the need of an init container if that is larger.
fn of_containers(spec: &ObjectMap, list: &str) -> ObjectMap {
    let amounts = |container: &Value| {
        let amounts = container.get("resources").and_then(|resources| resources.get(list));
        amounts.and_then(Value::as_object).cloned().unwrap_or_default()
    };
    let mut together = ObjectMap::new();
    for container in fields::items(spec, &["containers"]) {
        add(&mut together, &amounts(container));
    }
    let (mut staying, mut before) = (ObjectMap::new(), ObjectMap::new());
    for container in fields::items(spec, &["initContainers"]) {
        let mut needed = amounts(container);
        let stays =
            container.as_object().is_some_and(|container| text(container, "restartPolicy") == "Always");
        if stays {
            add(&mut together, &needed);
            add(&mut staying, &needed);
            needed = staying.clone();
        } else {
            add(&mut needed, &staying);
        }
        raise(&mut before, needed);
    }
    raise(&mut together, before);
    together
}

fn add(sums: &mut ObjectMap, amounts: &ObjectMap) {
    for (name, amount) in amounts {
        let sum = match sums.get(name) {
            Some(sum) => both(sum, amount).and_then(|(sum, amount)| quantity::sum(sum, amount).ok()),
            None => None,
        };
        sums.insert(name.clone(), sum.map_or_else(|| amount.clone(), Value::from));
    }
}

fn raise(highest: &mut ObjectMap, amounts: ObjectMap) {
    for (name, amount) in amounts {
        let higher = highest.get(&name).is_none_or(|highest| {
            let order = both(&amount, highest).and_then(|(one, other)| quantity::compare(one, other).ok());
            order == Some(Ordering::Greater)
        });
        if higher {
            highest.insert(name, amount);
        }
    }
}

fn both<'a>(one: &'a Value, other: &'a Value) -> Option<(&'a str, &'a str)> {
    Some((one.as_str()?, other.as_str()?))
}
