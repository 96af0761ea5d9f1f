//! Events, in both of their versions (`pkg/apis/core/validation/events.go`). Errors name the fields of the internal
//! form.

pub mod columns;

use crate::gotext;
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::selectable::{Field, field, first_of};
use crate::kinds::events::conversion::OF_EVENTS;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("events", "Event").short(&["ev"]).creates_on_update().shared("v1"),
    strategy: Strategy { hooks: &EventHooks, ..Strategy::PLAIN },
    rules: Rules::new(create, update),
    warnings: KindWarnings::NONE,
    columns: &columns::COLUMNS,
    fields: selectable_fields,
    other_version: Some(OF_EVENTS),
};

#[derive(Debug)]
pub struct EventHooks;

impl Hooks for EventHooks {
    /// Upstream's garbage collector does not add finalizers to events.
    fn garbage_collected(&self) -> bool {
        false
    }
}

const REFERENCE: [&str; 7] =
    ["apiVersion", "fieldPath", "kind", "name", "namespace", "resourceVersion", "uid"];

/// Selectable fields. Both versions have the same fields under other names.
pub fn core_fields() -> SelectableFields {
    let reference = REFERENCE.iter().map(|field| Field {
        label: format!("involvedObject.{field}").into(),
        paths: vec![format!("involvedObject.{field}").into(), format!("regarding.{field}").into()],
        zero: "",
    });
    let source =
        ["source.component", "deprecatedSource.component", "reportingComponent", "reportingController"];
    let others = [
        field("reason"),
        field("type"),
        first_of("reportingComponent", &["reportingComponent", "reportingController"]),
        first_of("source", &source),
    ];
    SelectableFields::namespaced(reference.chain(others).collect())
}

fn selectable_fields() -> SelectableFields {
    let targets = [
        "involvedObject.apiVersion",
        "involvedObject.fieldPath",
        "involvedObject.kind",
        "involvedObject.name",
        "involvedObject.namespace",
        "involvedObject.resourceVersion",
        "involvedObject.uid",
    ];
    let reference = REFERENCE.iter().zip(targets);
    let reference = reference.map(|(field, target)| (format!("regarding.{field}").into(), target));
    let aliases = reference.chain([("reportingController".into(), "reportingComponent")]);
    core_fields().with_aliases(aliases.collect())
}

const LIMIT: usize = 128;

const NOTE_LIMIT: usize = 1024;

/// The names of a version's fields.
struct Names {
    object: &'static str,
    note: &'static str,
    /// The name that errors use.
    controller: &'static str,
    own_controller: &'static str,
}

const OLD: Names = Names {
    object: "involvedObject",
    note: "message",
    controller: "reportingComponent",
    own_controller: "reportingComponent",
};

const NEW: Names = Names {
    object: "regarding",
    note: "note",
    controller: "reportingController",
    own_controller: "reportingController",
};

/// Rules for `v1`.
pub fn old(event: &ObjectMap, errors: &mut Errors) {
    sensible(event, &OLD, errors);
}

/// Rules for a new event of `events.k8s.io/v1`.
pub fn create(event: &ObjectMap, errors: &mut Errors) {
    sensible(event, &NEW, errors);
    series(event, errors);
    let time = At::member(event, "eventTime");
    if !time.is_set() {
        errors.required(&time, "");
    }
    let kind = At::member(event, "type");
    if !matches!(kind.text(), "Normal" | "Warning") {
        errors.invalid(&kind, "", &format!("has invalid value: {}", kind.text()));
    }
    for (member, name) in [
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("deprecatedSource", "source"),
    ] {
        if !is_zero(event.get(member)) {
            errors.invalid(&At::member(event, name), "", "needs to be unset");
        }
    }
}

