//! PodResizeValidator and NodeDeclaredFeatureValidator: a running Pod changes only as its node can have it.

use super::usage;
use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict};
use crate::cache::State;
use crate::causes::{Cause, CauseReason};
use crate::error::Error;
use crate::gotext::quote;
use crate::quantity::{nanos, units};
use crate::quota::pod_amounts::List;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields};

const NODES: Gvr = Gvr::fixed("v1", "nodes");
const OS: &str = "kubernetes.io/os";
const NANOS_PER_MILLI: i128 = 1_000_000;

pub(in crate::admission) struct PodResizeValidator;

impl Admission for PodResizeValidator {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Update && is_pod(request) && request.subresource == "resize"
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        match judge(attempt, &cluster.cache.any()) {
            Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
                let fresh = cluster.cache.fresh().await?;
                judge(attempt, &fresh)
            })),
            verdict => Verdict::Now(verdict),
        }
    }
}

pub(in crate::admission) struct NodeDeclaredFeatureValidator;

impl Admission for NodeDeclaredFeatureValidator {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Update && is_pod(request) && matches!(request.subresource, "" | "resize")
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let (Some(old), Some(new)) = (attempt.old, &attempt.object) else { return Verdict::Now(Ok(())) };
        let needed = needed(old, new);
        if !is_changed_on_node(old, new) || needed.is_empty() {
            return Verdict::Now(Ok(()));
        }
        view::check(attempt, move |view, pod| check_features(view, pod, &needed))
    }
}

fn is_pod(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    definition.kind_name() == "Pod" && definition.group().is_empty()
}

/// Whether the Pod has a node, and its generation changes.
fn is_changed_on_node(old: &ObjectMap, new: &ObjectMap) -> bool {
    let generation = |pod| fields::at(pod, &["metadata", "generation"]).and_then(Value::as_i64);
    !fields::text(new, &["spec", "nodeName"]).is_empty() && generation(old) != generation(new)
}

fn judge(attempt: &Attempt<'_>, state: &State) -> Result<(), Error> {
    let (Some(old), Some(pod)) = (attempt.old, &attempt.object) else { return Ok(()) };
    if !is_changed_on_node(old, pod) {
        return Ok(());
    }
    let name = fields::text(pod, &["spec", "nodeName"]);
    let view = View::new(attempt.cluster, state, attempt.target.namespace);
    let node = view.get(&NODES, name);
    if let Some(failure) = view.failure() {
        return Err(failure);
    }
    let Some(node) = node else { return Err(attempt.refused(format!("node {} not found", quote(name)))) };
    let refused = |(reason, why)| Error::ForbiddenBecause {
        resource: attempt.target.resource.group_resource(),
        name: attempt.target.name.to_owned(),
        reason: why,
        causes: vec![Cause::new(reason, "", String::new())],
    };
    check_node(&node, name).and_then(|()| check_capacity(pod, &node)).map_err(refused)
}

fn check_node(node: &ObjectMap, name: &str) -> Result<(), (CauseReason, String)> {
    let Some(os) = fields::at(node, &["metadata", "labels", OS]).and_then(Value::as_str) else {
        return Ok(());
    };
    if os == "linux" {
        return Ok(());
    }
    let (name, os) = (quote(name), quote(os));
    let why = format!("pod resize is only supported on linux nodes, node {name} is {os}");
    Err((CauseReason::UnsupportedPlatform, why))
}

fn check_capacity(pod: &ObjectMap, node: &ObjectMap) -> Result<(), (CauseReason, String)> {
    let requests = usage::of_pod(pod, List::Requests);
    let overhead = |name: &str| nanos(fields::text(pod, &["spec", "overhead", name])).unwrap_or_default();
    let mut missing = Vec::new();
    let in_milli: fn(i128) -> i128 = |amount| amount / NANOS_PER_MILLI + (amount % NANOS_PER_MILLI).signum();
    let in_units: fn(i128) -> i128 = |amount| units(amount).into();
    for (name, shown) in [("cpu", in_milli), ("memory", in_units)] {
        let own = requests.get(name).and_then(nanos).unwrap_or_default();
        let requested = own.saturating_add(overhead(name));
        let allocatable = nanos(fields::text(node, &["status", "allocatable", name])).unwrap_or_default();
        if requested > allocatable {
            let (requested, allocatable) = (shown(requested), shown(allocatable));
            missing.push(format!("{name}, requested: {requested}, allocatable: {allocatable}"));
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join("; ");
    let why = format!("node didn't have enough allocatable resources: {missing}");
    Err((CauseReason::NodeCapacity, why))
}

/// The features that a node has to declare for an update, sorted.
fn needed(old: &ObjectMap, new: &ObjectMap) -> Vec<&'static str> {
    let mut needed = Vec::new();
    if fields::at(old, &["spec", "resources"]) != fields::at(new, &["spec", "resources"]) {
        needed.push("InPlacePodLevelResourcesVerticalScaling");
    }
    let initial = |pod: &ObjectMap| -> Vec<(Value, Value)> {
        let containers = fields::items(pod, &["spec", "initContainers"]).iter();
        let plain = containers.filter(|container| container["restartPolicy"] != "Always");
        plain.map(|container| (container["name"].clone(), container["resources"].clone())).collect()
    };
    if initial(old) != initial(new) {
        needed.push("InPlacePodVerticalScalingInitContainers");
    }
    needed
}

fn check_features(view: &View<'_>, pod: &ObjectMap, needed: &[&str]) -> Result<(), String> {
    let name = fields::text(pod, &["spec", "nodeName"]);
    let node = view.get(&NODES, name).ok_or_else(|| format!("node {} not found", quote(name)))?;
    let declared = fields::items(&node, &["status", "declaredFeatures"]);
    let lacking = needed.iter().filter(|feature| !declared.iter().any(|own| own == **feature));
    let lacking: Vec<&str> = lacking.copied().collect();
    if lacking.is_empty() {
        return Ok(());
    }
    let (lacking, name) = (lacking.join(", "), quote(name));
    Err(format!("pod update requires features {lacking} which are not available on node {name}"))
}
