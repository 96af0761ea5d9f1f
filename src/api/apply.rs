//! Server-side apply: what a manager wants of an object, all of it each time.

use super::error::{Cause, CauseReason, Error};
use super::meta;
use super::modify::{Current, Modified, Next};
use super::options::write::PatchOptions;
use super::ownership::{self, Kind, acting, entries};
use super::part::Part;
use super::strictness::{Requester, Strictness};
use super::update::{Change, UidRule, check_place, next_version};
use super::{Api, ObjectMap, Target, admission, create, metadata, metadata_mut};
use crate::patch::apply::conflict::{self, Conflict};
use crate::patch::apply::managers::{Managers, Operation};
use crate::patch::apply::ownership::{Acting, Applied, Conflicts, Refusal, Versions, apply, update};
use crate::schema::names::Gvk;

pub(super) mod body;
mod last_applied;

/// The manager of what an object held when nobody kept track.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who applies.
#[derive(Clone, Copy)]
pub struct Applier<'a> {
    pub requester: Requester<'a>,
    /// Whether the user may create what is missing.
    pub may_create: &'a Result<(), Error>,
}

impl Api {
    /// Applies a configuration, and creates what is missing.
    pub async fn apply(
        &self,
        target: Target<'_>,
        part: Part,
        body: &[u8],
        options: &PatchOptions,
        applier: Applier<'_>,
    ) -> Result<Modified, Error> {
        let config = body::parse(body)?;
        let strictness =
            Strictness { validation: options.write.field_validation, warnings: applier.requester.warnings };
        let config = Configuration { object: &config.object, problem: config.problem.as_deref(), strictness };
        if part == Part::Main {
            admission::namespace::admit_update_or_create(self, target).await?;
        }
        self.modify(target, options.write.dry_run, |current| match current {
            Some(current) => changed(target, part, config, options, applier, current),
            None if part == Part::Main => created(self, target, config, options, applier),
            None => Err(target.not_found()),
        })
        .await
    }
}

/// What is applied, and what is wrong with its text.
#[derive(Clone, Copy)]
struct Configuration<'a> {
    object: &'a ObjectMap,
    problem: Option<&'a str>,
    strictness: Strictness<'a>,
}

impl Configuration<'_> {
    /// After conflicts, as upstream has it.
    fn judge(self) -> Result<(), Error> {
        body::judge(self.problem, self.strictness)
    }
}

fn changed(
    target: Target<'_>,
    part: Part,
    configuration: Configuration<'_>,
    options: &PatchOptions,
    applier: Applier<'_>,
    current: &Current,
) -> Result<Next, Error> {
    let config = configuration.object;
    let kind = Kind::new(target.resource, part);
    let manager = options.write.manager();
    let acting = acting(target.resource, manager, part, Operation::Apply);
    let managers = Managers::decode(entries(&current.object).unwrap_or_default())
        .map_err(|why| Error::Unclassified(format!("failed to decode managed fields: {why}")))?;
    body::check(config, target.resource.definition.gvk())?;
    let mut live = current.object.clone();
    ownership::put(&mut live, None);
    let managers =
        if managers.0.is_empty() { first_managers(&kind, &live, &acting, kind.zero()) } else { managers };
    let mut applied = match apply(&kind, &live, config, &managers, &acting, options.conflicts) {
        Err(Refusal::Conflicts(found)) => {
            let found = last_applied::unforgiven(&kind, &live, &acting, found);
            if !found.is_empty() {
                return Err(conflict_error(&found));
            }
            apply(&kind, &live, config, &managers, &acting, Conflicts::Force)
        }
        other => other,
    }
    .map_err(|refusal| refused(target, config, refusal))?;
    last_applied::refresh(&mut applied.object, config, manager);
    let mut new = finished(target, config, applied)?;
    configuration.judge()?;
    check_place(target, &mut new)?;
    let change = Change { part, uid: UidRule::Immutable, requester: applier.requester, manager: None };
    next_version(target, change, new, current)
}

