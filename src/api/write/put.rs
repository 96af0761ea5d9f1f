//! Writes to the store what admission has accepted: claim, warn, put.

use std::sync::Arc;

use super::create::Naming;
use super::{Admitted, Current, Existing, Next, Reads, Ready, Write};
use crate::api::effects::Effects;
use crate::api::error::{Error, Exists};
use crate::api::input::options::DryRun;
use crate::api::quota::Usage;
use crate::api::request::Request;
use crate::api::services::Allocation;
use crate::api::write::modify::{Modified, Outcome};
use crate::api::{Answer, Api, ObjectMap, Target, meta, metadata, metadata_mut};
use crate::audit::Record;
use crate::codec::depth::MAX_DEPTH;
use crate::codec::managed;
use crate::codec::object::{Draft, Object, Replaces};
use crate::kinds::behavior::part::Part;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::{AuditRow, Change, Expect, Mutation, Written};

/// The outcome of a write at the store.
pub(in crate::api) enum Placed {
    Done(Modified),
    /// Another write came first; seen at this revision.
    Lost {
        judged_at: Revision,
        naming: Option<Naming>,
    },
    /// A row that admission relied on has changed; seen at this revision.
    Unmet {
        judged_at: Revision,
    },
}

impl Api {
    pub(in crate::api) async fn put(
        &self,
        write: Write<'_>,
        ready: Ready,
        current: Option<Current>,
    ) -> Result<Placed, Error> {
        let Ready { mut next, effects, naming, advised } = ready;
        if let (Next::Unchanged, Some(current)) = (&next, &current)
            && self.renewed(write, current).await?
        {
            next = Next::Put(current.object.clone());
        }
        let advise = |new: &ObjectMap, old| {
            if advised {
                advise(write, new, old);
            }
        };
        match (next, current) {
            (Next::Unchanged | Next::Delete(_), None) => Err(write.request.target.not_found()),
            (Next::Unchanged, Some(Current { object, stored, .. })) => {
                advise(&object, Some(&object));
                Ok(Placed::done(Answer::Stored(stored), Outcome::Unchanged))
            }
            (Next::Delete(shown), Some(current)) => {
                if let Some(shown) = &shown {
                    advise(shown, Some(&current.object));
                }
                Box::pin(self.remove(write, effects, current, shown)).await
            }
            (Next::Put(mut object), current) => {
                let target = write.target(naming.as_ref());
                let dry_run = write.request.options.dry_run();
                let old = current.as_ref().map(|current| &current.object);
                let allocation = self.allocate(target, &mut object, old, dry_run).await?;
                advise(&object, old);
                if dry_run == DryRun::Yes {
                    return Box::pin(self.pretend(write, naming.as_ref(), object, old.is_some())).await;
                }
                let expect =
                    current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.stored.revision()));
                let size = current.as_ref().map_or(0, |current| current.stored.size());
                let replaces = write.replaces(current.as_ref());
                if write.reads == Reads::AsServed {
                    object = self.converter.to_stored(target.resource, object).await?;
                }
                // Freed before the wait: other requests reuse the memory of its trees, which is in the processor's
                // cache now.
                drop(current);
                let encode = || {
                    write.refuse_version(naming.as_ref())?;
                    self.put_mutation_of(write, (target, replaces), expect, object)
                };
                let audited = write.audited(target.name, expect == Expect::Absent);
                let (joined, mutation) = match self.lanes.run(size, encode).await {
                    Ok(mutation) => {
                        let mut effects = effects;
                        effects.require(allocation.iter().flat_map(Allocation::requires));
                        let decided_at = write.request.decided_at;
                        effects.onto(Mutation { audit: audited.row(), decided_at, ..mutation })
                    }
                    Err(error) => {
                        self.give_back(target, allocation).await;
                        return Err(error);
                    }
                };
                let written = self.store.write_joined(joined, mutation).await;
                self.settle(target, allocation, &written).await;
                let outcome = if expect == Expect::Absent { Outcome::Created } else { Outcome::Updated };
                Ok(match written?.of::<Object>() {
                    Written::Committed { object: Some(object), .. } => {
                        write.request.committed();
                        audited.committed();
                        Placed::done(Answer::Stored(object), outcome)
                    }
                    Written::Committed { object: None, .. } => {
                        return Err(Error::Internal("a write came back without its object".to_owned()));
                    }
                    Written::Conflict { judged_at, .. } => Placed::Lost { judged_at, naming },
                    Written::Unmet { judged_at, .. } => Placed::Unmet { judged_at },
                })
            }
        }
    }

    async fn remove(
        &self,
        write: Write<'_>,
        effects: Effects,
        current: Current,
        shown: Option<ObjectMap>,
    ) -> Result<Placed, Error> {
        let (target, found) = (write.request.target, current.stored.revision());
        if write.request.options.dry_run() == DryRun::Yes {
            let answer = unstored(shown.unwrap_or(current.object));
            return Ok(Placed::done(answer, Outcome::Deleted(found)));
        }
        let audited = write.audited(target.name, false);
        let effects = self.with_removal(effects.preconditions(), target, write.part, &current.object)?;
        let mutation = Mutation::new(target.key(), Expect::At(found), Change::Delete);
        let decided_at = write.request.decided_at;
        let (joined, mutation) = effects.onto(Mutation { audit: audited.row(), decided_at, ..mutation });
        Ok(match self.store.write_joined(joined, mutation).await? {
            Written::Committed { revision, .. } => {
                write.request.committed();
                audited.committed();
                self.release_all(target, &current.object).await;
                let last = shown.unwrap_or_else(|| {
                    let mut last = current.object;
                    metadata_mut(&mut last).insert("resourceVersion", revision.to_string().into());
                    last
                });
                Placed::done(unstored(last), Outcome::Deleted(revision))
            }
            Written::Conflict { judged_at, .. } => Placed::Lost { judged_at, naming: None },
            Written::Unmet { judged_at, .. } => Placed::Unmet { judged_at },
        })
    }

    /// The effects of a write that removes an object, beside those that admission has found.
    pub(in crate::api) fn with_removal(
        &self,
        mut effects: Effects,
        target: Target<'_>,
        part: Part,
        object: &ObjectMap,
    ) -> Result<Effects, Error> {
        let quota = self.release_quota(target);
        let changes_set = quota.joins();
        let usage = Usage { target, old: Some(object), new: None, part, changes_set, limited: false };
        let metered = self.metered(usage, None)?;
        effects.join(self.release_names(target, object));
        effects.add(quota);
        effects.add(metered);
        self.change_configuration((&*target.resource.definition, part), &mut effects);
        effects.join(self.release_aggregation(target));
        Ok(effects)
    }

    /// Carries out a dry run: everything but the write.
    async fn pretend(
        &self,
        write: Write<'_>,
        naming: Option<&Naming>,
        mut object: ObjectMap,
        exists: bool,
    ) -> Result<Placed, Error> {
        let outcome = if exists { Outcome::Updated } else { Outcome::Created };
        if write.reads == Reads::AsServed {
            let resource = write.request.target.resource;
            object = self.converter.as_if_stored(resource, object).await?;
            if let Some(custom) = &resource.custom {
                object = custom.reread(object)?;
            }
        }
        if write.existing == Existing::Refuse {
            let target = write.target(naming);
            let state = self.cache.fresh().await?;
            if state.get(target.resource.id, target.namespace, target.name).is_some() {
                return Err(self.already_exists(target, false));
            }
            // The answer keeps the resourceVersion that the client sent, since no store removes it.
            if let Some(Naming { version, .. }) = naming.filter(|naming| !naming.version.is_empty()) {
                metadata_mut(&mut object).insert("resourceVersion", version.as_str().into());
            }
        }
        Ok(Placed::done(unstored(object), outcome))
    }

    /// 409 of a new object: its name is taken, or if `prefixed`, all generated names are.
    pub(in crate::api) fn already_exists(&self, target: Target<'_>, prefixed: bool) -> Error {
        let state = self.cache.any();
        let found = state.get(target.resource.id, target.namespace, target.name);
        let terminating = found
            .filter(|object| object.mentions("deletionTimestamp"))
            .and_then(|object| object.to_map().ok())
            .is_some_and(|object| metadata(&object).is_some_and(meta::is_terminating));
        let cause = match (terminating, prefixed) {
            (true, _) => Exists::Terminating,
            (false, true) => Exists::Generated,
            (false, false) => Exists::Plain,
        };
        let (resource, name) = (target.resource.group_resource(), target.name.to_owned());
        Error::AlreadyExists { resource, name, cause }
    }
}

