//! Read, change, write, and again if somebody was faster: the one loop behind update, patch and delete.

use std::sync::Arc;

use super::error::Error;
use super::options::DryRun;
use super::{Answer, Api, ObjectMap, Target, admission, metadata_mut};
use crate::codec::depth::MAX_DEPTH;
use crate::codec::managed;
use crate::codec::object::{Draft, Object};
use crate::revision::Revision;
use crate::storage::{Change, Expect, Mutation, Written};

/// An object as it was found, in the version of the request and [closed](managed).
pub struct Current {
    pub object: ObjectMap,
    pub stored: Arc<Object>,
}

/// What a step makes of the object it found.
pub enum Next {
    /// Nothing changes.
    Unchanged,
    /// The object becomes this (in the version of the request).
    Put(ObjectMap),
    /// The object goes; the answer is this, or the object as it was last stored.
    Delete(Option<ObjectMap>),
}

/// What came of it.
pub struct Modified {
    pub answer: Answer,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Unchanged,
    Created,
    Updated,
    /// The revision of the deletion; that of the object in a dry run.
    Deleted(Revision),
}

impl Api {
    /// Runs `step` on the object until its result is written or it fails. The step may run several times: first on
    /// whatever this replica has, then, if that loses or fails, on the newest state.
    pub(super) async fn modify(
        &self,
        target: Target<'_>,
        dry_run: DryRun,
        mut step: impl FnMut(Option<&Current>) -> Result<Next, Error>,
    ) -> Result<Modified, Error> {
        let mut state = self.cache.any();
        let mut proven = !self.store.backend().shared();
        loop {
            let stored = state.get(target.resource.id, target.namespace, target.name);
            let size = stored.as_ref().map_or(0, |stored| stored.size());
            let attempt = || -> Result<_, Error> {
                let current = stored.map(|stored| current(target, stored)).transpose()?;
                let next = step(current.as_ref());
                Ok((current, next))
            };
            let (current, next) = self.lanes.run(size, attempt).await?;
            // A refusal or a no-op may come from an old state; only a write proves itself.
            let settled = match &next {
                Err(_) | Ok(Next::Unchanged) => false,
                Ok(_) => dry_run == DryRun::No,
            };
            if !settled && !proven {
                state = self.cache.fresh().await?;
                proven = true;
                continue;
            }
            match self.write(target, current, next?, dry_run).await? {
                Ok(modified) => return Ok(modified),
                Err(judged_at) => {
                    state = self.cache.at_least(judged_at).await?;
                    proven = true;
                }
            }
        }
    }

    /// The inner error is the revision at which the write lost.
    async fn write(
        &self,
        target: Target<'_>,
        current: Option<Current>,
        next: Next,
        dry_run: DryRun,
    ) -> Result<Result<Modified, Revision>, Error> {
        match (next, current) {
            (Next::Unchanged, Some(current)) => {
                let answer = Answer::Stored(current.stored);
                Ok(Ok(Modified { answer, outcome: Outcome::Unchanged }))
            }
            (Next::Unchanged | Next::Delete(_), None) => Err(target.not_found()),
            (Next::Put(object), current) => self.put(target, current, object, dry_run).await,
            (Next::Delete(answer), Some(current)) => self.remove(target, current, answer, dry_run).await,
        }
    }

    async fn put(
        &self,
        target: Target<'_>,
        current: Option<Current>,
        mut object: ObjectMap,
        dry_run: DryRun,
    ) -> Result<Result<Modified, Revision>, Error> {
        let old = current.as_ref().map(|current| &current.object);
        let (outcome, namespace) = match current {
            Some(_) => (Outcome::Updated, None),
            None => (Outcome::Created, admission::namespace::admit_create(self, target).await?),
        };
        let allocation = self.allocate(target, &mut object, old, dry_run).await?;
        if dry_run == DryRun::Yes {
            return Ok(Ok(Modified { answer: unstored(object), outcome }));
        }
        let expect = current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.stored.revision()));
        let size = current.as_ref().map_or(0, |current| current.stored.size());
        // While this write waits, others are worked on in the memory of its trees, which is near the processor now.
        drop(current);
        let mutation = self.lanes.run(size, || put_mutation(target, expect, object)).await;
        let written = match mutation {
            Ok(mutation) => {
                admission::namespace::write_admitted(self, target, mutation.requiring(namespace)).await
            }
            Err(error) => Err(error),
        };
        self.settle(target, allocation, &written).await;
        Ok(match written? {
            Written::Committed { object: Some(object), .. } => {
                Ok(Modified { answer: Answer::Stored(object), outcome })
            }
            Written::Committed { object: None, .. } => {
                return Err(Error::Internal("a write came back without its object".to_owned()));
            }
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at, .. } => Err(judged_at),
        })
    }

    async fn remove(
        &self,
        target: Target<'_>,
        current: Current,
        answer: Option<ObjectMap>,
        dry_run: DryRun,
    ) -> Result<Result<Modified, Revision>, Error> {
        let found = current.stored.revision();
        if dry_run == DryRun::Yes {
            let answer = unstored(answer.unwrap_or(current.object));
            return Ok(Ok(Modified { answer, outcome: Outcome::Deleted(found) }));
        }
        let mutation = Mutation::new(target.key(), Expect::At(found), Change::Delete);
        Ok(match self.store.write(mutation).await? {
            Written::Committed { revision, .. } => {
                self.release_all(target, &current.object).await;
                let last = answer.unwrap_or_else(|| {
                    let mut last = current.object;
                    metadata_mut(&mut last).insert("resourceVersion", revision.to_string().into());
                    last
                });
                Ok(Modified { answer: unstored(last), outcome: Outcome::Deleted(revision) })
            }
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at, .. } => Err(judged_at),
        })
    }
}

fn current(target: Target<'_>, stored: Arc<Object>) -> Result<Current, Error> {
    Ok(Current { object: target.resource.decode_closed(&stored)?, stored })
}

/// An answer that was closed.
pub(super) fn unstored(mut object: ObjectMap) -> Answer {
    managed::open(&mut object);
    Answer::Unstored(object)
}

/// A write of an object in the request's version; 400 for one that could not be read again.
pub(super) fn put_mutation(target: Target<'_>, expect: Expect, object: ObjectMap) -> Result<Mutation, Error> {
    let resource = target.resource;
    let uid = super::metadata(&object).map_or("", |metadata| super::meta::text(metadata, "uid")).into();
    let stored = resource.to_stored(object)?;
    if managed::depth(&stored) > MAX_DEPTH {
        return Err(Error::BadRequest(format!("the object exceeds the maximum depth of {MAX_DEPTH}")));
    }
    let mut draft = Draft::encode(target.namespace, target.name, stored, resource.storage_media_type);
    if !resource.is_read_in_protobuf() {
        draft = draft.without_message();
    }
    let change = Change::Put { uid, stored_version: resource.stored_version.clone(), draft };
    Ok(Mutation::new(target.key(), expect, change))
}
