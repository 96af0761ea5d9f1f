//! `resource.k8s.io`: dynamic resource allocation.

use super::super::Printer;
use super::super::age;
use super::super::cell::{
    AGE, NAME, PLAIN, age as age_cell, cells, count, deleting, name, text, text_column,
};
use crate::tree::Value;

/// Device classes and claim templates.
pub static NAME_AND_AGE: Printer = Printer {
    columns: &[NAME, AGE],
    cells: |object, now| cells![name(object), age_cell(object, now)],
    ..PLAIN
};

pub static RESOURCE_CLAIM: Printer = Printer {
    columns: &[NAME, text_column("State", "Whether the claim is allocated and reserved."), AGE],
    cells: |object, now| cells![name(object), claim_state(object), age_cell(object, now)],
    ..PLAIN
};

pub static RESOURCE_SLICE: Printer = Printer {
    columns: &[
        NAME,
        text_column("Node", "Node that the devices belong to."),
        text_column("Driver", "Driver that offers the devices."),
        text_column("Pool", "Pool that the slice is part of."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            text(&spec["nodeName"]),
            text(&spec["driver"]),
            text(&spec["pool"]["name"]),
            age_cell(object, now),
        ]
    },
    ..PLAIN
};

pub static DEVICE_TAINT_RULE: Printer = Printer {
    columns: &[
        NAME,
        text_column("Key", "Key of the taint."),
        text_column("Value", "Value of the taint."),
        text_column("Effect", "What the taint does to pods that do not tolerate it."),
        text_column("TimeAdded", "Time since the taint was added."),
        AGE,
    ],
    cells: |object, now| {
        let taint = &object["spec"]["taint"];
        let added = &taint["timeAdded"];
        cells![
            name(object),
            text(&taint["key"]),
            text(&taint["value"]),
            text(&taint["effect"]),
            if added.is_string() { age::since(added, now) } else { String::new() },
            age_cell(object, now),
        ]
    },
    ..PLAIN
};

fn claim_state(claim: &Value) -> &'static str {
    let status = &claim["status"];
    let (allocated, reserved) = (status["allocation"].is_object(), count(&status["reservedFor"]) > 0);
    match (deleting(claim), allocated, reserved) {
        (false, false, _) => "pending",
        (false, true, false) => "allocated",
        (false, true, true) => "allocated,reserved",
        (true, false, _) => "deleted",
        (true, true, false) => "deleted,allocated",
        (true, true, true) => "deleted,allocated,reserved",
    }
}