impl Placed {
    fn done(answer: Answer, outcome: Outcome) -> Self {
        Self::Done(Modified { answer, outcome })
    }
}

impl<'a> Write<'a> {
    /// The target of the write, with the name that a new object was given.
    pub fn target<'b>(&self, naming: Option<&'b Naming>) -> Target<'b>
    where
        'a: 'b,
    {
        let target = self.request.target;
        Target { name: naming.map_or(target.name, |naming| &naming.name), ..target }
    }

    /// The audit record of the request, which is stored in the database with the write itself.
    fn audited<'b>(&self, name: &'b str, creates: bool) -> Audited<'b>
    where
        'a: 'b,
    {
        let Request { verb, audit, .. } = *self.request;
        let code = if creates || verb == Verb::Create { 201 } else { 200 };
        // A request that deletes many objects is one event.
        Audited { record: audit.filter(|_| verb != Verb::DeleteCollection), name, code }
    }

    /// The version whose place the write takes. Deletions and actions may mark an object that is too long already.
    fn replaces(&self, current: Option<&Current>) -> Replaces {
        let marks = matches!(self.request.verb, Verb::Delete | Verb::DeleteCollection)
            || self.admission == Admitted::AsAction;
        match current {
            None => Replaces::Nothing,
            Some(_) if marks => Replaces::Anything,
            Some(current) => Replaces::Json(current.stored.json_length()),
        }
    }

    fn refuse_version(&self, naming: Option<&Naming>) -> Result<(), Error> {
        match (self.existing, naming) {
            (Existing::Refuse, Some(naming)) => meta::create::refuse_version(&naming.version),
            _ => Ok(()),
        }
    }
}

