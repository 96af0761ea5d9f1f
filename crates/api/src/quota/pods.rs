//! The use of a quota by a Pod, and the scopes that the Pod is in (`pkg/quota/v1/evaluator/core/pods.go`).

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::Amounts;
use super::pod_amounts::{List, is_of_pods, of_pod, specified};
use super::scopes::Requirement;
use crate::ObjectMap;
use crate::fields::{self, objects};
use crate::kinds::core::pod::qos;
use crate::tree::Value;

const KNOWN: [&str; 11] = [
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];
/// The resources that every container has to set if a quota counts them.
const OBLIGATORY: [&str; 6] =
    ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"];
pub const REQUESTS: &str = "requests.";
pub const CLASS_PREFIX: &str = "deviceclass.resource.kubernetes.io/";

pub fn knows(resource: &str) -> bool {
    KNOWN.contains(&resource)
        || resource.starts_with("hugepages-")
        || resource.starts_with("requests.hugepages-")
        || is_request_of_extended(resource)
}

/// Whether a quota's resource is `requests.` and the name of an extended resource.
pub fn is_request_of_extended(resource: &str) -> bool {
    resource.strip_prefix(REQUESTS).is_some_and(|name| !is_native(resource) || name.starts_with(CLASS_PREFIX))
}

fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Whether a container can request a resource of this name that is not the system's own.
fn is_extended(resource: &str) -> bool {
    resource.starts_with(CLASS_PREFIX) || (!is_native(resource) && !resource.starts_with(REQUESTS))
}

/// The amounts that a Pod uses. A Pod that has ended only counts as an object.
pub fn usage(pod: &ObjectMap) -> Amounts {
    let mut usage = as_object();
    if !has_ended(pod) {
        usage.add(&computed(&of_pod(pod, List::Requests), &of_pod(pod, List::Limits)));
    }
    usage
}

/// The amounts of a Pod that holds nothing any more: it counts as an object.
pub fn as_object() -> Amounts {
    let mut usage = Amounts::default();
    usage.set("count/pods", "1");
    usage
}

pub fn has_ended(pod: &ObjectMap) -> bool {
    matches!(fields::text(pod, &["status", "phase"]), "Failed" | "Succeeded")
}

fn computed(requests: &Amounts, limits: &Amounts) -> Amounts {
    let mut usage = Amounts::default();
    usage.set("pods", "1");
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.set(name, request);
            usage.set(format!("{REQUESTS}{name}"), request);
        }
        if let Some(limit) = limits.get(name) {
            usage.set(format!("limits.{name}"), limit);
        }
    }
    for (name, request) in requests.iter() {
        let huge = name.starts_with("hugepages-");
        if huge {
            usage.set(name, request);
        }
        if huge || is_extended(name) {
            usage.set(format!("{REQUESTS}{name}"), request);
        }
    }
    usage
}

/// Refuses a Pod with containers that leave out what the quota counts.
pub fn constrain<'a>(counted: impl Iterator<Item = &'a str>, pod: &ObjectMap) -> Result<(), String> {
    let lists = [List::Requests, List::Limits];
    let whole = fields::object(pod, "spec");
    if whole.is_some_and(|spec| {
        lists.iter().any(|list| specified(spec, *list).iter().any(|(name, _)| is_of_pods(name)))
    }) {
        return Ok(());
    }
    let obligatory: Vec<&str> = counted.filter(|name| OBLIGATORY.contains(name)).collect();
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for container in
        ["containers", "initContainers"].into_iter().flat_map(|list| objects(pod, &["spec", list]))
    {
        let [requests, limits] = lists.map(|list| specified(container, list));
        let usage = computed(&requests, &limits);
        for name in obligatory.iter().filter(|name| usage.get(name).is_none()) {
            missing.entry(name).or_default().insert(fields::text(container, &["name"]));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let parts = missing.into_iter().map(|(name, containers)| {
        format!("{name} for: {}", containers.into_iter().collect::<Vec<_>>().join(","))
    });
    Err(format!("must specify {}", parts.collect::<Vec<_>>().join("; ")))
}

/// Whether a Pod is in a scope.
pub fn matches(scope: &Requirement<'_>, pod: &ObjectMap) -> bool {
    match scope.name {
        "Terminating" => ends_by_itself(pod),
        "NotTerminating" => !ends_by_itself(pod),
        "BestEffort" => is_best_effort(pod),
        "NotBestEffort" => !is_best_effort(pod),
        "PriorityClass" => scope.matches(fields::text(pod, &["spec", "priorityClassName"])),
        "CrossNamespacePodAffinity" => looks_into_other_namespaces(pod),
        _ => false,
    }
}

/// Whether the Pod has a deadline.
pub fn ends_by_itself(pod: &ObjectMap) -> bool {
    let deadline = fields::at(pod, &["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    deadline.is_some_and(|seconds| seconds >= 0)
}

fn is_best_effort(pod: &ObjectMap) -> bool {
    let class = match fields::text(pod, &["status", "qosClass"]) {
        "" => qos::class(pod),
        class => class,
    };
    class == "BestEffort"
}

fn looks_into_other_namespaces(pod: &ObjectMap) -> bool {
    let looks = |term: &ObjectMap| {
        !fields::items(term, &["namespaces"]).is_empty()
            || fields::object(term, "namespaceSelector").is_some()
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|side| {
        let required = ["spec", "affinity", side, "requiredDuringSchedulingIgnoredDuringExecution"];
        let preferred = ["spec", "affinity", side, "preferredDuringSchedulingIgnoredDuringExecution"];
        objects(pod, &required).any(looks)
            || objects(pod, &preferred).filter_map(|term| fields::object(term, "podAffinityTerm")).any(looks)
    })
}
