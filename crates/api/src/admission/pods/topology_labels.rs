//! PodTopologyLabels: a Pod has the zone and the region of its node as labels.

use crate::admission::view::{self, View};
use crate::admission::{Admission, Attempt, Operation, Verdict};
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{ObjectMap, fields, metadata_mut};

const NODES: Gvr = Gvr::fixed("v1", "nodes");
const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(in crate::admission) struct PodTopologyLabels;

impl Admission for PodTopologyLabels {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let definition = &request.target.resource.definition;
        operation == Operation::Create
            && matches!(request.subresource, "" | "binding")
            && definition.kind_name() == "Pod"
            && definition.group().is_empty()
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match attempt.request.subresource {
            "binding" => view::complete(attempt, complete_binding),
            _ => view::complete(attempt, |view, pod| {
                let node = fields::text(pod, &["spec", "nodeName"]).to_owned();
                label(view, &node, pod);
                Ok(())
            }),
        }
    }
}

/// The Pod takes over the labels of its binding.
fn complete_binding(view: &View<'_>, binding: &mut ObjectMap) -> Result<(), String> {
    if fields::text(binding, &["target", "kind"]) == "Node" {
        let node = fields::text(binding, &["target", "name"]).to_owned();
        label(view, &node, binding);
    }
    Ok(())
}

fn label(view: &View<'_>, node: &str, object: &mut ObjectMap) {
    let Some(node) = Some(node).filter(|node| !node.is_empty()).and_then(|node| view.get(&NODES, node))
    else {
        return;
    };
    let found = fields::at(&node, &["metadata", "labels"]).and_then(Value::as_object);
    let found = LABELS.iter().filter_map(|label| Some((*label, found?.get(label)?.clone())));
    let found: Vec<(&str, Value)> = found.collect();
    if !found.is_empty() {
        let labels = fields::object_mut(metadata_mut(object), "labels");
        found.into_iter().for_each(|(label, value)| drop(labels.insert(label, value)));
        labels.sort_keys();
    }
}
