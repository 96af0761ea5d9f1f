//! PersistentVolumeClaims, and the templates of claims in other kinds.

pub mod source;

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, name, optional_text, text, text_column, wide,
};
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::gated_fields::Feature::CsiVolumeHealth;
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Of, Under};
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::rules::{resource, selector};
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::behavior::warnings::whole_bytes;
use crate::kinds::core::volume_source::columns::{
    access_modes as columns_access_modes, class as columns_class, phase, storage,
};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("persistentvolumeclaims", "PersistentVolumeClaim")
        .short(&["pvc"])
        .sub(&["status"])
        .returns_deleted(),
    strategy: Strategy {
        status: StatusRule::Reset(r#"{"phase":"Pending"}"#),
        gated_fields: GATED,
        hooks: &ClaimHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const GATED: &[Node] = &[Under("status", &[Of(CsiVolumeHealth, "healthStatus")])];

#[derive(Debug)]
struct ClaimHooks;

impl Hooks for ClaimHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        source::prepare(object, None);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        source::prepare(new, Some(old));
    }
}

pub const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

pub const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

pub fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    checked_spec(spec, true, errors);
}

fn checked_spec(spec: &At<'_, '_>, groups: bool, errors: &mut Errors) {
    let modes = spec.get("accessModes");
    errors.present(&modes, "at least 1 access mode is required");
    selector::validate(&spec.get("selector"), errors);
    access_modes(&modes, errors);
    requested_storage(spec, errors);
    class(&spec.get("storageClassName"), errors);
    let mode = spec.get("volumeMode");
    errors.one_of(&mode, mode.opt_text().unwrap_or("Filesystem"), &VOLUME_MODES);
    data_sources(spec, groups, errors);
    class(&spec.get("volumeAttributesClassName"), errors);
}

/// Validates access modes. `ReadWriteOncePod` cannot be combined with others.
pub fn access_modes(modes: &At<'_, '_>, errors: &mut Errors) {
    let (mut single, mut others) = (false, false);
    for mode in modes.texts() {
        let known = errors.one_of(modes, mode, &ACCESS_MODES);
        single |= mode == "ReadWriteOncePod";
        others |= known && mode != "ReadWriteOncePod";
    }
    if single && others {
        errors.forbidden(modes, "may not use ReadWriteOncePod with other access modes");
    }
}

fn requested_storage(spec: &At<'_, '_>, errors: &mut Errors) {
    let storage = spec.dig(&["resources", "requests", "storage"]);
    // Upstream's path lacks `requests`.
    let resources = spec.get("resources");
    let place = resources.key("storage").holding(storage.value());
    if storage.is_set() {
        resource::positive(&place, errors);
    } else {
        errors.required(&place, "");
    }
}

/// Validates the name of a class, if there is one.
pub fn class(at: &At<'_, '_>, errors: &mut Errors) {
    errors.in_format_if_given(at, dns1123_subdomain);
}

fn data_sources(spec: &At<'_, '_>, groups: bool, errors: &mut Errors) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for at in [source, reference] {
        if at.is_set() {
            data_source(&at, groups, errors);
        }
    }
    let namespace = reference.get("namespace");
    errors.in_format_if_given(&namespace, dns1123_label);
    if !source.is_set() || !reference.is_set() {
        return;
    }
    let equal =
        ["apiGroup", "kind", "name"].iter().all(|name| source.get(name).text() == reference.get(name).text());
    if !namespace.text().is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        errors.invalid(spec, &Value::Object(Map::new()), why);
    } else if !equal {
        errors.invalid(spec, &Value::Object(Map::new()), "must match dataSourceRef");
    }
}

fn data_source(at: &At<'_, '_>, groups: bool, errors: &mut Errors) {
    crate::kinds::core::volume_source::require(at, &["name", "kind"], errors);
    let (group, kind) = (at.get("apiGroup"), at.get("kind").text());
    if group.text().is_empty() && kind != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.invalid(at, kind, why);
    }
    if groups && !group.text().is_empty() {
        errors.invalid_each(&group.called("apiGroup"), group.text(), dns1123_subdomain(group.text()));
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (new_spec, old_spec) = (At::member(new, "spec"), At::member(old, "spec"));
    let group = |name: &str| old_spec.get(name).get("apiGroup").is_set();
    checked_spec(&new_spec, !group("dataSource") && !group("dataSourceRef"), errors);
    let status = At::member(new, "status");
    let allowed = with_allowed_changes(new, old, status.get("phase").text() == "Bound", errors);
    if !same(&allowed, old_spec.value()) {
        // Upstream appends the difference.
        let why = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.forbidden(&new_spec, why);
    }
    size_grows(&new_spec, &old_spec, &At::member(old, "status"), errors);
    let (mode, before) = (new_spec.get("volumeMode"), old_spec.get("volumeMode"));
    if mode.opt_text().unwrap_or("Filesystem") != before.opt_text().unwrap_or("Filesystem") {
        // Upstream reports errors at this place.
        errors.invalid(&At::member(new, "volumeMode"), mode.text(), IMMUTABLE);
    }
    attributes_class(&new_spec, &old_spec, &At::member(old, "status"), errors);
}

