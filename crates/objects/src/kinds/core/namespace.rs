//! Namespaces.

use crate::fields;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::names::NameFormat;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::selectable::field;
use crate::kinds::behavior::strategy::Touched;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("namespaces", "Namespace")
        .short(&["ns"])
        .sub(&["finalize", "status"])
        // Emptying a namespace takes long; upstream does not offer to delete all of them at once.
        .deleted_one_by_one()
        .returns_deleted(),
    strategy: Strategy {
        names: NameFormat::Dns1123Label,
        status: StatusRule::Reset(r#"{"phase":"Active"}"#),
        hooks: &NamespaceHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status).with_part(finalized),
    warnings: KindWarnings::NONE,
    columns: &COLUMNS,
    fields: || SelectableFields::cluster(vec![field("status.phase")]),
    other_version: None,
};

#[derive(Debug)]
struct NamespaceHooks;

impl Hooks for NamespaceHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        prepare_create(object);
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        prepare_update(new, old);
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) {
        label(new);
    }

    fn prepare_part_update(&self, part: Part, new: &mut ObjectMap, _: &ObjectMap, _: &Writer<'_>) -> Touched {
        if part == Part::Finalize {
            label(new);
        }
        Touched::Part
    }

    fn finalized(&self, object: &ObjectMap) -> bool {
        !has_finalizers(object)
    }

    fn begin_deletion(&self, object: &ObjectMap, dependents: Dependents, now: &str) -> Option<ObjectMap> {
        begin_deletion(object, dependents, now)
    }

    fn precondition_words(&self) -> Option<&'static str> {
        Some("Precondition failed")
    }
}

/// Validates the finalizers in the spec, which are not those in the metadata.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let list = spec.get("finalizers");
    list.texts().for_each(|name| finalizer(&list, name, errors));
}

/// Validates the spec's finalizers after a write of the subresource `finalize`.
pub fn finalized(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    spec.get("finalizers").items().for_each(|item| finalizer(&item, item.text(), errors));
}

fn finalizer(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    errors.invalid_each(at, name, label_key(name));
    if !name.contains('/') && !matches!(name, "kubernetes" | "orphan" | "foregroundDeletion") {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        errors.invalid(at, name, why);
    }
}

pub fn update(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(new, "metadata");
    let status = At::member(new, "status");
    let phase = status.get("phase");
    let place = status.get("Phase");
    let (expected, why) = if metadata.get("deletionTimestamp").is_set() {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase.text_or("Active") != expected {
        errors.invalid(&place, phase.text(), why);
    }
}

const KUBERNETES: &str = "kubernetes";

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub fn prepare_create(object: &mut ObjectMap) {
    if !fields::items(object, &["spec", "finalizers"]).iter().any(|name| name == KUBERNETES) {
        let spec = fields::object_mut(object, "spec");
        match spec.get_mut("finalizers").and_then(Value::as_array_mut) {
            Some(finalizers) => finalizers.push(KUBERNETES.into()),
            None => {
                spec.insert("finalizers", vec![KUBERNETES].into());
            }
        }
    }
    label(object);
}

pub fn prepare_update(new: &mut ObjectMap, old: &ObjectMap) {
    let empty = ObjectMap::new();
    let stored = fields::object(old, "spec").unwrap_or(&empty);
    fields::restore(fields::object_mut(new, "spec"), stored, "finalizers");
    label(new);
}

/// Sets the label with the namespace's name. Upstream does so on every write, and again after a name was generated.
pub fn label(object: &mut ObjectMap) {
    let name = fields::text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let metadata = fields::object_mut(object, "metadata");
        fields::object_mut(metadata, "labels").insert(NAME_LABEL, name.into());
    }
}

pub fn has_finalizers(object: &ObjectMap) -> bool {
    !fields::items(object, &["spec", "finalizers"]).is_empty()
}

/// The first DELETE only marks the namespace, whatever finalizers it has. Later ones change nothing until the spec's
/// finalizers are gone; then the generic rules apply. Neither `deletionGracePeriodSeconds` nor `generation` is set.
pub fn begin_deletion(object: &ObjectMap, dependents: Dependents, now: &str) -> Option<ObjectMap> {
    let terminating = fields::at(object, &["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    if terminating {
        return has_finalizers(object).then(|| object.clone());
    }
    let mut object = object.clone();
    fields::object_mut(&mut object, "status").insert("phase", "Terminating".into());
    let metadata = fields::object_mut(&mut object, "metadata");
    metadata.insert("deletionTimestamp", now.into());
    set_finalizer(metadata, "orphan", wants_orphans(dependents));
    set_finalizer(metadata, "foregroundDeletion", wants_foreground(dependents));
    Some(object)
}

fn wants_orphans(dependents: Dependents) -> Option<bool> {
    match dependents {
        Dependents::Unspecified => None,
        Dependents::Policy(policy) => Some(policy == Propagation::Orphan),
        Dependents::Orphan(orphan) => Some(orphan),
    }
}

/// Unlike for other kinds, `orphanDependents: false` requests foreground deletion here
/// (`shouldHaveDeleteDependentsFinalizer`).
fn wants_foreground(dependents: Dependents) -> Option<bool> {
    match dependents {
        Dependents::Unspecified => None,
        Dependents::Policy(policy) => Some(policy == Propagation::Foreground),
        Dependents::Orphan(orphan) => Some(!orphan),
    }
}

/// Adds or removes a finalizer; `None` leaves it as it is.
fn set_finalizer(metadata: &mut ObjectMap, name: &str, wanted: Option<bool>) {
    let stored = fields::items(metadata, &["finalizers"]);
    let has = stored.iter().any(|own| own == name);
    let Some(wanted) = wanted.filter(|wanted| *wanted != has) else { return };
    let mut finalizers: Vec<Value> = stored.iter().filter(|own| *own != name).cloned().collect();
    if wanted {
        finalizers.push(name.into());
    }
    if finalizers.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers", finalizers.into());
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Status", "Whether the namespace is in use or going away.").at("status.phase"),
        AGE,
    ],
    ..PLAIN
};
