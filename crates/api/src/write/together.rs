//! Objects of the server's own, written in one transaction.

use std::sync::Arc;

use super::{Current, Existing, Next, Proposal, Reads, Ready, Write};
use crate::codec::object::Object;
use crate::concerns::{self, Committed, ObjectChange};
use crate::decode::Body;
use crate::effects::Effects;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::request::Request;
use crate::schema::resource::Verb;
use crate::services;
use crate::storage::{Change, Expect, Mutation, Requirement, Written};
use crate::{Api, ObjectMap, Target, metadata_mut};

/// An object that is to be written, and the one that it replaces.
pub struct Wanted<'a> {
    pub target: Target<'a>,
    pub object: ObjectMap,
    pub instead_of: InsteadOf,
}

/// The object that a wanted one replaces, if any.
pub enum InsteadOf {
    Nothing,
    /// The object changes.
    Older(Arc<Object>),
    /// The object goes, and another one of its name takes its place.
    Another(Arc<Object>),
}

impl InsteadOf {
    fn stored(&self) -> Option<Arc<Object>> {
        match self {
            Self::Nothing => None,
            Self::Older(stored) | Self::Another(stored) => Some(stored.clone()),
        }
    }
}

impl Api {
    /// Writes all these objects or none, each with what comes with it. Returns whether they were written: others may have
    /// been faster. All are admitted by the state before them: a quota or a webhook among them is in force afterwards.
    pub async fn write_all(&self, wanted: Vec<Wanted<'_>>) -> Result<bool, Error> {
        // As it was before anything was decided by it.
        let state = self.cache.any();
        let targets: Vec<Target<'_>> = wanted.iter().map(|wanted| wanted.target).collect();
        let olds: Vec<Option<Arc<Object>>> = wanted.iter().map(|wanted| wanted.instead_of.stored()).collect();
        let mut mutations = Vec::new();
        for wanted in wanted {
            self.add(wanted, &mut mutations).await?;
        }
        let Some(last) = mutations.pop() else { return Ok(true) };
        if targets.iter().any(|target| self.aggregation.concerns(target.resource)) {
            mutations.push(self.aggregation.row(&state));
        }
        let Written::Committed { revision, .. } = self.store.write_joined(mutations, last).await? else {
            return Ok(false);
        };
        let state =
            self.cache.at_least(revision).await.map_err(|error| Error::from(error).behind_the_write())?;
        for (target, old) in targets.into_iter().zip(&olds) {
            let new = state.get(target.resource.id, target.namespace, target.name);
            let (old, new) = (old.as_deref(), new.as_deref());
            concerns::committed(self, Committed { target, part: Part::Main, old, new }).await?;
        }
        Ok(true)
    }

    /// Adds what has to be written for an object.
    async fn add(&self, wanted: Wanted<'_>, mutations: &mut Vec<Mutation>) -> Result<(), Error> {
        let Wanted { target, object, instead_of } = wanted;
        if services::is_service(&target.resource.definition) {
            return Err(Error::Internal("a Service claims its addresses in writes of its own".to_owned()));
        }
        let (verb, current) = match instead_of {
            InsteadOf::Nothing => (Verb::Create, None),
            InsteadOf::Older(stored) => {
                (Verb::Update, Some(self.current(target, Reads::AsServed, stored).await?))
            }
            InsteadOf::Another(_) if self.definitions.are(target.resource) => {
                return Err(Error::Internal("the names of a definition pass to no other one".to_owned()));
            }
            InsteadOf::Another(stored) => {
                self.add_removal(Effects::default(), target, stored, mutations)?;
                (Verb::Create, None)
            }
        };
        let request = Request::own(verb, target);
        let manager = Some(request.options.write().manager());
        let write = Write { existing: Existing::Change, ..Write::change(&request, Part::Main, manager) };
        let propose = &mut |_: Option<&Current>| {
            let mut object = Body::Object(&object).decode(&request)?;
            if target.resource.definition.namespaced() {
                metadata_mut(&mut object).insert("namespace", target.namespace.into());
            }
            Ok(Proposal::Object(object))
        };
        let ready = self.attempt(write, propose, current.as_ref()).await?;
        let Ready { next, effects, naming: _, advised: _ } = ready;
        let expect = current.as_ref().map_or(Expect::Absent, |current| Expect::At(current.stored.revision()));
        match (next, current) {
            (Next::Put(object), _) => {
                self.push(mutations, target, effects, self.put_mutation(target, expect, object)?);
            }
            (Next::Delete(_), Some(Current { stored, .. })) => {
                self.add_removal(effects.preconditions(), target, stored, mutations)?;
            }
            (Next::Delete(_), None) | (Next::Unchanged, _) => {}
        }
        Ok(())
    }

    /// Adds the deletion of an object, with its effects.
    pub(crate) fn add_removal(
        &self,
        effects: Effects,
        target: Target<'_>,
        stored: Arc<Object>,
        mutations: &mut Vec<Mutation>,
    ) -> Result<(), Error> {
        let (object, revision) = (target.resource.decode_closed(&stored)?, stored.revision());
        let (old, stored) = (Some(&object), Some(&*stored));
        let change = ObjectChange { cluster: self, target, part: Part::Main, old, stored, quotas: None };
        let effects = concerns::remove(&change, effects)?;
        let mutation = self.delete_mutation(target, revision);
        self.push(mutations, target, effects, mutation);
        Ok(())
    }

    /// Adds a write with its effects. The rules of aggregated roles are among what is wanted, or left to their controller.
    fn push(&self, mutations: &mut Vec<Mutation>, target: Target<'_>, effects: Effects, mutation: Mutation) {
        let (joined, mutation) = effects.onto(mutation);
        let joined = if self.aggregation.concerns(target.resource) { Vec::new() } else { joined };
        push(mutations, joined, mutation);
    }
}

/// Adds a write and what comes with it to others of the same transaction: a row that would be written twice in the same way
/// is written once, and what an earlier write expects of a row is not required again, since that write changes it.
fn push(mutations: &mut Vec<Mutation>, joined: Vec<Mutation>, mut mutation: Mutation) {
    for one in joined {
        if !mutations.iter().any(|known| is_same(known, &one)) {
            mutations.push(one);
        }
    }
    let is_proven = |requirement: &Requirement| {
        let Requirement { key, expect } = requirement;
        mutations.iter().any(|known| known.key == *key && known.expect == *expect)
    };
    mutation.requires.retain(|requirement| !is_proven(requirement));
    mutation.shares = mutation.shares.filter(|requirement| !is_proven(requirement));
    mutations.push(mutation);
}

fn is_same(one: &Mutation, other: &Mutation) -> bool {
    let value = |mutation: &Mutation| match &mutation.change {
        Change::Put { value, .. } => Some(value.bytes().clone()),
        Change::Delete | Change::Count(_) => None,
    };
    one.key == other.key && one.expect == other.expect && value(one) == value(other)
}
