//! Snapshots: all that a server stores, at one revision. Forks are made of them.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::TryStreamExt as _;

use super::list::object;
use super::past::{expired_of, no_moment};
use crate::Api;
use crate::cache::{Objects, State};
use crate::catalog::Served;
use crate::codec::object::Object;
use crate::error::Error;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::{HIDDEN_GROUP, PastError, ResourceId, Row, Scan};

/// The resources whose past is kept for a shorter time than that of others, and which a fork can do without.
const FLEETING: [(&str, &str); 3] =
    [("", "events"), ("events.k8s.io", "events"), ("coordination.k8s.io", "leases")];

/// A state that does not change any more. It shares its objects with whoever has them, too.
#[derive(Clone)]
pub struct Snapshot {
    pub state: State,
    /// The numbers that the resources have in the state.
    pub resources: HashMap<GroupResource, ResourceId>,
    /// The resources whose objects of then are not kept any more, so that there are none.
    pub missing: Vec<GroupResource>,
}

impl Api {
    /// The newest state.
    pub async fn snapshot(&self) -> Result<Snapshot, Error> {
        let mut resources = numbered(&self.catalog.served());
        let state = State::clone(&*self.cache.fresh().await?);
        // A definition may have come or gone meanwhile.
        resources.extend(numbered(&self.catalog.served()));
        resources.extend(self.hidden.numbered());
        Ok(Snapshot { state, resources, missing: Vec::new() })
    }

    /// The state at a past revision. Fails with 410 if objects of then are not kept any more, but for those that a fork can
    /// do without.
    pub async fn snapshot_at(&self, at: Revision) -> Result<Snapshot, Error> {
        let newest = self.cache.at_least(at).await?;
        let stored = self.cache.backend().resources().await.map_err(no_moment)?;
        let (mut state, mut missing) = (State::at(at), Vec::new());
        for (id, name) in &stored {
            let unchanged = newest.unchanged_since(*id, at).filter(|_| newest.holds(*id));
            let objects = match unchanged {
                Some(objects) => Ok(objects),
                None => self.objects_at(*id, &newest.objects(*id), at).await,
            };
            match objects {
                Ok(objects) => state.load(*id, objects),
                Err(PastError::Expired { .. }) if is_dispensable(name) => {
                    state.load(*id, Objects::default());
                    missing.push(name.clone());
                }
                Err(error) => return Err(expired_of(name, error)),
            }
        }
        missing.retain(|name| *name.group != *HIDDEN_GROUP);
        let resources = stored.into_iter().map(|(id, name)| (name, id)).collect();
        Ok(Snapshot { state, resources, missing })
    }

    /// The objects of a resource at a revision. Those that the newest state has, too, are its own.
    async fn objects_at(
        &self,
        resource: ResourceId,
        newest: &Objects,
        at: Revision,
    ) -> Result<Objects, PastError> {
        let rows = self.cache.backend().scan_past(Scan::all(resource), at).await?;
        let known = |row: &Row| {
            newest.get(&row.namespace, &row.name).filter(|object| object.revision() == row.revision)
        };
        let read = |row: Row| known(&row).unwrap_or_else(|| object(row));
        let objects: Vec<Arc<Object>> = rows.map_ok(read).try_collect().await?;
        Ok(Objects::of_sorted(objects.into_iter()))
    }
}

/// The stored resources of a generation, with their numbers.
fn numbered(served: &Served) -> HashMap<GroupResource, ResourceId> {
    served.stored().map(|resource| (resource.group_resource(), resource.id)).collect()
}

/// Whether a fork can begin without the objects of a resource. The servers' notes are made anew from the objects.
fn is_dispensable(resource: &GroupResource) -> bool {
    *resource.group == *HIDDEN_GROUP || FLEETING.contains(&(&*resource.group, &*resource.plural))
}