/// The new spec with changes reverted that are allowed.
fn with_allowed_changes(new: &ObjectMap, old: &ObjectMap, bound: bool, errors: &mut Errors) -> Value {
    let (spec, before) = (At::member(new, "spec"), At::member(old, "spec"));
    let mut munged = spec.value().as_object().cloned().unwrap_or_default();
    let mut put_back = |name: &str| {
        let value = before.get(name).value();
        if value.is_null() { munged.shift_remove(name) } else { munged.insert(name, value.clone()) }
    };
    if before.get("volumeName").text().is_empty() {
        put_back("volumeName");
    }
    let annotation = |object| At::member(object, "metadata").get("annotations").key(BETA_CLASS).opt_text();
    let (class, class_before) = (annotation(new), annotation(old));
    let (name, name_before) = (spec.get("storageClassName"), before.get("storageClassName"));
    let moved = class_before.is_some() && !name_before.is_set() && name.opt_text() == class_before;
    if moved && class.is_none_or(|class| Some(class) == class_before) {
        put_back("storageClassName");
    } else {
        if class.unwrap_or_default() != class_before.unwrap_or_default() {
            let at = At::member(new, "metadata");
            errors.invalid(&at.dig(&["annotations", BETA_CLASS]), class.unwrap_or_default(), IMMUTABLE);
        }
        let first = name.is_set() && !name_before.is_set();
        if first && class_before.is_none_or(|class| name.opt_text() == Some(class)) {
            put_back("storageClassName");
        }
    }
    if bound {
        put_back("volumeAttributesClassName");
        let path = ["resources", "requests"];
        if spec.dig(&path).is_set() {
            let storage = before.dig(&["resources", "requests", "storage"]).value().clone();
            let requests = munged.get_mut("resources").and_then(|value| value.get_mut("requests"));
            if let Some(requests) = requests.and_then(Value::as_object_mut) {
                requests.insert("storage", storage);
            }
        }
    }
    Value::Object(munged)
}

/// A claim may only grow. If an expansion has failed, it may shrink to its present capacity.
fn size_grows(new: &At<'_, '_>, old: &At<'_, '_>, status: &At<'_, '_>, errors: &mut Errors) {
    let path = ["resources", "requests", "storage"];
    let (size, before) = (new.dig(&path), old.dig(&path));
    let has = resource::nanos(&status.dig(&["capacity", "storage"]));
    if resource::nanos(&size) < resource::nanos(&before) && resource::nanos(&size) <= has {
        errors.forbidden(&size, "field can not be less than status.capacity");
    }
}

fn attributes_class(new: &At<'_, '_>, old: &At<'_, '_>, status: &At<'_, '_>, errors: &mut Errors) {
    let class = new.get("volumeAttributesClassName");
    let changed = class.opt_text() != old.get("volumeAttributesClassName").opt_text();
    if !changed || !status.get("currentVolumeAttributesClassName").is_set() {
        return;
    }
    let what = match class.opt_text() {
        None => "nil",
        Some("") => "empty string",
        Some(_) => return,
    };
    let why =
        format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
    errors.forbidden(&class, &why);
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let (spec, status) = (At::member(new, "spec"), At::member(new, "status"));
    if spec.get("accessModes").is_empty() {
        errors.required(&At::member(new, "Spec").get("accessModes"), "");
    }
    for (_, amount) in status.get("capacity").entries() {
        basic_amount(&amount, errors);
    }
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let states = status.get("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        resource_key(&states, name, errors);
        if !STATES.contains(&state.text()) {
            errors.not_supported(&states, name, &STATES);
        }
    }
    let allocated = status.get("allocatedResources");
    for (name, amount) in allocated.entries() {
        if resource_key(&allocated, name, errors) && basic_amount(&amount, errors) {
            resource::amount(&amount, "storage", errors);
        }
    }
}

fn resource_key(at: &At<'_, '_>, name: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    errors.invalid_each(at, name, label_key(name));
    if errors.len() == before && resource::is_native(name) && name != "storage" {
        errors.not_supported(at, name, &["storage"]);
    }
    errors.len() == before
}

/// Validates that an amount is not negative, in whole units.
pub fn basic_amount(at: &At<'_, '_>, errors: &mut Errors) -> bool {
    let units = crate::quantity::units(resource::nanos(at));
    if units < 0 {
        errors.invalid(at, units, "must be a valid resource quantity");
    }
    units >= 0
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let metadata = At::member(object, "metadata");
    let annotations = metadata.get("annotations");
    let class = annotations.key(BETA_CLASS);
    if class.is_set() {
        remarks.on(&class, r#"deprecated since v1.8; use "storageClassName" attribute instead"#);
    }
    requests(&At::member(object, "spec"), remarks);
}

/// Warnings about the resources that a claim requests.
pub fn requests(spec: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let resources = spec.get("resources");
    for list in ["requests", "limits"] {
        whole_bytes(&resources.get(list).key("storage"), remarks);
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the claim is bound."),
        text_column("Volume", "Volume that the claim is bound to."),
        text_column("Capacity", "Size of that volume."),
        text_column("Access Modes", "How that volume can be mounted."),
        text_column("StorageClass", "Storage class that was asked for."),
        text_column("VolumeAttributesClass", "Volume attributes class that was asked for."),
        AGE,
        wide(text_column("VolumeMode", "Whether a file system or raw blocks were asked for.")),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(claim: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&claim["spec"], &claim["status"]);
    let volume = text(&spec["volumeName"]);
    let (capacity, modes) = match volume {
        "" => (String::new(), String::new()),
        _ => (storage(&status["capacity"]), columns_access_modes(&status["accessModes"])),
    };
    cells![
        name(claim),
        phase(claim),
        volume,
        capacity,
        modes,
        columns_class(claim),
        optional_text(&spec["volumeAttributesClassName"], "<unset>"),
        age(claim, now),
        optional_text(&spec["volumeMode"], "<unset>"),
    ]
}
