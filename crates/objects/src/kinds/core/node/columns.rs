//! Columns of Nodes.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, flag, list, name, text, text_column, text_or, wide,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::prelude::*;

const ROLE_PREFIX: &str = "node-role.kubernetes.io/";

const ROLE_LABEL: &str = "kubernetes.io/role";

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the node is ready and takes new pods."),
        text_column("Roles", "Roles that the labels of the node give it."),
        AGE,
        text_column("Version", "Version of the kubelet."),
        wide(text_column("Internal-IP", "First internal address of the node.")),
        wide(text_column("External-IP", "First external address of the node.")),
        wide(text_column("OS-Image", "Operating system of the node.")),
        wide(text_column("Kernel-Version", "Version of the kernel.")),
        wide(text_column("Container-Runtime", "Container runtime and its version.")),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(node: &Value, now: Timestamp) -> Vec<Value> {
    let info = &node["status"]["nodeInfo"];
    cells![
        name(node),
        status(node),
        roles(&node["metadata"]["labels"]),
        age(node, now),
        text(&info["kubeletVersion"]),
        address(node, "InternalIP"),
        address(node, "ExternalIP"),
        text_or(&info["osImage"], "<unknown>"),
        kernel(info),
        text_or(&info["containerRuntimeVersion"], "<unknown>"),
    ]
}

/// The kernel's version, with the architecture if it is known.
fn kernel(info: &Value) -> String {
    let version = text_or(&info["kernelVersion"], "<unknown>");
    match text(&info["architecture"]) {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn status(node: &Value) -> String {
    let conditions = list(&node["status"]["conditions"]);
    let ready = conditions.iter().rfind(|condition| condition["type"] == "Ready");
    let state = match ready {
        Some(ready) if ready["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let suffix = if flag(&node["spec"]["unschedulable"]) { ",SchedulingDisabled" } else { "" };
    format!("{state}{suffix}")
}

fn roles(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix(ROLE_PREFIX) {
            Some(role) => Some(role),
            None => (key == ROLE_LABEL).then(|| text(value)),
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { join(roles, ",") }
}

fn address<'a>(node: &'a Value, type_: &str) -> &'a str {
    let addresses = list(&node["status"]["addresses"]);
    addresses
        .iter()
        .find(|address| address["type"] == type_)
        .map_or("<none>", |found| text(&found["address"]))
}
