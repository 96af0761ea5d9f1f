//! Past generations of served resources: built-in kinds as now, custom ones by their definitions then.

use std::sync::Arc;

use crate::Cluster;
use crate::catalog::Served;
use crate::catalog::served::Changes;
use crate::codec::object::Object;
use crate::error::Error;
use crate::followers::definitions::known::served_as_of;
use crate::revision::Revision;

impl Cluster {
    /// The newest generation, if no definition has changed since a revision.
    pub(crate) async fn served_since(&self, at: Revision) -> Result<Option<Arc<Served>>, Error> {
        let Some(resource) = self.definitions.resource else { return Ok(Some(self.resources.clone())) };
        self.cache.at_least(at).await?;
        self.follow_definitions().await?;
        let served = self.catalog.served();
        // Looked at afterwards: what the generation shows is not newer than this state.
        let is_same = self.cache.any().unchanged_since(resource, at).is_some();
        Ok(is_same.then_some(served))
    }

    /// The generation that these definitions, which were stored at one time, describe.
    pub(crate) async fn served_by(&self, definitions: &[Arc<Object>]) -> Result<Arc<Served>, Error> {
        let own = &self.definitions;
        let Some(resource) = own.resource else { return Ok(self.resources.clone()) };
        let revisions = definitions.iter().map(|object| object.revision()).collect();
        if let Some(served) = own.past.get(&revisions) {
            return Ok(served);
        }
        let versions =
            definitions.iter().flat_map(|one| served_as_of(one, resource, &own.schemas, || own.number()));
        let added = versions.filter_map(|custom| self.added(custom)).collect();
        let changes = Changes { added, ..Changes::default() };
        let ids = self.ids_of(&self.catalog.served(), &changes.added).await?;
        let served = Arc::new(self.resources.next(&changes, &ids));
        own.past.put(revisions, served.clone());
        Ok(served)
    }
}
