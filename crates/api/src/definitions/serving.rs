//! Generations of what is served: resources come and go with the definitions that describe them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Cluster;
use crate::catalog::Served;
use crate::catalog::served::{Added, Changes};
use crate::error::Error;
use crate::resource::custom::Custom;
use crate::schema::names::GroupResource;
use crate::schema::resource::{ResourceDefinition, Storage};
use crate::storage::ResourceId;

impl Cluster {
    /// How many objects of each resource the watch cache holds.
    pub fn object_counts(&self) -> Vec<(GroupResource, usize)> {
        let served = self.catalog.served();
        let named = |(id, count)| Some((served.by_id(id)?.group_resource(), count));
        let mut counts: Vec<_> = self.cache.any().counts().filter_map(named).collect();
        counts.sort_by_cached_key(|(name, _)| name.to_string());
        counts
    }

    /// Makes the next generation: from now on these resources are served besides the built-in ones, and no others. A
    /// resource whose definitions are the very same as before stays as it is; one of which any version changes needs new
    /// definitions of all its versions. Watches on resources that are not served any more end; what is stored of them stays.
    pub async fn serve(&self, custom: Vec<Arc<ResourceDefinition>>) -> Result<Arc<Served>, Error> {
        self.serve_next(|before| {
            let stays = |one: &Arc<ResourceDefinition>| custom.iter().any(|other| Arc::ptr_eq(one, other));
            let served: Vec<_> = before.besides().map(|resource| resource.definition.clone()).collect();
            let is_served =
                |one: &Arc<ResourceDefinition>| served.iter().any(|other| Arc::ptr_eq(one, other));
            let added = custom.iter().filter(|one| !is_served(one)).cloned();
            let added = added.map(|definition| Added { definition, custom: None }).collect();
            Changes { added, removed: served.iter().filter(|one| !stays(one)).cloned().collect() }
        })
        .await
    }

    /// Makes the next generation, in which these resources are served in these versions and in no others, since stored
    /// definitions say so. All other resources stay as they are.
    pub(super) async fn serve_custom(
        &self,
        resources: Vec<(GroupResource, Vec<Custom>)>,
    ) -> Result<Arc<Served>, Error> {
        self.serve_next(|before| {
            let mut changes = Changes::default();
            for (name, versions) in resources {
                let served = before.versions_of(&name);
                changes.removed.extend(served.map(|resource| resource.definition.clone()));
                changes.added.extend(versions.into_iter().filter_map(|custom| self.added(custom)));
            }
            changes
        })
        .await
    }

    /// A version of a custom resource; `None` in a group version that is built in, which is the server's own: definitions
    /// neither shadow what it has nor join it.
    pub(super) fn added(&self, custom: Custom) -> Option<Added> {
        let definition = custom.version.resource.clone();
        let is_own = self.resources.registry().version(definition.group_version()).is_some();
        (!is_own).then_some(Added { definition, custom: Some(custom) })
    }

    async fn serve_next(&self, changes: impl FnOnce(&Served) -> Changes) -> Result<Arc<Served>, Error> {
        let _turn = self.catalog.turn().await;
        let before = self.catalog.served();
        let changes = changes(&before);
        if changes.is_empty() {
            return Ok(before);
        }
        let ids = self.ids_of(&before, &changes.added).await?;
        let next = Arc::new(before.next(&changes, &ids));
        let new: HashSet<ResourceId> = ids.into_iter().filter(|id| next.stores(*id)).collect();
        self.cache.add_all(&new.into_iter().collect::<Vec<_>>()).await?;
        self.catalog.publish(next.clone());
        before.replace(&next, &changes.removed);
        self.forget_unserved(&next).await?;
        Ok(next)
    }

    /// Takes out of the cache what is not served any more, and what was added for a generation that never came to be.
    async fn forget_unserved(&self, served: &Served) -> Result<(), Error> {
        let own = self.hidden.ids();
        let state = self.cache.any();
        let own_held = own.iter().filter(|id| state.holds(**id)).count();
        if state.resources().len() == served.stored_count() + own_held {
            return Ok(());
        }
        let held: Vec<ResourceId> = state.resources().collect();
        for id in held.into_iter().filter(|id| !served.stores(*id) && !own.contains(id)) {
            self.cache.remove(id).await?;
        }
        Ok(())
    }

    /// The store's numbers of these resources; it is asked for those that were not served before.
    pub(super) async fn ids_of(&self, before: &Served, added: &[Added]) -> Result<Vec<ResourceId>, Error> {
        let stored = added.iter().map(|Added { definition, .. }| match &definition.storage {
            Storage::Table { resource, .. } => resource.clone(),
            Storage::Virtual => definition.group_resource(),
        });
        let known = |added: &Added| before.get(&added.definition.gvr()).map(|known| known.id);
        let known: Vec<Option<ResourceId>> = added.iter().map(known).collect();
        let mut names: Vec<GroupResource> =
            stored.clone().zip(&known).filter(|(_, known)| known.is_none()).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        let ids = match names.is_empty() {
            true => Vec::new(),
            false => self.cache.backend().resource_ids(&names).await?,
        };
        let new: HashMap<GroupResource, ResourceId> = names.into_iter().zip(ids).collect();
        let id = |(name, known): (GroupResource, Option<ResourceId>)| {
            known
                .or_else(|| new.get(&name).copied())
                .ok_or_else(|| Error::Internal(format!("the store has no number for {name}")))
        };
        stored.zip(known).map(id).collect()
    }
}
