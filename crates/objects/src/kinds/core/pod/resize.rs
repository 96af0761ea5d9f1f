//! `pods/resize`: changes CPU and memory of running containers (`pkg/registry/core/pod/strategy.go`,
//! `ValidatePodResize`).

use std::collections::HashSet;

use crate::causes::Cause;
use crate::kinds::core::pod::qos;
use crate::kinds::prelude::*;
use crate::{fields, gotext};

/// The annotation of a pod that a kubelet has created itself.
pub const MIRROR: &str = "kubernetes.io/config.mirror";

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// Restores everything in `new` except resources, resize policies and its metadata. If containers were added, removed
/// or renamed, changes nothing and returns false; [`causes`] reports it.
pub fn keep_all_but_resources(new: &mut ObjectMap, old: &ObjectMap) -> bool {
    let count = |object: &ObjectMap, list| fields::items(object, &["spec", list]).len();
    if LISTS.into_iter().any(|list| count(new, list) != count(old, list)) {
        return false;
    }
    let sent = fields::object(new, "spec").cloned().unwrap_or_default();
    fields::restore(new, old, "spec");
    fields::restore(new, old, "status");
    let spec = fields::object_mut(new, "spec");
    fields::restore(spec, &sent, "resources");
    for list in LISTS {
        let stored = spec.get_mut(list).and_then(Value::as_array_mut);
        let Some((stored, sent)) = stored.zip(sent.get(list).and_then(Value::as_array)) else { continue };
        if stored.iter().zip(sent).any(|(stored, sent)| stored.get("name") != sent.get("name")) {
            stored.clone_from(sent);
            continue;
        }
        let pairs =
            stored.iter_mut().filter_map(Value::as_object_mut).zip(sent.iter().filter_map(Value::as_object));
        for (stored, sent) in pairs {
            fields::restore(stored, sent, "resources");
            fields::restore(stored, sent, "resizePolicy");
        }
    }
    true
}

pub fn causes(new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    if fields::at(old, &["metadata", "annotations", MIRROR]).is_some() {
        return vec![Cause::forbidden("", "static pods cannot be resized")];
    }
    if fields::text(old, &["spec", "os", "name"]) == "windows" {
        return vec![Cause::forbidden("", "windows pods cannot be resized")];
    }
    let mut causes = Vec::new();
    if qos_of(old) != qos::class(new) {
        let why = "Pod QOS Class may not change as a result of resizing";
        causes.push(Cause::invalid("spec", gotext::quote(qos_of(new)), why));
    }
    if !node_can(old) {
        causes.push(Cause::forbidden("spec", "Pod running on node without support for resize"));
    }
    let moved: Vec<Cause> = LISTS.into_iter().flat_map(|list| moved(list, new, old)).collect();
    if !moved.is_empty() {
        return causes.into_iter().chain(moved).collect();
    }
    for list in ["initContainers", "containers"] {
        let pairs = pairs(list, new, old);
        causes.extend(pairs.iter().enumerate().flat_map(|(at, (new, old))| removed(list, at, new, old)));
    }
    for (new, old) in pairs("containers", new, old) {
        if !same_but_cpu_and_memory(new, old) {
            causes.push(Cause::forbidden("spec", "only cpu and memory resources are mutable"));
        }
    }
    for (at, (new, old)) in pairs("initContainers", new, old).into_iter().enumerate() {
        let field = format!("spec.initContainers[{at}]");
        if !same_but_cpu_and_memory(new, old) {
            let why = "only cpu and memory resources for init or sidecar containers are mutable";
            causes.push(Cause::forbidden(field, why));
        }
    }
    causes
}

/// The stored class, if there is one.
fn qos_of(pod: &ObjectMap) -> &str {
    match fields::text(pod, &["status", "qosClass"]) {
        "" => qos::class(pod),
        stored => stored,
    }
}

/// Whether the node supports resizing: such nodes report the resources of running containers.
fn node_can(pod: &ObjectMap) -> bool {
    let statuses = fields::items(pod, &["status", "containerStatuses"]);
    let running = statuses.iter().find(|status| {
        status.get("state").and_then(|state| state.get("running")).is_some_and(Value::is_object)
    });
    running.is_none_or(|status| status.get("resources").is_some_and(Value::is_object))
}

fn moved(list: &str, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    let (new, old) = (fields::items(new, &["spec", list]), fields::items(old, &["spec", list]));
    if new.len() != old.len() {
        let why = format!("{list} may not be added or removed on resize");
        return vec![Cause::forbidden(format!("spec.{list}"), &why)];
    }
    let renamed = |(at, (new, old)): (usize, (&Value, &Value))| {
        let why = format!("{list} may not be renamed or reordered on resize");
        let field = format!("spec.{list}[{at}].name");
        (new.get("name") != old.get("name")).then(|| Cause::forbidden(field, &why))
    };
    new.iter().zip(old).enumerate().filter_map(renamed).collect()
}

/// The containers of a list, each with its old version. They are in the same order.
fn pairs<'a>(list: &str, new: &'a ObjectMap, old: &'a ObjectMap) -> Vec<(&'a ObjectMap, &'a ObjectMap)> {
    let items =
        |object: &'a ObjectMap| fields::items(object, &["spec", list]).iter().filter_map(Value::as_object);
    items(new).zip(items(old)).collect()
}

fn removed(list: &str, at: usize, new: &ObjectMap, old: &ObjectMap) -> Vec<Cause> {
    let gone = |part: &&str| {
        let names = |container: &ObjectMap| -> HashSet<String> {
            let resources = fields::at(container, &["resources", part]).and_then(Value::as_object);
            resources.into_iter().flat_map(|resources| resources.keys().map(ToString::to_string)).collect()
        };
        let left = names(new);
        names(old).iter().any(|name| !left.contains(name))
    };
    let refuse = |part: &str| {
        let field = format!("spec.{list}[{at}].resources.{part}");
        Cause::forbidden(field, &format!("resource {part} cannot be removed"))
    };
    ["requests", "limits"].into_iter().filter(gone).map(refuse).collect()
}

fn same_but_cpu_and_memory(new: &ObjectMap, old: &ObjectMap) -> bool {
    let others = |container: &ObjectMap| {
        let mut container = container.clone();
        let resources = fields::object_mut(&mut container, "resources");
        for part in ["requests", "limits"] {
            let quantities = fields::object_mut(resources, part);
            quantities.retain(|name, _| !matches!(name.as_str(), "cpu" | "memory"));
        }
        container
    };
    others(new) == others(old)
}
