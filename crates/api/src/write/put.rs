//! Writes to the store what admission has accepted: claim, warn, put.

use std::sync::Arc;

use super::outcome::{Outcome, Placed};
use super::{Admitted, Current, Existing, Next, Reads, Ready, Write};
use crate::audit::Record;
use crate::codec::managed;
use crate::codec::object::{Object, Replaces};
use crate::concerns::{self, ObjectChange};
use crate::effects::Effects;
use crate::error::{Error, Exists};
use crate::mutation::new_object::Naming;
use crate::options::DryRun;
use crate::request::{Options, Request};
use crate::schema::resource::Verb;
use crate::storage::{AuditRow, Change, Expect, Mutation, Written};
use crate::{Answer, Api, ObjectMap, Target, meta, metadata, metadata_mut};

impl Api {
    pub(crate) async fn put(
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
            (Next::Put(object), current) => {
                self.put_object(write, object, effects, naming, advised, current).await
            }
        }
    }

    /// Writes an object with its effects: reserve what it needs, encode, commit.
    async fn put_object(
        &self,
        write: Write<'_>,
        mut object: ObjectMap,
        mut effects: Effects,
        naming: Option<Naming>,
        advised: bool,
        current: Option<Current>,
    ) -> Result<Placed, Error> {
        let target = write.target(naming.as_ref());
        let dry_run = write.request.options.dry_run();
        let old = current.as_ref().map(|current| &current.object);
        let change = ObjectChange { target, ..self.change(write, current.as_ref()) };
        let reserved = concerns::reserve(&change, &mut object, dry_run).await?;
        if advised {
            advise(write, &object, old);
        }
        if dry_run == DryRun::Yes {
            return Box::pin(self.pretend(write, naming.as_ref(), object, old.is_some())).await;
        }
        let expect = current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.stored.revision()));
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
            self.put_mutation_replacing((target, replaces), expect, object, write.manager.is_some())
        };
        let audited = write.audited(target.name, expect == Expect::Absent);
        let (joined, mutation) = match self.lanes.run(size, encode).await {
            Ok(mutation) => {
                effects.require(reserved.requires());
                let decided_at = write.request.decided_at;
                let author = self.author(write.request, write.manager());
                effects.onto(Mutation { audit: audited.row(), author, decided_at, ..mutation })
            }
            Err(error) => {
                reserved.settle(self, target, None).await;
                return Err(error);
            }
        };
        let written = self.store.write_joined(joined, mutation).await;
        reserved.settle(self, target, Some(&written)).await;
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
        let effects = concerns::remove(&self.change(write, Some(&current)), effects.preconditions())?;
        let mutation = Mutation::new(target.key(), Expect::At(found), Change::Delete);
        let decided_at = write.request.decided_at;
        let author = self.author(write.request, write.manager());
        let (joined, mutation) =
            effects.onto(Mutation { audit: audited.row(), author, decided_at, ..mutation });
        Ok(match self.store.write_joined(joined, mutation).await? {
            Written::Committed { revision, .. } => {
                write.request.committed();
                audited.committed();
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

    /// The change of an object as concerns see it.
    fn change<'a>(&'a self, write: Write<'a>, current: Option<&'a Current>) -> ObjectChange<'a> {
        ObjectChange {
            cluster: self,
            target: write.request.target,
            part: write.part,
            old: current.map(|current| &current.object),
            stored: current.map(|current| &*current.stored),
            quotas: None,
        }
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
    pub(crate) fn already_exists(&self, target: Target<'_>, prefixed: bool) -> Error {
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

impl<'a> Write<'a> {
    /// The target of the write, with the name that a new object was given.
    pub fn target<'b>(&self, naming: Option<&'b Naming>) -> Target<'b>
    where
        'a: 'b,
    {
        let target = self.request.target;
        Target { name: naming.map_or(target.name, |naming| &naming.name), ..target }
    }

    /// The field manager that the write names; empty if it names none.
    fn manager(&self) -> &'a str {
        let sent = match self.request.options {
            Options::Write(options) => options.field_manager.as_deref(),
            Options::None | Options::Delete(_) => None,
        };
        self.manager.or(sent).unwrap_or_default()
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
