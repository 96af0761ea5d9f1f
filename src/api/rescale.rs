//! PUT and PATCH of the subresource `scale`: a change of one number of the parent.

use super::apply::{body, conflict_error};
use super::error::Error;
use super::modify::{Current, Next};
use super::options::write::{PatchOptions, WriteOptions};
use super::ownership::{self, Tracking};
use super::part::Part;
use super::patch::Patch;
use super::strictness::{Requester, Strictness};
use super::update::{Change, UidRule, check_place, next_version};
use super::{Answer, Api, ObjectMap, Target, metadata, metadata_mut, scale};
use crate::patch::PatchKind;
use crate::patch::apply::ownership::Refusal;

impl Api {
    pub async fn update_scale(
        &self,
        target: Target<'_>,
        mut body: ObjectMap,
        options: &WriteOptions,
        requester: Requester<'_>,
    ) -> Result<ObjectMap, Error> {
        check_place(target, &mut body)?;
        let modified = self
            .modify(target, options.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                rescaled(target, &body, current, requester, Some(options.manager()))
            })
            .await?;
        scale_of(target, &modified.answer)
    }

    pub async fn patch_scale(
        &self,
        target: Target<'_>,
        kind: PatchKind,
        body: &[u8],
        options: &PatchOptions,
        requester: Requester<'_>,
    ) -> Result<ObjectMap, Error> {
        let strictness =
            Strictness { validation: options.write.field_validation, warnings: requester.warnings };
        if kind == PatchKind::Apply {
            return self.apply_scale(target, body, options, requester).await;
        }
        let patch = Patch::parse(kind, body, strictness)?;
        let modified = self
            .modify(target, options.write.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                let scale = scale::of(&current.object);
                let mut patched = patch.decode(&scale, scale::kind(target.resource)?, strictness)?;
                check_place(target, &mut patched)?;
                rescaled(target, &patched, current, requester, Some(options.write.manager()))
            })
            .await?;
        scale_of(target, &modified.answer)
    }

    async fn apply_scale(
        &self,
        target: Target<'_>,
        body: &[u8],
        options: &PatchOptions,
        requester: Requester<'_>,
    ) -> Result<ObjectMap, Error> {
        let body::Config { object: config, problem } = body::parse(body)?;
        let strictness =
            Strictness { validation: options.write.field_validation, warnings: requester.warnings };
        let modified = self
            .modify(target, options.write.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                body::check(&config, &scale::GVK)?;
                let live = scale::of(&current.object);
                let manager = options.write.manager();
                let scales = (&live, &config);
                let applied = ownership::scale::apply(
                    target.resource,
                    &current.object,
                    scales,
                    manager,
                    options.conflicts,
                )
                .map_err(|refusal| match refusal {
                    Refusal::Unfit(why) => ownership::scale::unfit(&config, &why),
                    Refusal::Conflicts(found) => conflict_error(&found),
                })?;
                body::judge(problem.as_deref(), strictness)?;
                let mut scale = applied.object;
                check_place(target, &mut scale)?;
                let mut new = current.object.clone();
                scale::apply(&mut new, &scale, target.name)?;
                ownership::put(&mut new, applied.managers.encode());
                put(target, &scale, new, current, requester)
            })
            .await?;
        scale_of(target, &modified.answer)
    }
}

/// The parent with the replicas of a Scale, under the Scale's preconditions.
fn rescaled(
    target: Target<'_>,
    scale: &ObjectMap,
    current: &Current,
    requester: Requester<'_>,
    manager: Option<&str>,
) -> Result<Next, Error> {
    let mut new = current.object.clone();
    scale::apply(&mut new, scale, target.name)?;
    if let Some(manager) = manager {
        let scales = (&scale::of(&current.object), &scale::of(&new));
        let tracking = Tracking { manager, part: Part::Scale };
        ownership::scale::track(target.resource, &mut new, scales, tracking);
    }
    put(target, scale, new, current, requester)
}

fn put(
    target: Target<'_>,
    scale: &ObjectMap,
    mut new: ObjectMap,
    current: &Current,
    requester: Requester<'_>,
) -> Result<Next, Error> {
    for field in ["resourceVersion", "uid"] {
        let wanted = metadata(scale).and_then(|metadata| metadata.get(field)).cloned();
        match wanted {
            Some(wanted) => metadata_mut(&mut new).insert(field, wanted),
            None => metadata_mut(&mut new).shift_remove(field),
        };
    }
    let change = Change { part: Part::Scale, uid: UidRule::Precondition, requester, manager: None };
    next_version(target, change, new, current)
}

fn scale_of(target: Target<'_>, answer: &Answer) -> Result<ObjectMap, Error> {
    match answer {
        Answer::Stored(object) => Ok(scale::of(&target.resource.decode(object)?)),
        Answer::Unstored(object) => Ok(scale::of(object)),
    }
}