fn created(
    api: &Api,
    target: Target<'_>,
    configuration: Configuration<'_>,
    options: &PatchOptions,
    applier: Applier<'_>,
) -> Result<Next, Error> {
    let config = configuration.object;
    let resource = target.resource;
    let kind = Kind::new(resource, Part::Main);
    body::check(config, target.resource.definition.gvk())?;
    let acting = acting(resource, options.write.manager(), Part::Main, Operation::Apply);
    let nothing: ObjectMap = ["kind", "apiVersion"]
        .iter()
        .filter_map(|name| kind.zero().get_key_value(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let applied = apply(&kind, &nothing, config, &Managers::default(), &acting, Conflicts::Force)
        .map_err(|refusal| refused(target, config, refusal))?;
    let mut new = finished(target, config, applied)?;
    configuration.judge()?;
    check_place(target, &mut new)?;
    let uid = meta::text(metadata_mut(&mut new), "uid");
    if !uid.is_empty() {
        return Err(Error::uid_without_object(resource.group_resource(), target.name, uid));
    }
    applier.may_create.clone()?;
    metadata_mut(&mut new).shift_remove("resourceVersion");
    let object = create::prepared(api, target, new, applier.requester)?;
    create::validate(api, target, &object, applier.requester.warnings)?;
    Ok(Next::Put(object))
}

/// All that an untracked object holds belongs to nobody in particular; `zero` is the zero value of its kind.
pub(super) fn first_managers(
    versions: &impl Versions,
    live: &ObjectMap,
    acting: &Acting,
    zero: &ObjectMap,
) -> Managers {
    let mut before = acting.clone();
    before.identity.name = BEFORE_FIRST_APPLY.to_owned();
    before.identity.operation = Operation::Update;
    update(versions, zero, live, &Managers::default(), &before).unwrap_or_default()
}

/// The object as it is put, with its managers.
fn finished(target: Target<'_>, config: &ObjectMap, applied: Applied) -> Result<ObjectMap, Error> {
    let resource = target.resource;
    let kind = &resource.definition.kind;
    let mut object = applied.object;
    if resource.conform(&mut object).is_err() {
        let converted = kind.convert(&mut object);
        let conformed = converted.and_then(|()| resource.conform(&mut object));
        conformed.map_err(|why| unconverted(config, &kind.gvk, &why))?;
    }
    resource.default(&mut object);
    ownership::put(&mut object, applied.managers.encode());
    Ok(object)
}

fn refused(target: Target<'_>, config: &ObjectMap, refusal: Refusal) -> Error {
    match refusal {
        Refusal::Conflicts(found) => conflict_error(&found),
        Refusal::Unfit(why) => unfit(config, target.resource.definition.gvk(), &why),
    }
}

/// 500, as upstream has it, of a configuration that does not fit the schema.
pub(super) fn unfit(config: &ObjectMap, gvk: &Gvk, why: &str) -> Error {
    let subject = subject(config, gvk);
    Error::Unclassified(format!("failed to create typed patch object ({subject}): {why}"))
}

/// 500, as upstream has it, of values that fit the schema and not the kind.
fn unconverted(config: &ObjectMap, gvk: &Gvk, why: &str) -> Error {
    let subject = subject(config, gvk);
    Error::Unclassified(format!(
        "failed to convert new object ({subject}) to proper version: unable to convert unstructured object to {gvk}: \
         {why}"
    ))
}

/// A configuration as errors name it.
fn subject(config: &ObjectMap, gvk: &Gvk) -> String {
    let metadata = metadata(config);
    let text = |field: &str| metadata.map_or("", |metadata| meta::text(metadata, field));
    let (namespace, name) = (text("namespace"), text("name"));
    format!("{namespace}/{name}; {gvk}")
}

pub(super) fn conflict_error(conflicts: &[Conflict]) -> Error {
    let (message, named) = conflict::message(conflicts);
    let causes = named.into_iter().flat_map(|(manager, paths)| {
        let message = format!("conflict with {manager}");
        let cause = move |path| Cause::new(CauseReason::FieldManagerConflict, path, message.clone());
        paths.into_iter().map(cause)
    });
    Error::ApplyConflict { message, causes: causes.collect() }
}
