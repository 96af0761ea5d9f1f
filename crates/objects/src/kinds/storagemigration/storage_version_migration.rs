//! StorageVersionMigrations (`pkg/apis/storagemigration/validation`), and rules of metav1's conditions.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::columns::Column;
use crate::kinds::behavior::columns::cell::{NAME, PLAIN, cells, list, name, text, text_column};
use crate::kinds::behavior::format::{dns1035_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::rules::condition;
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("storageversionmigrations", "StorageVersionMigration").sub(&["status"]).conditional(),
    strategy: Strategy { status_metadata: RESET, ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let (resource, group) = (spec.dig(&["resource", "resource"]), spec.dig(&["resource", "group"]));
    if errors.present(&resource, "resource is required to be set") {
        joined(&resource, dns1035_label(resource.text()), errors);
    }
    if !group.text().is_empty() {
        joined(&group, dns1123_subdomain(group.text()), errors);
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (new, old) = (At::member(new, "spec"), At::member(old, "spec"));
    if !same(new.value(), old.value()) {
        // The spec is printed as a Go struct with its Go field name.
        let text = |name: &str| gotext::json(&new.dig(&["resource", name]).text().into());
        let (group, resource) = (text("group"), text("resource"));
        let shown = format!("{{\"Resource\":{{\"group\":{group},\"resource\":{resource}}}}}");
        errors.invalid(&new, Verbatim(shown), IMMUTABLE);
    }
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (new, old) = (At::member(new, "status"), At::member(old, "status"));
    let (version, before) = (new.get("resourceVersion"), old.get("resourceVersion"));
    if !version.text().is_empty() && !is_well_formed(version.text()) {
        let why = format!("resource version is not well formed: {}", version.text());
        errors.invalid(&version, version.text(), &why);
    }
    let all = new.get("conditions");
    conditions(&all, errors);
    if !before.text().is_empty() && before.text() != version.text() {
        errors.invalid(&version, version.text(), IMMUTABLE);
    }
    let is = |status: &At<'_, '_>, kind: &str| {
        let all = status.get("conditions");
        all.items().any(|c| c.get("type").text() == kind && c.get("status").text() == "True")
    };
    if is(&new, "Succeeded") && is(&new, "Failed") {
        let why = "Both success and failed conditions cannot be true at the same time";
        errors.invalid(&all, all.value(), why);
    }
    for (kind, word) in [("Succeeded", "Success"), ("Failed", "Failed")] {
        if is(&old, kind) && !is(&new, kind) {
            let why = format!("{word} condition cannot be set to false once it is true");
            errors.invalid(&all, all.value(), &why);
        }
    }
}

/// Whether the text is a number without leading zeros, and not zero.
fn is_well_formed(text: &str) -> bool {
    !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit())
}

fn joined(at: &At<'_, '_>, messages: Vec<String>, errors: &mut Errors) {
    if !messages.is_empty() {
        errors.invalid(at, at.text(), &messages.join(","));
    }
}

/// The rules of apimachinery's `ValidateConditions`.
fn conditions(list: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for one in list.items() {
        let kind = one.get("type");
        if !seen.insert(kind.text()) {
            errors.duplicate(&one, kind.text());
        }
        match kind.text() {
            "" => errors.required(&kind, "is required"),
            text => errors.invalid_each(&kind, text, label_key(text)),
        }
        let status = one.get("status");
        errors.present_one_of(&status, &["False", "True", "Unknown"]);
        let generation = one.get("observedGeneration");
        if generation.int() < 0 {
            errors.invalid(&generation, generation.int(), "must be greater than or equal to zero");
        }
        let time = one.get("lastTransitionTime");
        errors.present(&time, "");
        condition::reason(&one.get("reason"), errors);
        let message = one.get("message");
        if message.text().len() > condition::MESSAGE_MAX {
            errors.too_long(&message, condition::MESSAGE_MAX);
        }
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        Column { format: "", ..NAME },
        text_column("Resource", "Resource that is rewritten."),
        text_column("Status", "How far that is."),
    ],
    cells: Some(|object, _| {
        let resource = &object["spec"]["resource"];
        // If the group is empty, the dot stays.
        let resource = format!("{}.{}", text(&resource["resource"]), text(&resource["group"]));
        cells![name(object), resource, migration_state(object)]
    }),
    ..PLAIN
};

/// The last of these conditions that is true.
fn migration_state(migration: &Value) -> &str {
    let holds = |condition: &&Value| {
        condition["status"] == "True"
            && matches!(text(&condition["type"]), "Running" | "Failed" | "Succeeded")
    };
    let state = list(&migration["status"]["conditions"]).iter().rfind(holds);
    state.map_or("Unknown", |condition| text(&condition["type"]))
}
