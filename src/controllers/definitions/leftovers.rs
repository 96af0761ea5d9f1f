//! Leftovers of definitions that were deleted by a server of an earlier release, one that knew neither names nor custom
//! objects. As long as they stay, no other definition can have the names, and the objects would come back with the next
//! definition of the same name.

use std::collections::BTreeMap;

use super::cleanup::delete_unserved;
use crate::api::error::Error;
use crate::api::{Api, ObjectMap, fields};
use crate::schema::names::GroupResource;
use crate::storage::Mutation;

/// Writes that take away the rows of names, by the names of the definitions that are gone. Each of them requires that the
/// definition has not come back.
#[derive(Default)]
pub struct Leftovers(BTreeMap<String, Vec<Mutation>>);

impl Leftovers {
    pub fn of_all(api: &Api) -> Self {
        Self(api.all_leftover_names())
    }

    pub fn add(&mut self, api: &Api, gone: &ObjectMap) {
        let names = api.leftover_names(gone);
        if !names.is_empty() {
            self.0.insert(fields::text(gone, &["metadata", "name"]).to_owned(), names);
        }
    }

    /// Removes objects first: as long as a name is left, the next start looks for objects again. True if names may have
    /// become free.
    pub async fn remove(&mut self, api: &Api) -> bool {
        let open = std::mem::take(&mut self.0);
        let any = !open.is_empty();
        for (name, names) in open {
            if let Err(error) = remove(api, &name, names).await {
                tracing::warn!(name, %error, "what is left of a definition that is gone stays for now");
            }
        }
        any
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

async fn remove(api: &Api, name: &str, names: Vec<Mutation>) -> Result<(), Error> {
    if let (Some((plural, group)), Some(requirement)) = (name.split_once('.'), api.definitions.is_gone(name))
    {
        delete_unserved(api, &GroupResource::new(group, plural), Some(&requirement)).await?;
    }
    for row in names {
        api.store.write(row).await?;
    }
    Ok(())
}
