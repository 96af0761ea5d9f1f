//! The same object again, in the encoding of now: what a migration of stored objects is made of.

use std::sync::Arc;

use super::error::Error;
use super::modify::{Current, Next, put_mutation};
use super::resource::Resource;
use super::strictness::Requester;
use super::update::{self, UidRule};
use super::{Api, Target};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::Object;
use crate::kinds::behavior::part::Part;
use crate::revision::Revision;
use crate::storage::{Change, Expect, Format, Mutation, Stale, StaleRow, Written};
use crate::user::User;
use crate::warnings::Warnings;

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewritten {
    Here,
    /// Somebody has written or deleted it meanwhile: it is not stale any more.
    Elsewhere,
}

impl Api {
    /// The rows of a resource, up to a revision, that this server would write in another way.
    pub fn stale(&self, resource: &Resource, through: Revision) -> Stale {
        let api_version = resource.stored_version.clone();
        let format = match resource.storage_media_type {
            StorageMediaType::Protobuf => Format::Protobuf,
            StorageMediaType::Json | StorageMediaType::Yaml => Format::Json,
        };
        Stale { resource: resource.id, api_version, format, through }
    }

    /// Writes an object again, unless it is newer than the row. Its content stays as it is read; its revision does
    /// not, and watchers are told. It is judged as an update that changes nothing: upstream's migrator sends a patch,
    /// which fails where the kind's rules have become stricter than what is stored.
    pub async fn rewrite(&self, resource: &Resource, row: &StaleRow) -> Result<Rewritten, Error> {
        let (namespace, name) = (&*row.key.namespace, &*row.key.name);
        let state = self.cache.at_least(row.revision).await?;
        let Some(stored) = state.get(resource.id, namespace, name).filter(|o| o.revision() == row.revision)
        else {
            return Ok(Rewritten::Elsewhere);
        };
        let target = Target { resource, namespace, name };
        let mutation = again(target, stored)?;
        Ok(match self.store.write(mutation).await? {
            Written::Committed { .. } => Rewritten::Here,
            Written::Conflict { .. } | Written::Unmet { .. } => Rewritten::Elsewhere,
        })
    }
}

fn again(target: Target<'_>, stored: Arc<Object>) -> Result<Mutation, Error> {
    let Target { resource, name, .. } = target;
    let revision = stored.revision();
    let mut object = resource.decode_closed(&stored)?;
    resource.conform(&mut object).map_err(|why| {
        Error::Internal(format!("{} \"{name}\" is not what its kind says: {why}", resource.group_resource()))
    })?;
    let current = Current { stored, object: object.clone() };
    let requester = Requester { user: &User::apiserver(), warnings: &Warnings::default() };
    let change = update::Change { part: Part::Main, uid: UidRule::Immutable, requester, manager: None };
    match update::next_version(target, change, object, &current)? {
        Next::Put(object) => put_mutation(target, Expect::At(revision), object),
        Next::Unchanged => put_mutation(target, Expect::At(revision), current.object),
        // It was only waiting for somebody to touch it.
        Next::Delete(_) => Ok(Mutation::new(target.key(), Expect::At(revision), Change::Delete)),
    }
}
