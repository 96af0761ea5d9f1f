//! PersistentVolumes.

mod sources;

use jiff::Timestamp;

pub use self::sources::VolumeSpecIn;
use self::sources::{SOURCES, inline, is_root, sources};
use super::node::labels;
use super::pod_spec::affinity;
use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, name, optional_text, text, text_column, wide,
};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{IMMUTABLE, same};
use crate::kinds::behavior::rules::{resource, selector};
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::persistent_volume_claim::{
    BETA_CLASS, VOLUME_MODES, access_modes, basic_amount, class,
};
use crate::kinds::core::volume_source::columns::{
    access_modes as columns_access_modes, class as columns_class, phase, storage,
};
use crate::kinds::core::volume_source::warnings::{OF_PODS, spelled};
use crate::kinds::prelude::*;
use crate::{fields, gotext};

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("persistentvolumes", "PersistentVolume")
        .short(&["pv"])
        .sub(&["status"])
        .returns_deleted(),
    strategy: Strategy {
        status: StatusRule::Reset(r#"{"phase":"Pending"}"#),
        hooks: &VolumeHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

#[derive(Debug)]
struct VolumeHooks;

impl Hooks for VolumeHooks {
    fn prepare_create(&self, object: &mut ObjectMap, writer: &Writer<'_>) {
        prepare_create(object, writer.now);
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, writer: &Writer<'_>) {
        prepare_status_update(new, old, writer.now);
    }
}

const RECLAIM: [&str; 3] = ["Delete", "Recycle", "Retain"];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    spec(&At::member(object, "spec"), VolumeSpecIn::Volume(metadata.get("name").text()), errors);
}

pub fn spec(spec: &At<'_, '_>, place: VolumeSpecIn<'_>, errors: &mut Errors) {
    if place == VolumeSpecIn::Inline {
        inline(spec, errors);
    }
    let modes = spec.get("accessModes");
    errors.present(&modes, "");
    access_modes(&modes, errors);
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if place != VolumeSpecIn::Inline {
        capacity(&spec.get("capacity"), errors);
        errors.one_of(&policy, policy.text_or("Retain"), &RECLAIM);
        let affinity = spec.get("nodeAffinity");
        if affinity.is_set() {
            node_affinity(&affinity, errors);
        }
    }
    sources(spec, if let VolumeSpecIn::Volume(name) = place { name } else { "" }, errors);
    let path = spec.dig(&["hostPath", "path"]);
    if is_root(path.text()) && policy.text() == "Recycle" {
        errors.forbidden(&policy, "may not be 'recycle' for a hostPath mount of '/'");
    }
    if place == VolumeSpecIn::Inline {
        return;
    }
    class(&spec.get("storageClassName"), errors);
    let mode = spec.get("volumeMode");
    errors.one_of(&mode, mode.opt_text().unwrap_or("Filesystem"), &VOLUME_MODES);
    let attributes = spec.get("volumeAttributesClassName");
    if let Some(name) = attributes.opt_text() {
        if name.is_empty() {
            errors.required(&attributes, "an empty string is disallowed");
        }
        class(&attributes, errors);
        if !spec.get("csi").is_set() {
            errors.required(&spec.get("csi"), "has to be specified when using volumeAttributesClassName");
        }
    }
}

fn capacity(at: &At<'_, '_>, errors: &mut Errors) {
    errors.present(at, "");
    if !at.key("storage").is_set() || at.len() > 1 {
        errors.not_supported(at, selector::shown_map(at), &["storage"]);
    }
    for (_, amount) in at.entries() {
        basic_amount(&amount, errors);
        resource::positive(&amount, errors);
    }
}

fn node_affinity(at: &At<'_, '_>, errors: &mut Errors) {
    let required = at.get("required");
    if required.is_set() {
        affinity::node_selector(&required, errors);
    } else {
        errors.required(&required, "must specify required node constraints");
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (spec, before) = (At::member(new, "spec"), At::member(old, "spec"));
    let first_secret = !before.dig(&["csi", "controllerExpandSecretRef"]).is_set();
    let changed = SOURCES.iter().any(|(field, _, _)| {
        let (new, old) = (spec.get(field).value(), before.get(field).value());
        // The secret for expansion may be added later.
        let without = |value: &Value| {
            let mut value = value.clone();
            if let Some(csi) = value.as_object_mut() {
                csi.shift_remove("controllerExpandSecretRef");
            }
            value
        };
        let later = *field == "csi" && first_secret && !old.is_null() && !new.is_null();
        !(same(new, old) || later && same(&without(new), old))
    });
    if changed {
        // Upstream appends the difference.
        let place = At::member(new, "spec");
        let why = "spec.persistentvolumesource is immutable after creation";
        errors.forbidden(&place.get("persistentvolumesource"), why);
    }
    let mode = |spec: &At<'_, '_>| spec.get("volumeMode").opt_text().unwrap_or("Filesystem").to_owned();
    if mode(&spec) != mode(&before) {
        // Upstream reports errors at this place.
        errors.invalid(&At::member(new, "volumeMode"), &*mode(&spec), IMMUTABLE);
    }
    affinity_stays(new, &spec.get("nodeAffinity"), &before.get("nodeAffinity"), errors);
    let class = "volumeAttributesClassName";
    if before.get(class).is_set() && !spec.get(class).is_set() {
        errors.forbidden(&spec.get(class), "update from non-nil value to nil is forbidden");
    }
}

/// The affinity must not change, except that beta labels may be replaced by their stable names.
fn affinity_stays(object: &ObjectMap, new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    if !old.is_set() {
        return;
    }
    let mut expected = old.value().clone();
    let terms = expected.pointer_mut("/required/nodeSelectorTerms").and_then(Value::as_array_mut);
    let path = ["required", "nodeSelectorTerms"];
    for (term, new) in terms.into_iter().flatten().zip(new.dig(&path).items()) {
        let requirements = term.get_mut("matchExpressions").and_then(Value::as_array_mut);
        for (old, new) in requirements.into_iter().flatten().zip(new.get("matchExpressions").items()) {
            let renamed = old.get("key").and_then(Value::as_str).map(stable_label);
            if renamed == Some(new.get("key").text()) {
                old["key"] = new.get("key").value().clone();
            }
        }
    }
    if !same(new.value(), &expected) {
        let why = format!("{IMMUTABLE}, except for updating from beta label to GA");
        let place = At::member(object, "nodeAffinity");
        // Upstream prints its internal struct.
        errors.invalid(&place, Verbatim(gotext::json(new.value())), &why);
    }
}

/// The stable name of a beta label. Upstream accepts that an unknown label becomes empty; another rule refuses that.
fn stable_label(beta: &str) -> &'static str {
    match beta {
        "failure-domain.beta.kubernetes.io/zone" => "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region" => "topology.kubernetes.io/region",
        "beta.kubernetes.io/os" => "kubernetes.io/os",
        "beta.kubernetes.io/arch" => "kubernetes.io/arch",
        "beta.kubernetes.io/instance-type" => "node.kubernetes.io/instance-type",
        _ => "",
    }
}

const BETA_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";

const OF_VOLUMES: [&str; 6] = ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"];

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    let annotations = metadata.get("annotations");
    let old = [
        (BETA_CLASS, r#"deprecated since v1.8; use "storageClassName" attribute instead"#),
        (BETA_OPTIONS, r#"deprecated since v1.31; use "mountOptions" attribute instead"#),
    ];
    for (key, why) in old {
        let at = annotations.key(key);
        if at.is_set() {
            remarks.on(&at, why);
        }
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        let why = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
                   provisioning.";
        remarks.on(&policy, why);
    }
    for term in spec.dig(&["nodeAffinity", "required", "nodeSelectorTerms"]).items() {
        labels::term(&term, false, remarks);
    }
    for name in OF_VOLUMES {
        let source = spec.get(name);
        let why = OF_PODS.iter().find(|(known, _)| *known == name).map(|(_, why)| why);
        if let Some(why) = why.filter(|_| source.is_set()) {
            remarks.on(&source.called(spelled(name)), why);
        }
    }
}

const SINCE: &str = "lastPhaseTransitionTime";

pub fn prepare_create(object: &mut ObjectMap, now: &str) {
    fields::object_mut(object, "status").insert(SINCE, now.into());
}

pub fn prepare_status_update(new: &mut ObjectMap, old: &ObjectMap, now: &str) {
    let path = ["status", "phase"];
    let moved = fields::text(new, &path) != fields::text(old, &path);
    let stored = fields::text(old, &["status", SINCE]);
    // A client may set the time itself.
    let since = match fields::text(new, &["status", SINCE]) {
        "" if !moved => stored,
        given if moved && (given.is_empty() || given == stored) => now,
        _ => return,
    };
    if !since.is_empty() {
        fields::object_mut(new, "status").insert(SINCE, since.into());
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Capacity", "Size of the volume."),
        text_column("Access Modes", "How the volume can be mounted."),
        text_column("Reclaim Policy", "What becomes of the volume when its claim is gone."),
        text_column("Status", "Whether the volume is bound."),
        text_column("Claim", "Claim that the volume is bound to."),
        text_column("StorageClass", "Storage class of the volume."),
        text_column("VolumeAttributesClass", "Volume attributes class of the volume."),
        text_column("Reason", "Why the volume failed."),
        AGE,
        wide(text_column("VolumeMode", "Whether the volume holds a file system or raw blocks.")),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(volume: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&volume["spec"], &volume["status"]);
    cells![
        name(volume),
        storage(&spec["capacity"]),
        columns_access_modes(&spec["accessModes"]),
        text(&spec["persistentVolumeReclaimPolicy"]),
        phase(volume),
        shown_claim(&spec["claimRef"]),
        columns_class(volume),
        optional_text(&spec["volumeAttributesClassName"], "<unset>"),
        text(&status["reason"]),
        age(volume, now),
        optional_text(&spec["volumeMode"], "<unset>"),
    ]
}

fn shown_claim(reference: &Value) -> String {
    if !reference.is_object() {
        return String::new();
    }
    format!("{}/{}", text(&reference["namespace"]), text(&reference["name"]))
}
