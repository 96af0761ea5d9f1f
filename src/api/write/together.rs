//! Objects of the server's own, written in one transaction.

use std::sync::Arc;

use super::{Current, Existing, Next, Proposal, Reads, Write};
use crate::api::error::Error;
use crate::api::input::decode::Body;
use crate::api::request::Request;
use crate::api::{Api, ObjectMap, Target, metadata_mut};
use crate::codec::object::Object;
use crate::kinds::behavior::part::Part;
use crate::schema::resource::Verb;
use crate::storage::{Change, Expect, Mutation, Written};

/// What shall become of an object.
pub struct Wanted<'a> {
    pub target: Target<'a>,
    pub object: ObjectMap,
    pub instead_of: InsteadOf,
}

/// What is there already.
pub enum InsteadOf {
    Nothing,
    /// The object changes.
    Older(Arc<Object>),
    /// The object goes, and another one of its name takes its place.
    Another(Arc<Object>),
}

impl Api {
    /// Writes all these objects or none. Returns whether they were written: others may have been faster.
    pub async fn write_all(&self, wanted: Vec<Wanted<'_>>) -> Result<bool, Error> {
        // As it was before anything was decided by it.
        let state = self.cache.any();
        let has_roles = wanted.iter().any(|wanted| self.aggregation.concerns(wanted.target.resource));
        let mut mutations = Vec::new();
        for wanted in wanted {
            mutations.extend(self.mutations(wanted).await?);
        }
        let Some(last) = mutations.pop() else { return Ok(true) };
        if has_roles {
            mutations.push(self.aggregation.row(&state));
        }
        Ok(matches!(self.store.write_joined(mutations, last).await?, Written::Committed { .. }))
    }

    async fn mutations(&self, wanted: Wanted<'_>) -> Result<Vec<Mutation>, Error> {
        let Wanted { target, object, instead_of } = wanted;
        let mut mutations = Vec::new();
        let (verb, current) = match instead_of {
            InsteadOf::Nothing => (Verb::Create, None),
            InsteadOf::Older(stored) => {
                (Verb::Update, Some(self.current(target, Reads::AsServed, stored).await?))
            }
            InsteadOf::Another(stored) => {
                let expect = Expect::At(stored.revision());
                mutations.push(Mutation::new(target.key(), expect, Change::Delete));
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
        let expect = current.map_or(Expect::Absent, |current| Expect::At(current.stored.revision()));
        match ready.next {
            Next::Put(object) => {
                mutations.push(
                    self.put_mutation(target, expect, object)?
                        .requiring(ready.requires)
                        .charging(ready.charges),
                );
            }
            Next::Delete(_) => mutations.push(Mutation::new(target.key(), expect, Change::Delete)),
            Next::Unchanged => {}
        }
        Ok(mutations)
    }
}
