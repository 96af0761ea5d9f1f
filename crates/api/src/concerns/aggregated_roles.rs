//! ClusterRoles that consist of others: a write of a role carries the writes of those that consist of it.

use super::{Concern, ObjectChange};
use crate::ObjectMap;
use crate::auth::rbac::GROUP;
use crate::effects::Effects;
use crate::error::Error;
use crate::schema::resource::ResourceDefinition;

pub(super) struct AggregatedRoles;

impl Concern for AggregatedRoles {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"clusterroles" && definition.group().as_str() == GROUP
    }

    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        new: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        effects.join(change.cluster.settle_aggregation(change.target, new, change.old));
        Ok(())
    }

    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        effects.join(change.cluster.release_aggregation(change.target));
        Ok(())
    }

    fn is_contended(&self) -> bool {
        true
    }
}
