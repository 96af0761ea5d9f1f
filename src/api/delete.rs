//! DELETE one object: gone at once, or on its way out.

use jiff::Timestamp;

use super::deletion::{self, Plan, Rules};
use super::error::Error;
use super::modify::{Next, Outcome};
use super::options::DryRun;
use super::options::delete::DeleteOptions;
use super::{Answer, Api, ObjectMap, Target, admission, meta};
use crate::kinds::behavior::deletion::Dependents;
use crate::revision::Revision;
use crate::storage::{Change, Expect, Mutation, Written};

/// How a DELETE ended.
pub enum Deleted {
    /// The object is gone; the kind answers with a Status.
    Gone { uid: String },
    /// The object: as it was, for kinds that return it, or as it waits for finalizers or its grace period.
    Object(Answer),
    /// As `Object`, answered with 202.
    Waiting(Answer),
}

impl Api {
    pub async fn delete(&self, target: Target<'_>, options: &DeleteOptions) -> Result<Deleted, Error> {
        admission::admit_delete(target)?;
        if let Some(deleted) = self.delete_undecodable(target, options).await? {
            return Ok(deleted);
        }
        let resource = target.resource;
        let modified = self
            .modify(target, options.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                deletion::check(
                    &current.object,
                    &options.preconditions,
                    &resource.definition,
                    &resource.behavior.strategy,
                )?;
                let rules =
                    Rules { strategy: &resource.behavior.strategy, behavior: resource.definition.behavior };
                Ok(match deletion::plan(&current.object, options, rules, Timestamp::now()) {
                    Plan::Remove(shown) => Next::Delete(shown),
                    Plan::Keep { changed: false, .. } => Next::Unchanged,
                    Plan::Keep { object, .. } => Next::Put(object),
                })
            })
            .await?;
        Ok(match modified.outcome {
            Outcome::Deleted(_) if !resource.definition.behavior.returns_deleted => {
                Deleted::Gone { uid: uid(&modified.answer) }
            }
            Outcome::Deleted(revision) => Deleted::Object(gone_at(modified.answer, revision)),
            // Upstream says 202 only to those who ask in the deprecated way.
            _ if options.dependents == Dependents::Orphan(false) => Deleted::Waiting(modified.answer),
            _ => Deleted::Object(modified.answer),
        })
    }

    /// A stored value that cannot be read has no finalizers to respect; deleting it is the way to be rid of it.
    async fn delete_undecodable(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
    ) -> Result<Option<Deleted>, Error> {
        let found = self.cache.any().get(target.resource.id, target.namespace, target.name);
        let Some(object) = found.filter(|object| object.json().is_err()) else { return Ok(None) };
        let gone = Ok(Some(Deleted::Gone { uid: String::new() }));
        if options.dry_run == DryRun::Yes {
            return gone;
        }
        let expect = Expect::At(object.revision());
        let mutation = Mutation::new(target.key(), expect, Change::Delete);
        match self.store.write(mutation).await? {
            Written::Committed { .. } => gone,
            Written::Conflict { .. } | Written::Unmet { .. } => {
                Err(Error::modified(target.resource.group_resource(), target.name))
            }
        }
    }
}

/// What is gone shows when it went.
fn gone_at(answer: Answer, revision: Revision) -> Answer {
    match answer {
        Answer::Unstored(mut object) => {
            super::metadata_mut(&mut object).insert("resourceVersion", revision.to_string().into());
            Answer::Unstored(object)
        }
        stored => stored,
    }
}

fn uid(answer: &Answer) -> String {
    let of_map = |object: &ObjectMap| {
        super::metadata(object).map_or("", |metadata| meta::text(metadata, "uid")).to_owned()
    };
    match answer {
        Answer::Unstored(object) => of_map(object),
        Answer::Stored(object) => object.to_map().map(|map| of_map(&map)).unwrap_or_default(),
    }
}
