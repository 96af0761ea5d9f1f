//! PUT: a new version of an object, or of a part of it.

use super::error::Error;
use super::meta;
use super::meta::owners::{Found, drop_repeated};
use super::modify::{Current, Modified, Next};
use super::options::write::WriteOptions;
use super::ownership::{self, Tracking};
use super::resource::Resource;
use super::strictness::Requester;
use super::{Api, ObjectMap, Target, admission, create, metadata_mut, now};
use crate::causes::Causes;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::strategy::Writer;
use crate::tree::Value;

/// What an update may do about the stored uid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UidRule {
    /// A PUT names the object it means: another uid is a conflict.
    Precondition,
    /// A patch changes the object it found: another uid is a change of an immutable field.
    Immutable,
}

/// Who changes what of an object.
#[derive(Clone, Copy)]
pub(super) struct Change<'a> {
    pub part: Part,
    pub uid: UidRule,
    pub requester: Requester<'a>,
    /// The field manager; `None` if the new version has its managers already.
    pub manager: Option<&'a str>,
}

impl Api {
    /// Replaces the object, or a part of it, by what `read` gives, which is [closed](crate::codec::managed), and which the
    /// caller has checked to be of this kind and version. It is asked again where somebody else was faster, for that is cheaper than a copy for each update.
    pub async fn update(
        &self,
        target: Target<'_>,
        part: Part,
        read: impl Fn() -> Result<ObjectMap, Error>,
        options: &WriteOptions,
        requester: Requester<'_>,
    ) -> Result<Modified, Error> {
        let resource = target.resource;
        let body = || -> Result<ObjectMap, Error> {
            let mut body = read()?;
            resource.default(&mut body);
            check_place(target, &mut body)?;
            drop_repeated(metadata_mut(&mut body), Found::InBody, requester.warnings);
            Ok(body)
        };
        let mut first = body()?;
        meta::update::expected_revision(metadata_mut(&mut first))?;
        let mut first = Some(first);
        let mut next = || first.take().map_or_else(&body, Ok);
        let creates = part == Part::Main && resource.definition.behavior.create_on_update;
        if creates {
            admission::namespace::admit_update_or_create(self, target).await?;
        }
        self.modify(target, options.dry_run, |current| match current {
            Some(current) => {
                let manager = Some(options.manager());
                let change = Change { part, uid: UidRule::Precondition, requester, manager };
                next_version(target, change, next()?, current)
            }
            None if creates => {
                let mut object = next()?;
                meta::update::check_uid(
                    metadata_mut(&mut object),
                    &meta::Metadata::new(),
                    &resource.group_resource(),
                    target.name,
                )?;
                ownership::track_create(resource, &mut object, options.manager());
                let object = create::prepared(self, target, object, requester)?;
                create::validate(self, target, &object, requester.warnings)?;
                Ok(Next::Put(object))
            }
            None => Err(target.not_found()),
        })
        .await
    }
}

/// The body has to mean the object that the URL names.
pub(super) fn check_place(target: Target<'_>, body: &mut ObjectMap) -> Result<(), Error> {
    let metadata = metadata_mut(body);
    meta::check_name(metadata, target.name)?;
    let namespaced = target.resource.definition.namespaced();
    meta::ensure_namespace(metadata, namespaced.then_some(target.namespace))
}

/// What the kind's rules say of the change.
fn judge(resource: &Resource, part: Part, new: &ObjectMap, old: &ObjectMap) -> Result<Causes, Error> {
    let rules = &resource.behavior.rules;
    Ok(match part {
        Part::Main | Part::Scale => rules.update(new, old)?,
        Part::Status => rules.status(new, old)?,
        Part::EphemeralContainers | Part::Resize | Part::Finalize => rules.part(new)?,
        Part::Approval => Causes::default(),
    })
}

/// What becomes of `current` when `new` is put in its place: upstream's `BeforeUpdate` and the checks around it.
pub(super) fn next_version(
    target: Target<'_>,
    change: Change<'_>,
    mut new: ObjectMap,
    current: &Current,
) -> Result<Next, Error> {
    let resource = target.resource;
    if let Some(manager) = change.manager {
        let tracking = Tracking { manager, part: change.part };
        ownership::track_update(resource, &current.object, &mut new, tracking);
    }
    let empty = ObjectMap::new();
    let old_metadata = super::metadata(&current.object).unwrap_or(&empty);
    let metadata = metadata_mut(&mut new);
    if change.uid == UidRule::Precondition {
        meta::update::check_uid(metadata, old_metadata, &resource.group_resource(), target.name)?;
    }
    check_revision(target, metadata, current)?;
    meta::drop_empty(metadata);
    meta::update::prepare(metadata, old_metadata);
    // Metadata of the new version says what it was made from; the store replaces it.
    metadata.insert("resourceVersion", current.stored.revision().to_string().into());
    let Requester { user, warnings } = change.requester;
    let writer = Writer { user, now: &now(), warnings };
    if change.part == Part::Main {
        resource.plugins.update(&mut new, &current.object);
        resource.behavior.strategy.hooks.begin_update(&mut new, &current.object);
    }
    match change.part {
        Part::Main | Part::Scale => resource.behavior.strategy.prepare_update(&mut new, &current.object),
        Part::Status => resource.behavior.strategy.prepare_status_update(&mut new, &current.object, &writer),
        part => resource.behavior.strategy.prepare_part_update(part, &mut new, &current.object, &writer),
    }
    let mut causes = meta::update::validate(
        super::metadata(&new).unwrap_or(&empty),
        old_metadata,
        resource.definition.scope,
    );
    causes.append(judge(resource, change.part, &new, &current.object)?);
    causes.extend(resource.behavior.strategy.part_causes(change.part, &new, &current.object));
    if !causes.is_empty() {
        let (kind, name) = (resource.group_kind(), target.name.to_owned());
        return Err(Error::Invalid { kind, name, causes: causes.into_vec() });
    }
    resource.behavior.warnings.update(change.part, &new, &current.object, warnings);
    if completes_deletion(resource, &new, &current.object) {
        return Ok(Next::Delete(Some(new)));
    }
    ownership::restore_times(&current.object, &mut new, same);
    if same(&new, &current.object) {
        return Ok(Next::Unchanged);
    }
    Ok(Next::Put(new))
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

/// An update that removes the last thing a terminating object waits for deletes it.
fn completes_deletion(resource: &Resource, new: &ObjectMap, old: &ObjectMap) -> bool {
    let terminating = super::metadata(old).is_some_and(meta::is_terminating);
    let released = super::metadata(new).is_some_and(meta::update::completes_deletion);
    terminating && released && resource.behavior.strategy.finalized(new)
}

fn same(new: &ObjectMap, old: &ObjectMap) -> bool {
    // Absent and null mean the same; comparing maps does not depend on the order of members.
    let absent = |object: &ObjectMap, name: &str| object.get(name).is_none_or(Value::is_null);
    let names = new.keys().chain(old.keys());
    names.into_iter().all(|name| new.get(name) == old.get(name) || (absent(new, name) && absent(old, name)))
}
