//! DELETE of one object: it is removed at once, or marked and removed later.

mod unreadable;

use crate::deletion::{self, Plan, Rules};
use crate::error::Error;
use crate::kinds::behavior::deletion::Dependents;
use crate::kinds::behavior::part::Part;
use crate::request::Request;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::write::outcome::Outcome;
use crate::write::{Current, Next, Proposal, Reads, Write};
use crate::{Answer, Api, ObjectMap, Target, meta};

/// The result of a DELETE.
pub enum Deleted {
    /// The object is removed, and the kind answers with a Status.
    Gone { uid: String },
    /// The object is returned: its last state, for kinds that answer with it, or its present state while it waits for
    /// finalizers or its grace period.
    Object(Answer),
    /// The object is marked for deletion, and returned with 202.
    Waiting(Answer),
    /// The object is removed. It could not be decoded, so the answer has nothing of it.
    Unread,
}

impl Api {
    pub async fn delete(&self, request: &Request<'_>) -> Result<Deleted, Error> {
        refuse_system_class(request.target)?;
        let deleted = self.delete_stored(request).await?;
        Ok(self.shown(request.target.resource, deleted).await)
    }

    /// Deletes the object. The answer has the stored version of an object that only a webhook can convert.
    pub(crate) async fn delete_stored(&self, request: &Request<'_>) -> Result<Deleted, Error> {
        let write = Write { reads: Reads::AsStored, ..Write::change(request, Part::Main, None) };
        self.delete_as(write).await
    }

    /// The answer in the version of the request. A webhook that fails does not undo the deletion, so the answer is then a
    /// Status.
    async fn shown(&self, resource: &Resource, deleted: Deleted) -> Deleted {
        let (answer, waits) = match deleted {
            Deleted::Object(answer) if resource.hooked().is_some() => (answer, false),
            Deleted::Waiting(answer) if resource.hooked().is_some() => (answer, true),
            other => return other,
        };
        let uid = uid(&answer);
        match self.converter.answer(resource, answer).await {
            Ok(answer) if waits => Deleted::Waiting(answer),
            Ok(answer) => Deleted::Object(answer),
            Err(_) => Deleted::Gone { uid },
        }
    }

    /// Deletes the object, as a request of its own or as a part of an action.
    pub(crate) async fn delete_as(&self, write: Write<'_>) -> Result<Deleted, Error> {
        let (target, options) = (write.request.target, write.request.options.delete());
        let Resource { definition, behavior, .. } = target.resource;
        let strategy = &behavior.strategy;
        if options.ignore_read_error {
            return Box::pin(self.delete_unreadable(write)).await;
        }
        let propose = &mut |found: Option<&Current>| {
            let current = &found.ok_or_else(|| target.not_found())?.object;
            deletion::check(current, &options.preconditions, definition, strategy)?;
            let garbage_collection = self.config.garbage_collection;
            let rules = Rules { strategy, behavior: definition.behavior, garbage_collection };
            Ok(match deletion::plan(current, options, rules, self.runtime.clock.timestamp()) {
                Plan::Pending => Proposal::Nothing,
                Plan::Remove(shown) => Proposal::Decided(Next::Delete(shown)),
                Plan::Keep { changed: false, .. } => Proposal::Decided(Next::Unchanged),
                Plan::Keep { object, .. } => Proposal::Decided(Next::Put(object)),
            })
        };
        let modified = self.modify(write, propose).await?;
        Ok(match modified.outcome {
            Outcome::Deleted(_) if !definition.behavior.returns_deleted => {
                Deleted::Gone { uid: uid(&modified.answer) }
            }
            Outcome::Deleted(revision) => Deleted::Object(gone_at(modified.answer, revision)),
            // Upstream answers 202 only if the request used the deprecated `orphanDependents`.
            _ if options.dependents == Dependents::Orphan(false) => Deleted::Waiting(modified.answer),
            _ => Deleted::Object(modified.answer),
        })
    }
}

/// Refuses to delete a built-in priority class by its name. Upstream's storage of the kind refuses it before it looks for
/// the object; the deletion of a collection passes by that storage.
fn refuse_system_class(target: Target<'_>) -> Result<(), Error> {
    const SYSTEM: [&str; 2] = ["system-cluster-critical", "system-node-critical"];
    let definition = &target.resource.definition;
    let is_class =
        (definition.group().as_str(), &*definition.plural) == ("scheduling.k8s.io", "priorityclasses");
    if !is_class || !SYSTEM.contains(&target.name) {
        return Ok(());
    }
    Err(target.forbidden("this is a system priority class and cannot be deleted"))
}

/// Puts the revision of the deletion into the object that is returned.
fn gone_at(answer: Answer, revision: Revision) -> Answer {
    match answer {
        Answer::Unstored(mut object) => {
            crate::metadata_mut(&mut object).insert("resourceVersion", revision.to_string().into());
            Answer::Unstored(object)
        }
        stored => stored,
    }
}

fn uid(answer: &Answer) -> String {
    let of_map = |object: &ObjectMap| {
        crate::metadata(object).map_or("", |metadata| meta::text(metadata, "uid")).to_owned()
    };
    match answer {
        Answer::Unstored(object) => of_map(object),
        Answer::Stored(object) => object.to_map().map(|map| of_map(&map)).unwrap_or_default(),
    }
}
