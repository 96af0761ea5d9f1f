//! Resources of a whole pod (`DefaultPodLevelResources` in `pkg/api/pod/util.go`).

use std::cmp::Ordering;

use crate::fields;
use crate::kinds::prelude::*;
use crate::quantity;

const HUGE_PAGES: &str = "hugepages-";

const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// Completes `resources` of a pod's spec, if it says something, from those of all containers that are there when the pod
/// is written.
pub fn complete(pod: &mut ObjectMap) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
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
    for (name, amount) in of_containers(spec, "requests") {
        if COMPUTE.contains(&&*name) {
            requests.entry(name).or_insert(amount);
        }
    }
    for (name, amount) in &limits {
        if is_of_pods(name) {
            requests.entry(name.clone()).or_insert_with(|| amount.clone());
        }
    }
    limit(spec, &requests, &mut limits);
    let resources = fields::object_mut(spec, "resources");
    for (name, mut amounts) in [("limits", limits), ("requests", requests)] {
        if !amounts.is_empty() {
            amounts.sort_keys();
            resources.insert(name, Value::Object(amounts));
        }
    }
}

/// Adds limits of what is requested and what all containers limit: what these add up to, raised to the request.
fn limit(spec: &ObjectMap, requests: &ObjectMap, limits: &mut ObjectMap) {
    let containers = ["containers", "initContainers", "ephemeralContainers"];
    let mut containers = containers.iter().flat_map(|list| fields::items(spec, &[list]));
    let mut open: Vec<_> =
        requests.iter().filter(|(name, _)| is_of_pods(name) && !limits.contains_key(name)).collect();
    containers.all(|container| {
        open.retain(|(name, _)| amounts(container, "limits").is_some_and(|limits| limits.contains_key(name)));
        !open.is_empty()
    });
    if open.is_empty() {
        return;
    }
    let sums = of_containers(spec, "limits");
    for (name, request) in open {
        let Some(sum) = sums.get(name) else { continue };
        let is_above = order(request, sum) == Some(Ordering::Greater);
        limits.insert(name.clone(), if is_above { request.clone() } else { sum.clone() });
    }
}

/// Whether a whole pod may have amounts of the resource.
pub fn is_of_pods(name: &str) -> bool {
    COMPUTE.contains(&name) || name.starts_with(HUGE_PAGES)
}

fn amounts<'a>(container: &'a Value, list: &str) -> Option<&'a ObjectMap> {
    container.get("resources").and_then(|resources| resources.get(list)).and_then(Value::as_object)
}

/// The most that the containers need at any time (component-helpers' `AggregateContainerRequests`): the sum of those
/// that run side by side, or the need of an init container if that is larger.
fn of_containers(spec: &ObjectMap, list: &str) -> ObjectMap {
    let amounts = |container: &Value| amounts(container, list).cloned().unwrap_or_default();
    let mut together = ObjectMap::new();
    for container in fields::items(spec, &["containers"]) {
        add(&mut together, &amounts(container));
    }
    let (mut staying, mut before) = (ObjectMap::new(), ObjectMap::new());
    for container in fields::items(spec, &["initContainers"]) {
        let mut needed = amounts(container);
        let stays = container.get("restartPolicy").is_some_and(|policy| policy == "Always");
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
        let higher =
            highest.get(&name).is_none_or(|highest| order(&amount, highest) == Some(Ordering::Greater));
        if higher {
            highest.insert(name, amount);
        }
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    both(one, other).and_then(|(one, other)| quantity::compare(one, other).ok())
}

fn both<'a>(one: &'a Value, other: &'a Value) -> Option<(&'a str, &'a str)> {
    Some((one.as_str()?, other.as_str()?))
}
