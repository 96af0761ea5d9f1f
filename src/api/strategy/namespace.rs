//! Namespaces: their finalizers live in the spec, and they end in two steps (`pkg/registry/core/namespace`).

use crate::api::options::delete::{DeleteOptions, Dependents, Propagation};
use crate::api::{ObjectMap, fields};
use crate::tree::Value;

const KUBERNETES: &str = "kubernetes";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn prepare_create(object: &mut ObjectMap) {
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

pub(super) fn prepare_update(new: &mut ObjectMap, old: &ObjectMap) {
    let empty = ObjectMap::new();
    let stored = fields::object(old, "spec").unwrap_or(&empty);
    fields::restore(fields::object_mut(new, "spec"), stored, "finalizers");
    label(new);
}

/// Upstream defaults the label on every write, and once more when a generated name is known.
pub(super) fn label(object: &mut ObjectMap) {
    let name = fields::text(object, &["metadata", "name"]).to_owned();
    if !name.is_empty() {
        let metadata = fields::object_mut(object, "metadata");
        fields::object_mut(metadata, "labels").insert(NAME_LABEL, name.into());
    }
}

pub(super) fn has_finalizers(object: &ObjectMap) -> bool {
    !fields::items(object, &["spec", "finalizers"]).is_empty()
}

/// The first DELETE only marks, whatever finalizers there are; a later one changes nothing until the spec's
/// finalizers are gone, and then the generic rules go on. Neither `deletionGracePeriodSeconds` nor `generation` is set.
pub(super) fn begin_deletion(object: &ObjectMap, options: &DeleteOptions, now: &str) -> Option<ObjectMap> {
    let terminating = fields::at(object, &["metadata", "deletionTimestamp"]).is_some_and(|t| !t.is_null());
    if terminating {
        return has_finalizers(object).then(|| object.clone());
    }
    let mut object = object.clone();
    fields::object_mut(&mut object, "status").insert("phase", "Terminating".into());
    let metadata = fields::object_mut(&mut object, "metadata");
    metadata.insert("deletionTimestamp", now.into());
    set_finalizer(metadata, "orphan", wants_orphans(options));
    set_finalizer(metadata, "foregroundDeletion", wants_foreground(options));
    Some(object)
}

fn wants_orphans(options: &DeleteOptions) -> Option<bool> {
    match options.dependents {
        Dependents::Unspecified => None,
        Dependents::Policy(policy) => Some(policy == Propagation::Orphan),
        Dependents::Orphan(orphan) => Some(orphan),
    }
}

/// Unlike other kinds, `orphanDependents: false` means the foreground here (`shouldHaveDeleteDependentsFinalizer`).
fn wants_foreground(options: &DeleteOptions) -> Option<bool> {
    match options.dependents {
        Dependents::Unspecified => None,
        Dependents::Policy(policy) => Some(policy == Propagation::Foreground),
        Dependents::Orphan(orphan) => Some(!orphan),
    }
}

/// `None` leaves things as they are.
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
