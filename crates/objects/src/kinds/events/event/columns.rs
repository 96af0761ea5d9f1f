//! Columns of events; `v1` and `events.k8s.io/v1` give the same facts different names.

use jiff::Timestamp;

use crate::kinds::behavior::columns::age;
use crate::kinds::behavior::columns::cell::{
    NAME, PLAIN, cells, integer, name, text, text_column, text_or, wide,
};
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        text_column("Last Seen", "Time since the event was last observed."),
        text_column("Type", "Normal or Warning."),
        text_column("Reason", "Why the event was recorded, in one word."),
        text_column("Object", "What the event is about."),
        wide(text_column("Subobject", "Part of the object that the event is about.")),
        wide(text_column("Source", "Who recorded the event.")),
        text_column("Message", "What happened."),
        wide(text_column("First Seen", "Time since the event was first observed.")),
        wide(text_column("Count", "How often the event was observed.")),
        wide(NAME),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(event: &Value, now: Timestamp) -> Vec<Value> {
    let object = either(event, "involvedObject", "regarding");
    let first_seen = first_seen(event, now);
    cells![
        last_seen(event, &first_seen, now),
        text(&event["type"]),
        text(&event["reason"]),
        target(object),
        text(&object["fieldPath"]),
        source(event),
        text(either(event, "message", "note")).trim(),
        first_seen,
        count(event),
        name(event),
    ]
}

/// The field by its name in the core group, otherwise by its name in `events.k8s.io`.
fn either<'a>(event: &'a Value, core: &str, events: &str) -> &'a Value {
    if event[core].is_null() { &event[events] } else { &event[core] }
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let first = either(event, "firstTimestamp", "deprecatedFirstTimestamp");
    age::since(if age::timestamp(first).is_some() { first } else { &event["eventTime"] }, now)
}

fn last_seen(event: &Value, first_seen: &str, now: Timestamp) -> String {
    if event["series"].is_object() {
        return age::since(&event["series"]["lastObservedTime"], now);
    }
    let last = either(event, "lastTimestamp", "deprecatedLastTimestamp");
    if age::timestamp(last).is_some() { age::since(last, now) } else { first_seen.to_owned() }
}

/// An event without a count happened once.
fn count(event: &Value) -> i64 {
    if event["series"].is_object() {
        return integer(&event["series"]["count"]);
    }
    match integer(either(event, "count", "deprecatedCount")) {
        0 => 1,
        count => count,
    }
}

fn target(object: &Value) -> String {
    let kind = text(&object["kind"]).to_lowercase();
    match text(&object["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let source = either(event, "source", "deprecatedSource");
    let controller = either(event, "reportingComponent", "reportingController");
    let component = text_or(&source["component"], text(controller));
    match text_or(&source["host"], text(&event["reportingInstance"])) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}
