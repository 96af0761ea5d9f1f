//! ExtendedResourceToleration: who requests a device tolerates that its nodes are kept for such Pods.

use std::collections::BTreeSet;

use super::tolerations::list_mut;
use crate::admission::{Admission, Attempt, Operation, Verdict, of_kind};
use crate::request::Request;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

pub(in crate::admission) struct ExtendedResourceToleration;

impl Admission for ExtendedResourceToleration {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && of_kind(request, "", "Pod")
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Now(attempt.object_mut().map(add))
    }
}

fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.")
}

fn add(pod: &mut ObjectMap) {
    let containers =
        ["containers", "initContainers"].into_iter().flat_map(|list| fields::items(pod, &["spec", list]));
    let requests =
        containers.filter_map(|container| container["resources"]["requests"].as_object()).flatten();
    let requested: BTreeSet<String> =
        requests.map(|(name, _)| name.to_string()).filter(|name| is_extended(name)).collect();
    if requested.is_empty() {
        return;
    }
    let tolerations = list_mut(fields::object_mut(pod, "spec"), "tolerations");
    for name in requested {
        let own = json!({"key": name, "operator": "Exists", "effect": "NoSchedule"});
        let alike = |other: &&mut Value| {
            ["key", "operator", "value", "effect"].iter().all(|part| {
                other.get(part).and_then(Value::as_str).unwrap_or_default()
                    == own.get(part).and_then(Value::as_str).unwrap_or_default()
            })
        };
        match tolerations.iter_mut().find(alike) {
            Some(found) => *found = own,
            None => tolerations.push(own),
        }
    }
}
