//! `flowcontrol.apiserver.k8s.io`.

use std::cmp::Ordering;

use jiff::Timestamp;

use super::super::Printer;
use super::super::cell::{AGE, NAME, PLAIN, age, cells, condition, integer, name, text, text_column};
use crate::tree::Value;

pub static FLOW_SCHEMA: Printer = Printer {
    columns: &[
        NAME,
        text_column("PriorityLevel", "Priority level that matching requests get."),
        text_column("MatchingPrecedence", "Lower numbers are tried first."),
        text_column("DistinguisherMethod", "What tells flows apart."),
        AGE,
        text_column("MissingPL", "Whether the priority level does not exist."),
    ],
    cells: flow_schema_cells,
    order: Some(by_precedence),
    ..PLAIN
};

pub static PRIORITY_LEVEL: Printer = Printer {
    columns: &[
        NAME,
        text_column("Type", "Whether the level is limited."),
        text_column("NominalConcurrencyShares", "Share of the server's concurrency."),
        text_column("Queues", "Number of queues."),
        text_column("HandSize", "Queues among which a flow is dealt."),
        text_column("QueueLengthLimit", "Requests that may wait in a queue."),
        AGE,
    ],
    cells: priority_level_cells,
    ..PLAIN
};

fn flow_schema_cells(schema: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &schema["spec"];
    let method = &spec["distinguisherMethod"];
    cells![
        name(schema),
        text(&spec["priorityLevelConfiguration"]["name"]),
        integer(&spec["matchingPrecedence"]),
        if method.is_object() { text(&method["type"]) } else { "<none>" },
        age(schema, now),
        condition(&schema["status"]["conditions"], "Dangling").map_or("?", |found| text(&found["status"])),
    ]
}

fn by_precedence(a: &Value, b: &Value) -> Ordering {
    let key = |schema: &Value| integer(&schema["spec"]["matchingPrecedence"]);
    key(a).cmp(&key(b)).then_with(|| name(a).cmp(name(b)))
}

fn priority_level_cells(level: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &level["spec"];
    let limited = &spec["limited"];
    let queuing = &limited["limitResponse"]["queuing"];
    cells![
        name(level),
        text(&spec["type"]),
        number_of(limited, "nominalConcurrencyShares"),
        number_of(queuing, "queues"),
        number_of(queuing, "handSize"),
        number_of(queuing, "queueLengthLimit"),
        age(level, now),
    ]
}

/// A number field, `<none>` only where the struct around it is not there.
fn number_of(parent: &Value, field: &str) -> Value {
    if parent.is_object() { integer(&parent[field]).into() } else { "<none>".into() }
}
