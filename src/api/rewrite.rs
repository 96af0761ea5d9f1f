//! The same object again, in the encoding of now: what a migration of stored objects is made of.

use super::error::Error;
use super::modify::put_mutation;
use super::resource::Resource;
use super::{Api, Target};
use crate::revision::Revision;
use crate::storage::{Expect, Format, Stale, StaleRow, Written};

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
        Stale { resource: resource.id, api_version, format: Format::Json, through }
    }

    /// Writes an object again, unless it is newer than the row. Its content stays; its revision does not, and watchers
    /// are told.
    pub async fn rewrite(&self, resource: &Resource, row: &StaleRow) -> Result<Rewritten, Error> {
        let (namespace, name) = (&*row.key.namespace, &*row.key.name);
        let state = self.cache.at_least(row.revision).await?;
        let Some(found) = state.get(resource.id, namespace, name).filter(|o| o.revision() == row.revision)
        else {
            return Ok(Rewritten::Elsewhere);
        };
        let target = Target { resource, namespace, name };
        let mut object = resource.decode(&found)?;
        resource.conform(&mut object).map_err(|why| {
            Error::Internal(format!(
                "{} \"{name}\" is not what its kind says: {why}",
                resource.group_resource()
            ))
        })?;
        resource.default(&mut object);
        let mutation = put_mutation(target, Expect::At(row.revision), object)?;
        Ok(match self.store.write(mutation).await? {
            Written::Committed { .. } => Rewritten::Here,
            Written::Conflict { .. } => Rewritten::Elsewhere,
        })
    }
}