/// The record of the request that a write is part of.
struct Audited<'a> {
    record: Option<&'a Record>,
    name: &'a str,
    code: u16,
}

impl Audited<'_> {
    fn row(&self) -> Option<Arc<AuditRow>> {
        self.record?.to_commit(self.name, self.code)
    }

    fn committed(&self) {
        if let Some(record) = self.record {
            record.committed(self.code);
        }
    }
}

/// Sends the kind's warnings about a valid object.
fn advise(write: Write<'_>, new: &ObjectMap, old: Option<&ObjectMap>) {
    let (advice, warnings) = (&write.request.target.resource.behavior.warnings, write.request.warnings);
    match old {
        Some(old) => advice.update(write.part, new, old, warnings),
        None => advice.create(new, warnings),
    }
}

/// Opens a [closed](managed) object for the answer.
fn unstored(mut object: ObjectMap) -> Answer {
    managed::open(&mut object);
    Answer::Unstored(object)
}

impl Api {
    /// The mutation that writes an object in the request's version, encrypted if its resource is configured so.
    pub(in crate::api) fn put_mutation(
        &self,
        target: Target<'_>,
        expect: Expect,
        object: ObjectMap,
    ) -> Result<Mutation, Error> {
        self.sealed(target, expect, encode(target, object)?)
    }

    /// The mutation of [`Api::put_mutation`] for a verb. An object that is too long is written without its managers if it fits then,
    /// unless it is applied, as upstream does (`isTooLargeError` in `endpoints/handlers`).
    fn put_mutation_of(
        &self,
        write: Write<'_>,
        (target, replaces): (Target<'_>, Replaces),
        expect: Expect,
        object: ObjectMap,
    ) -> Result<Mutation, Error> {
        let mut encoded = encode(target, object)?;
        encoded.draft = encoded.draft.replacing(replaces);
        if write.manager.is_some() && encoded.draft.limited_length() > self.store.max_object_bytes() {
            encoded = without_managers(target, encoded)?;
        }
        self.sealed(target, expect, encoded)
    }

    fn sealed(&self, target: Target<'_>, expect: Expect, encoded: Encoded) -> Result<Mutation, Error> {
        let Encoded { uid, stored_version, draft } = encoded;
        let key = target.key();
        let draft = self.encryption.seal(&key, draft).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Mutation::new(key, expect, Change::Put { uid, stored_version, value: draft.into() }))
    }

    /// An object that need not be written since nothing changes of it is written all the same if its row would be
    /// encrypted in another way now, as upstream does.
    async fn renewed(&self, write: Write<'_>, current: &Current) -> Result<bool, Error> {
        let is_dry = write.request.options.dry_run() == DryRun::Yes;
        if is_dry || !self.encryption.is_on() {
            return Ok(false);
        }
        let (resource, revision) = (write.request.target.resource.id, current.stored.revision());
        Ok(Box::pin(self.encryption.is_stale(resource, revision)).await?)
    }
}

/// An object as it will be stored.
struct Encoded {
    uid: Arc<str>,
    /// The version that it is stored in.
    stored_version: Arc<str>,
    draft: Draft,
}

/// Encodes an object of the request's version; 400 if it could not be read again.
fn encode(target: Target<'_>, object: ObjectMap) -> Result<Encoded, Error> {
    let uid = metadata(&object).map_or("", |metadata| meta::text(metadata, "uid")).into();
    encode_stored(target, uid, target.resource.to_stored(object)?)
}

fn encode_stored(target: Target<'_>, uid: Arc<str>, stored: ObjectMap) -> Result<Encoded, Error> {
    let resource = target.resource;
    let stored_version = resource.version_of(&stored);
    let mark = resource.custom.as_ref().map(|custom| custom.mark(&stored)).unwrap_or_default();
    if managed::depth(&stored) > MAX_DEPTH {
        return Err(Error::BadRequest(format!("the object exceeds the maximum depth of {MAX_DEPTH}")));
    }
    let mut draft =
        Draft::encode(target.namespace, target.name, stored, resource.storage_media_type).settled(mark);
    if !resource.is_read_in_protobuf() {
        draft = draft.without_message();
    }
    Ok(Encoded { uid, stored_version, draft })
}

fn without_managers(target: Target<'_>, encoded: Encoded) -> Result<Encoded, Error> {
    let mut stored = encoded.draft.into_object(Revision(0)).to_closed_map()?;
    metadata_mut(&mut stored).shift_remove("managedFields");
    encode_stored(target, encoded.uid, stored)
}
