//! Managers of a Scale: the managers of its parent's replicas, in terms of `autoscaling/v1`.

use std::collections::{HashMap, VecDeque};

use super::{OneVersion, Tracking, first_managers};
use crate::ObjectMap;
use crate::decode::configuration;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::patch::apply::fields::{FieldSet, field_paths};
use crate::patch::apply::filter::Filter;
use crate::patch::apply::managers::{Acting, Identity, Manager, Managers, Operation};
use crate::patch::apply::ownership::{self, Applied, Conflicts, Refusal};
use crate::patch::apply::schema::Schema;
use crate::resource::Resource;
use crate::scale::{self, GVK};
use crate::tree::{Value, json};

/// The kind Scale, of which only the spec can be written.
fn scale_kind(resource: &Resource) -> OneVersion {
    let schema = scale::kind(resource).ok().and_then(Schema::of);
    OneVersion { gvk: GVK, schema, filter: Filter::Exclude(field_paths(&[&["status"]])) }
}

/// The parent's field for replicas.
fn replicas_of(resource: &Resource) -> FieldSet {
    match &resource.behavior.scale {
        None => replicas(),
        Some(paths) => {
            let members: Vec<&str> = paths.spec_replicas.members().iter().map(|member| &**member).collect();
            field_paths(&[&members])
        }
    }
}

/// The field for replicas of a Scale; the same for every built-in kind with the subresource.
fn replicas() -> FieldSet {
    field_paths(&[&["spec", "replicas"]])
}

/// Updates the managers of the parent after its Scale was updated. Does nothing if the parent's managers are not
/// tracked.
pub fn track(
    resource: &Resource,
    parent: &mut ObjectMap,
    scales: (&ObjectMap, &ObjectMap),
    tracking: Tracking<'_>,
) {
    let Ok(managers) = Managers::decode(super::entries(parent).unwrap_or_default()) else { return };
    let seen = of_parent(resource, &managers);
    // If the replicas have no owner any more, an update does not create one.
    if seen.0.is_empty() {
        return;
    }
    let acting = acting(tracking, Operation::Update);
    let (old, new) = scales;
    if let Some(changed) = ownership::update(&scale_kind(resource), old, new, &seen, &acting) {
        super::put(parent, to_parent(resource, managers, &changed).encode());
    }
}

/// Gives two Scales the managers of their parents' replicas: the stored Scale, and the Scale that a write wants. With
/// `tracking`, the write is an update of the stored one.
pub fn show(
    resource: &Resource,
    (found, wanted): (&mut ObjectMap, &mut ObjectMap),
    (before, after): (Option<&Value>, Option<&Value>),
    tracking: Option<Tracking<'_>>,
) {
    let of = |entries: Option<&Value>| {
        let entries = entries.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        of_parent(resource, &Managers::decode(entries).unwrap_or_default())
    };
    let seen = of(before);
    let new = match tracking.filter(|_| !seen.0.is_empty()) {
        Some(tracking) => {
            let acting = acting(tracking, Operation::Update);
            ownership::update(&scale_kind(resource), found, wanted, &seen, &acting)
        }
        None => Some(of(after)),
    };
    super::put(wanted, new.as_ref().unwrap_or(&seen).encode());
    super::put(found, seen.encode());
}

/// Applies a Scale. Returns the Scale and the managers of its parent.
pub fn apply(
    resource: &Resource,
    parent: &ObjectMap,
    (live, config): (&ObjectMap, &ObjectMap),
    tracking: Tracking<'_>,
    conflicts: Conflicts,
) -> Result<Applied, Refusal> {
    let managers = Managers::decode(super::entries(parent).unwrap_or_default()).unwrap_or_default();
    let acting = acting(tracking, Operation::Apply);
    let scale = scale_kind(resource);
    let seen = of_parent(resource, &managers);
    let seen = if seen.0.is_empty() { first_managers(&scale, live, &acting, &zero()) } else { seen };
    let applied = ownership::apply(&scale, live, config, &seen, &acting, conflicts)?;
    let managers = to_parent(resource, managers, &applied.managers);
    Ok(Applied { object: applied.object, managers })
}

/// A Scale without values.
fn zero() -> ObjectMap {
    let scale = json!({
        "kind": GVK.kind.as_str(), "apiVersion": GVK.api_version().as_str(), "metadata": {}, "spec": {}, "status": {"replicas": 0},
    });
    scale.as_object().cloned().unwrap_or_default()
}

/// The error of an applied Scale that does not fit the schema.
pub fn unfit(config: &ObjectMap, why: &str) -> Error {
    configuration::unfit(config, &GVK, why)
}

fn acting(tracking: Tracking<'_>, operation: Operation) -> Acting {
    let identity = Identity {
        name: tracking.manager.to_owned(),
        operation,
        api_version: GVK.api_version().to_string(),
        subresource: Part::Scale.subresource().to_owned(),
    };
    Acting { identity, now: tracking.now.to_owned() }
}

fn of_parent(resource: &Resource, managers: &Managers) -> Managers {
    let (own, replicas) = (replicas_of(resource), replicas());
    let owners = managers.0.iter().filter(|manager| !manager.fields.intersection(&own).is_empty());
    let seen = owners.map(|manager| Manager {
        identity: Identity { api_version: GVK.api_version().to_string(), ..manager.identity.clone() },
        time: manager.time.clone(),
        fields: replicas.clone(),
    });
    Managers(seen.collect())
}

fn in_any_version(identity: &Identity) -> (&str, Operation, &str) {
    (&identity.name, identity.operation, &identity.subresource)
}

fn to_parent(resource: &Resource, parent: Managers, scale: &Managers) -> Managers {
    let own = replicas_of(resource);
    let owns = |manager: &&Manager, replicas: &FieldSet| !manager.fields.intersection(replicas).is_empty();
    let scaled = replicas();
    let mut owners: Vec<Option<&Manager>> =
        scale.0.iter().filter(|manager| owns(manager, &scaled)).map(Some).collect();
    // The positions of the parent's entries that have no counterpart yet.
    let mut places: HashMap<_, VecDeque<usize>> = HashMap::new();
    for (at, owner) in owners.iter().flatten().enumerate() {
        places.entry(in_any_version(&owner.identity)).or_default().push_back(at);
    }
    let mut managers = parent;
    for manager in &mut managers.0 {
        if !owns(&&*manager, &own) {
            continue;
        }
        match places.get_mut(&in_any_version(&manager.identity)).and_then(VecDeque::pop_front) {
            Some(at) => owners[at] = None,
            None => manager.fields = std::mem::take(&mut manager.fields).difference(&own),
        }
    }
    for owner in owners.into_iter().flatten() {
        let api_version = resource.definition.api_version().to_string();
        let identity = Identity { api_version, ..owner.identity.clone() };
        let before = managers.find(&identity).map(|manager| manager.fields.clone()).unwrap_or_default();
        managers.put(Manager { identity, time: None, fields: before.union(&own) });
    }
    managers.drop_empty();
    managers
}
