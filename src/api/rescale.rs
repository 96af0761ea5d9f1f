//! PUT and PATCH of the subresource `scale`: a change of one number of the parent.

use super::error::Error;
use super::modify::{Current, Next};
use super::options::write::{PatchOptions, WriteOptions};
use super::patch::Patch;
use super::update::{Change, Part, UidRule, check_place, next_version};
use super::{Answer, Api, ObjectMap, Target, metadata, metadata_mut, scale};
use crate::patch::PatchKind;
use crate::user::User;

impl Api {
    pub async fn update_scale(
        &self,
        target: Target<'_>,
        mut body: ObjectMap,
        options: &WriteOptions,
        user: &User,
    ) -> Result<ObjectMap, Error> {
        check_place(target, &mut body)?;
        let modified = self
            .modify(target, options.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                rescaled(target, &body, current, user)
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
        user: &User,
    ) -> Result<ObjectMap, Error> {
        let patch = Patch::parse(kind, body, options.write.field_validation)?;
        let modified = self
            .modify(target, options.write.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                let patched = patch.apply(scale::of(&current.object), "autoscaling/v1", "Scale")?;
                let mut patched = match patched {
                    serde_json::Value::Object(patched) => patched,
                    _ => return Err(Error::Unprocessable),
                };
                check_place(target, &mut patched)?;
                rescaled(target, &patched, current, user)
            })
            .await?;
        scale_of(target, &modified.answer)
    }
}

/// The parent with the replicas of a Scale, under the Scale's preconditions.
fn rescaled(target: Target<'_>, scale: &ObjectMap, current: &Current, user: &User) -> Result<Next, Error> {
    let mut new = current.object.clone();
    scale::apply(&mut new, scale, target.name)?;
    for field in ["resourceVersion", "uid"] {
        let wanted = metadata(scale).and_then(|metadata| metadata.get(field)).cloned();
        match wanted {
            Some(wanted) => metadata_mut(&mut new).insert(field.to_owned(), wanted),
            None => metadata_mut(&mut new).shift_remove(field),
        };
    }
    next_version(target, Change { part: Part::Main, uid: UidRule::Precondition, user }, new, current)
}

fn scale_of(target: Target<'_>, answer: &Answer) -> Result<ObjectMap, Error> {
    match answer {
        Answer::Stored(object) => Ok(scale::of(&target.resource.decode(object)?)),
        Answer::Unstored(object) => Ok(scale::of(object)),
    }
}
