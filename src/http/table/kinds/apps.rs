//! Controllers of pods that keep running, and the templates and revisions they are made of.

use jiff::Timestamp;

use super::super::Printer;
use super::super::cell::{
    AGE, CONTAINERS, IMAGES, NAME, PLAIN, SELECTOR, age, cells, integer, integer_column, list, name, text,
    text_column, wide,
};
use super::super::text::{containers, labels, selector, selector_requirements};
use crate::tree::Value;

pub static POD_TEMPLATE: Printer = Printer {
    columns: &[NAME, CONTAINERS, IMAGES, text_column("Pod Labels", "Labels that the pods will have.")],
    cells: |object, _| {
        let template = &object["template"];
        let (names, images) = containers(&template["spec"]);
        cells![name(object), names, images, labels(&template["metadata"]["labels"])]
    },
    ..PLAIN
};

pub static REPLICATION_CONTROLLER: Printer = Printer {
    columns: REPLICA_SET.columns,
    cells: |object, now| replica_cells(object, now, labels(&object["spec"]["selector"])),
    ..PLAIN
};

pub static REPLICA_SET: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Desired", "Pods that are wanted."),
        integer_column("Current", "Pods that exist."),
        integer_column("Ready", "Pods that are ready."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: |object, now| replica_cells(object, now, selector(&object["spec"]["selector"])),
    ..PLAIN
};

pub static DEPLOYMENT: Printer = Printer {
    columns: &[
        NAME,
        text_column("Ready", "Ready pods, of those that are wanted."),
        text_column("Up-to-date", "Pods made from the current template."),
        text_column("Available", "Pods that have been ready for long enough."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: deployment_cells,
    ..PLAIN
};

pub static STATEFUL_SET: Printer = Printer {
    columns: &[
        NAME,
        text_column("Ready", "Ready pods, of those that are wanted."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
    ],
    cells: |object, now| {
        let (names, images) = containers(&object["spec"]["template"]["spec"]);
        cells![name(object), ready_of_desired(object), age(object, now), names, images]
    },
    ..PLAIN
};

pub static DAEMON_SET: Printer = Printer {
    columns: &[
        NAME,
        integer_column("Desired", "Nodes that should run the pod."),
        integer_column("Current", "Nodes that run the pod and should."),
        integer_column("Ready", "Nodes whose pod is ready."),
        integer_column("Up-to-date", "Nodes whose pod is made from the current template."),
        integer_column("Available", "Nodes whose pod has been ready for long enough."),
        text_column("Node Selector", "Labels that a node needs to get the pod."),
        AGE,
        wide(CONTAINERS),
        wide(IMAGES),
        wide(SELECTOR),
    ],
    cells: daemon_set_cells,
    ..PLAIN
};

pub static CONTROLLER_REVISION: Printer = Printer {
    columns: &[
        NAME,
        text_column("Controller", "Owner that manages the revision."),
        text_column("Revision", "Number of the revision."),
        AGE,
    ],
    cells: |object, now| {
        cells![name(object), controller(object), integer(&object["revision"]), age(object, now)]
    },
    ..PLAIN
};

fn replica_cells(object: &Value, now: Timestamp, selector: String) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        integer(&spec["replicas"]),
        integer(&status["replicas"]),
        integer(&status["readyReplicas"]),
        age(object, now),
        names,
        images,
        selector,
    ]
}

fn deployment_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (names, images) = containers(&spec["template"]["spec"]);
    cells![
        name(object),
        ready_of_desired(object),
        integer(&status["updatedReplicas"]),
        integer(&status["availableReplicas"]),
        age(object, now),
        names,
        images,
        // Unlike every other kind, an empty selector stays empty here.
        selector_requirements(&spec["selector"]).unwrap_or_else(|_| "<invalid>".to_owned()),
    ]
}

fn daemon_set_cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let pod_spec = &spec["template"]["spec"];
    let (names, images) = containers(pod_spec);
    cells![
        name(object),
        integer(&status["desiredNumberScheduled"]),
        integer(&status["currentNumberScheduled"]),
        integer(&status["numberReady"]),
        integer(&status["updatedNumberScheduled"]),
        integer(&status["numberAvailable"]),
        labels(&pod_spec["nodeSelector"]),
        age(object, now),
        names,
        images,
        selector(&spec["selector"]),
    ]
}

fn ready_of_desired(object: &Value) -> String {
    format!("{}/{}", integer(&object["status"]["readyReplicas"]), integer(&object["spec"]["replicas"]))
}

/// `statefulset.apps/web` of the owner that is the controller.
fn controller(object: &Value) -> String {
    let owners = list(&object["metadata"]["ownerReferences"]);
    let Some(owner) = owners.iter().find(|owner| owner["controller"] == true) else {
        return "<none>".to_owned();
    };
    let group = text(&owner["apiVersion"]).split_once('/').map_or("", |(group, _)| group);
    let (kind, name) = (text(&owner["kind"]).to_lowercase(), text(&owner["name"]));
    match (kind.as_str(), group) {
        ("", "") => name.to_owned(),
        (kind, "") => format!("{kind}/{name}"),
        (kind, group) => format!("{kind}.{}/{name}", group.to_lowercase()),
    }
}