/// Rules for an update of `events.k8s.io/v1`.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    sensible(new, &NEW, errors);
    let nothing = Value::Null;
    let differs = |name: &str| !same(new.get(name).unwrap_or(&nothing), old.get(name).unwrap_or(&nothing));
    if differs("series") {
        series(new, errors);
    }
    for (member, name) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        if is_zero(new.get(member)) && is_zero(old.get(member)) || !differs(member) {
            continue;
        }
        let place = At::member(new, name);
        let value = new.get(member).unwrap_or(&nothing);
        if matches!(name, "involvedObject" | "related") && (name != "related" || !value.is_null()) {
            errors.invalid(&place, internal(value), IMMUTABLE);
            continue;
        }
        // An absent text equals an empty one.
        match (value, old.get(member)) {
            (Value::Null, Some(Value::String(_)))
                if !member.ends_with("Time") && !member.ends_with("stamp") =>
            {
                errors.invalid(&place, "", IMMUTABLE);
            }
            (Value::Null, Some(Value::Number(_))) => errors.invalid(&place, 0, IMMUTABLE),
            _ => errors.invalid(&place, value, IMMUTABLE),
        }
    }
}

/// Upstream prints its internal struct.
fn internal(reference: &Value) -> Verbatim {
    let members = [
        ("Kind", "kind"),
        ("Namespace", "namespace"),
        ("Name", "name"),
        ("UID", "uid"),
        ("APIVersion", "apiVersion"),
        ("ResourceVersion", "resourceVersion"),
        ("FieldPath", "fieldPath"),
    ];
    let member = |(go, json): (&str, &str)| {
        let text = reference.get(json).and_then(Value::as_str).unwrap_or_default();
        format!("\"{go}\":{}", gotext::json(&text.into()))
    };
    Verbatim(format!("{{{}}}", members.map(member).join(",")))
}

fn is_zero(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Object(members)) => members.values().all(|value| is_zero(Some(value))),
        _ => false,
    }
}

fn series(event: &ObjectMap, errors: &mut Errors) {
    let series = At::member(event, "series");
    if !series.is_set() {
        return;
    }
    if series.get("count").int() < 2 {
        errors.invalid(&series.get("count"), "", "should be at least 2");
    }
    if !series.get("lastObservedTime").is_set() {
        errors.required(&series.get("lastObservedTime"), "");
    }
}

/// Rules that upstream has had from the beginning; events with an `eventTime` have to fulfil more of them.
fn sensible(event: &ObjectMap, names: &Names, errors: &mut Errors) {
    let object = event.get(names.object).unwrap_or(&Value::Null);
    let place = At::member(event, "involvedObject");
    let place = place.holding(object);
    let of_object = place.get("namespace");
    let metadata = At::member(event, "metadata");
    let namespace = metadata.get("namespace").text();
    let mismatch = "does not match event.namespace";
    if !At::member(event, "eventTime").is_set() {
        let agrees = match of_object.text() {
            "" => matches!(namespace, "" | "default"),
            own => own == namespace,
        };
        if !agrees {
            errors.invalid(&of_object, of_object.text(), mismatch);
        }
        return;
    }
    if of_object.text().is_empty() && !matches!(namespace, "default" | "kube-system") {
        errors.invalid(&of_object, of_object.text(), mismatch);
    }
    let controller = event.get(names.own_controller).and_then(Value::as_str).unwrap_or_default();
    let place = At::member(event, names.controller);
    if controller.is_empty() {
        errors.required(&place, "");
    }
    errors.invalid_each(&place, controller, label_key(controller));
    let limited = [("reportingInstance", LIMIT), ("action", LIMIT), ("reason", LIMIT)];
    for (name, limit) in limited {
        let text = At::member(event, name);
        errors.present(&text, "");
        too_long(&text, text.text(), limit, errors);
    }
    let note = event.get(names.note).and_then(Value::as_str).unwrap_or_default();
    too_long(&At::member(event, "message"), note, NOTE_LIMIT, errors);
}

fn too_long(at: &At<'_, '_>, text: &str, limit: usize, errors: &mut Errors) {
    if text.len() > limit {
        errors.invalid(at, "", &format!("can have at most {limit} characters"));
    }
}
