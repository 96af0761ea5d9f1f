//! Writes an object again, unchanged but in the present encoding: the step of which a migration of stored objects
//! consists.

use std::sync::Arc;

use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Object;
use crate::concerns::{self, ObjectChange};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::request::Request;
use crate::resource::Resource;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::{Change, Expect, Format, Mutation, Stale, StaleRow, Written};
use crate::write::{Current, Next, Proposal, Reads, Ready, Write};
use crate::{Api, Target};

/// The manager that the history names.
const MANAGER: &str = "storage-migration";

/// The outcome of rewriting a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    Here,
    /// Another write or a deletion came first: the row is not stale any more.
    Elsewhere,
}

impl Api {
    /// Selects the rows of a resource, up to a revision, that this server would encode differently.
    pub fn stale(&self, resource: &Resource, through: Revision) -> Stale {
        let api_version = resource.stored_version.clone();
        let format = match (self.encryption.prefix(resource.id), resource.storage_media_type) {
            (Some(prefix), _) => Format::Sealed(prefix),
            (None, StorageMediaType::Protobuf) => Format::Protobuf,
            (None, StorageMediaType::Json | StorageMediaType::Yaml) => Format::Json,
        };
        Stale { resource: resource.id, api_version, format, through }
    }

    /// Lets a webhook convert the objects of these rows together, where only a webhook can.
    pub async fn foresee(&self, resource: &Resource, rows: &[StaleRow]) -> Result<(), Error> {
        let (Some(last), true) = (rows.iter().map(|row| row.revision).max(), resource.hooked().is_some())
        else {
            return Ok(());
        };
        let state = self.cache.at_least(last).await?;
        let found = rows.iter().filter_map(|row| state.get(resource.id, &row.key.namespace, &row.key.name));
        self.converter.objects(resource, found.collect()).await.map(drop)
    }

    /// Writes an object again, unless it has changed since the row was found. Its content stays the same; it gets a new
    /// revision, and watchers see it as modified. Validation treats it as an update that changes nothing. Upstream's
    /// migrator sends a patch instead, which fails if the kind's rules have become stricter than the stored object.
    pub async fn rewrite(&self, resource: &Resource, row: &StaleRow) -> Result<Rewritten, Error> {
        let (namespace, name) = (&*row.key.namespace, &*row.key.name);
        let state = self.cache.at_least(row.revision).await?;
        let Some(stored) = state.get(resource.id, namespace, name).filter(|o| o.revision() == row.revision)
        else {
            return Ok(Rewritten::Elsewhere);
        };
        let target = Target { resource, namespace, name };
        let (joined, mutation) = again(self, &Request::own(Verb::Update, target), stored).await?;
        Ok(match self.store.write_joined(joined, mutation).await? {
            Written::Committed { .. } => Rewritten::Here,
            // Its definition has changed, and it is written by the new one.
            Written::Unmet { judged_at, .. } if resource.custom.is_some() => {
                self.cache.at_least(judged_at).await?;
                self.follow_definitions().await?;
                let (resource, operation) = (resource.group_resource(), "update");
                return Err(Error::ServerTimeout { resource, operation });
            }
            Written::Conflict { .. } | Written::Unmet { .. } => Rewritten::Elsewhere,
        })
    }
}

/// The write, and what is written with it.
async fn again(
    api: &Api,
    request: &Request<'_>,
    stored: Arc<Object>,
) -> Result<(Vec<Mutation>, Mutation), Error> {
    let target = request.target;
    let Target { resource, name, .. } = target;
    let expect = Expect::At(stored.revision());
    let mut current = api.current(target, Reads::AsServed, stored).await?;
    resource.conform(&mut current.object).map_err(|why| {
        Error::Internal(format!("{} \"{name}\" is not what its kind says: {why}", resource.group_resource()))
    })?;
    let write = Write::change(request, Part::Main, None);
    let propose = &mut |found: Option<&Current>| match found {
        Some(found) => Ok(Proposal::Object(found.object.clone())),
        None => Err(target.not_found()),
    };
    let ready = api.attempt(write, propose, Some(&current)).await?;
    let Ready { next, effects, naming: _, advised: _ } = ready;
    let put =
        async |object| api.put_mutation(target, expect, api.converter.to_stored(resource, object).await?);
    let (effects, mutation) = match next {
        Next::Put(object) => (effects, put(object).await?),
        Next::Unchanged => (effects, put(current.object).await?),
        // The object is terminating, and only waited for a write to remove it.
        Next::Delete(_) => {
            let (old, stored) = (Some(&current.object), Some(&*current.stored));
            let change = ObjectChange { cluster: api, target, part: Part::Main, old, stored, quotas: None };
            let effects = concerns::remove(&change, effects.preconditions())?;
            (effects, Mutation::new(target.key(), expect, Change::Delete))
        }
    };
    let author = api.author(request, MANAGER);
    Ok(effects.onto(Mutation { author, ..mutation.unlimited() }))
}
