//! Results of an apply: the object with its managers, and the refusals.

use super::{Kind, Tracking, acting, conflict_error, entries, first_managers, put};
use crate::decode::configuration;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::patch::apply::managers::{Acting, Managers, Operation};
use crate::patch::apply::ownership::{Applied, Conflicts, Refusal, apply};
use crate::{ObjectMap, Target};

/// The result of an apply by a manager that overrules all others, to an object of a built-in kind.
pub fn apply_by_force(
    target: Target<'_>,
    object: &ObjectMap,
    config: &ObjectMap,
    manager: &str,
    now: &str,
) -> Result<ObjectMap, Error> {
    let kind = Kind::new(target.resource, Part::Main);
    let acting = acting(target.resource, Tracking { manager, part: Part::Main, now }, Operation::Apply);
    let mut live = object.clone();
    let managers = taken_managers(&kind, &mut live, &acting)?;
    let applied = apply(&kind, &live, config, &managers, &acting, Conflicts::Force)
        .map_err(|refusal| refused(target, config, refusal))?;
    finished(target, config, applied)
}

/// Takes the managers out of an object. One without managers gets its first.
pub(crate) fn taken_managers(
    kind: &Kind<'_>,
    live: &mut ObjectMap,
    acting: &Acting,
) -> Result<Managers, Error> {
    let managers = Managers::decode(entries(live).unwrap_or_default())
        .map_err(|why| Error::Unclassified(format!("failed to decode managed fields: {why}")))?;
    put(live, None);
    Ok(if managers.0.is_empty() { first_managers(kind, live, acting, kind.zero()) } else { managers })
}

/// The object to store, with its managers.
pub fn finished(target: Target<'_>, config: &ObjectMap, applied: Applied) -> Result<ObjectMap, Error> {
    let resource = target.resource;
    let kind = &resource.definition.kind;
    let mut object = applied.object;
    if resource.conform(&mut object).is_err() {
        let converted = kind.convert(&mut object);
        let conformed = converted.and_then(|()| resource.conform(&mut object));
        conformed.map_err(|why| configuration::unconverted(config, &kind.gvk, &why))?;
    }
    resource.default(&mut object)?;
    put(&mut object, applied.managers.encode());
    Ok(object)
}

pub fn refused(target: Target<'_>, config: &ObjectMap, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Conflicts(found) => conflict_error(&found),
        Refusal::Unfit(why) => configuration::unfit(config, target.resource.definition.gvk(), &why),
    }
}
