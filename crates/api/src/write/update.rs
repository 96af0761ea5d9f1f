//! The steps of an update, as pure functions: upstream's `BeforeUpdate` and the checks around it.

use jiff::Timestamp;

use super::{Current, Next};
use crate::causes::Causes;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::metrics::Comparison;
use crate::resource::Resource;
use crate::tree::Value;
use crate::{ObjectMap, Target, meta, metadata, metadata_mut, ownership};

/// Checks that the object replaces the version that it names, restores what cannot change, and lets the kind make its
/// changes.
pub(super) fn prepare(
    target: Target<'_>,
    part: Part,
    new: &mut ObjectMap,
    current: &Current,
    writer: &Writer<'_>,
) -> Result<(), Error> {
    let (empty, old, strategy) = (ObjectMap::new(), &current.object, &target.resource.behavior.strategy);
    let own = metadata_mut(new);
    check_revision(target, own, current)?;
    meta::drop_empty(own);
    meta::update::prepare(own, metadata(old).unwrap_or(&empty));
    // The new version's metadata carry the revision that it was made from; the store replaces it.
    own.insert("resourceVersion", current.stored.revision().to_string().into());
    match part {
        Part::Main => {
            strategy.hooks.begin_update(new, old);
            strategy.prepare_update(new, old, writer);
        }
        Part::Scale => strategy.prepare_update(new, old, writer),
        Part::Status => strategy.prepare_status_update(new, old, writer),
        part => strategy.prepare_part_update(part, new, old, writer),
    }
    Ok(())
}

fn check_revision(target: Target<'_>, new: &meta::Metadata, current: &Current) -> Result<(), Error> {
    let resource = target.resource;
    match meta::update::expected_revision(new)? {
        Some(expected) if expected != current.stored.revision() => {
            Err(Error::modified(resource.group_resource(), target.name))
        }
        None if !resource.definition.behavior.unconditional_update => {
            Err(Error::revision_required(&resource.group_resource(), target.name))
        }
        _ => Ok(()),
    }
}

/// The violations of the kind's rules.
pub(super) fn causes(
    resource: &Resource,
    part: Part,
    new: &ObjectMap,
    old: &ObjectMap,
    now: Timestamp,
) -> Result<Causes, Error> {
    let empty = ObjectMap::new();
    let (own, stored) = (metadata(new).unwrap_or(&empty), metadata(old).unwrap_or(&empty));
    let mut causes = meta::update::validate(own, stored, resource.definition.scope);
    if let Some(custom) = &resource.custom {
        let scale = resource.behavior.scale_causes(part, new);
        causes.append(custom.version.version().update_causes(part, new, old, scale));
        return Ok(causes);
    }
    causes.append(match part {
        Part::Main | Part::Scale => resource.behavior.rules.update(new, old),
        Part::Status => resource.behavior.rules.status(new, old, now),
        Part::EphemeralContainers | Part::Resize | Part::Finalize => resource.behavior.rules.part(new),
        Part::Approval => Ok(Causes::default()),
    }?);
    causes.extend(resource.behavior.strategy.part_causes(part, new, old));
    Ok(causes)
}

/// Decides what the update does, and tells how it was compared with the stored version.
pub(crate) fn next(resource: &Resource, mut new: ObjectMap, old: &ObjectMap) -> (Next, Comparison) {
    if completes_deletion(resource, &new, old) {
        return (Next::Delete(Some(new)), Comparison::Fast);
    }
    let compared = ownership::restore_times(old, &mut new, same);
    let next = if same(&new, old) { Next::Unchanged } else { Next::Put(new) };
    (next, compared)
}

/// Whether the update deletes the object: it was terminating, and the last thing it waited for is removed.
fn completes_deletion(resource: &Resource, new: &ObjectMap, old: &ObjectMap) -> bool {
    let terminating = metadata(old).is_some_and(meta::is_terminating);
    let released = metadata(new).is_some_and(meta::update::completes_deletion);
    terminating && released && resource.behavior.strategy.finalized(new)
}

fn same(new: &ObjectMap, old: &ObjectMap) -> bool {
    // Absent and null mean the same. Comparing maps does not depend on the order of members.
    let absent = |object: &ObjectMap, name: &str| object.get(name).is_none_or(Value::is_null);
    let names = new.keys().chain(old.keys());
    names.into_iter().all(|name| new.get(name) == old.get(name) || (absent(new, name) && absent(old, name)))
}
