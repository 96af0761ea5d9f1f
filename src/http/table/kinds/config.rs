//! The small kinds of the core group: names and counts, hardly any rules.

use super::super::Printer;
use super::super::cell::{
    AGE, NAME, PLAIN, age, cells, condition, count, name, scalar_text, text, text_column,
};
use super::super::text::join;
use crate::tree::{Text, Value};

pub static NAMESPACE: Printer = Printer {
    columns: &[NAME, text_column("Status", "Whether the namespace is in use or going away."), AGE],
    cells: |object, now| cells![name(object), text(&object["status"]["phase"]), age(object, now)],
    ..PLAIN
};

pub static SERVICE_ACCOUNT: Printer =
    Printer { columns: &[NAME, AGE], cells: |object, now| cells![name(object), age(object, now)], ..PLAIN };

pub static SECRET: Printer = Printer {
    columns: &[
        NAME,
        text_column("Type", "What the secret is used for."),
        text_column("Data", "Number of entries."),
        AGE,
    ],
    cells: |object, now| {
        cells![name(object), text(&object["type"]), count(&object["data"]), age(object, now)]
    },
    ..PLAIN
};

pub static CONFIG_MAP: Printer = Printer {
    columns: &[NAME, text_column("Data", "Number of entries."), AGE],
    cells: |object, now| {
        cells![name(object), count(&object["data"]) + count(&object["binaryData"]), age(object, now)]
    },
    ..PLAIN
};

pub static RESOURCE_QUOTA: Printer = Printer {
    columns: &[
        NAME,
        text_column("Request", "Use and bound of what is counted or requested."),
        text_column("Limit", "Use and bound of the limits of containers."),
        AGE,
    ],
    cells: |object, now| {
        let status = &object["status"];
        cells![
            name(object),
            quota(status, Counted::Requests),
            quota(status, Counted::Limits),
            age(object, now)
        ]
    },
    ..PLAIN
};

pub static COMPONENT_STATUS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the component is healthy."),
        text_column("Message", "What the component says of its health."),
        text_column("Error", "Why the component is not healthy."),
    ],
    cells: |object, _| {
        let Some(healthy) = condition(&object["conditions"], "Healthy") else {
            return cells![name(object), "Unknown", "", ""];
        };
        let status = if healthy["status"] == "True" { "Healthy" } else { "Unhealthy" };
        cells![name(object), status, text(&healthy["message"]), text(&healthy["error"])]
    },
    ..PLAIN
};

#[derive(Clone, Copy, PartialEq)]
enum Counted {
    Requests,
    Limits,
}

impl Counted {
    fn of(resource: &str) -> Self {
        if resource.starts_with("limits.") { Counted::Limits } else { Counted::Requests }
    }
}

/// `pods: 2/10, services: 0/5`.
fn quota(status: &Value, counted: Counted) -> String {
    let hard = status["hard"].as_object().into_iter().flatten();
    let mut bounds: Vec<(&Text, &Value)> =
        hard.filter(|(resource, _)| Counted::of(resource) == counted).collect();
    bounds.sort_by_key(|(resource, _)| *resource);
    let quantity = |value: &Value| scalar_text(value).unwrap_or_else(|| "0".to_owned());
    let bound = |(resource, hard): (&Text, &Value)| {
        format!("{resource}: {}/{}", quantity(&status["used"][resource]), quantity(hard))
    };
    join(bounds.into_iter().map(bound), ", ")
}
