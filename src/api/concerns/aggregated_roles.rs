//! ClusterRoles that consist of others: a write of a role carries the writes of those that consist of it.

use super::{Concern, ObjectChange};
use crate::api::ObjectMap;
use crate::api::effects::Effects;
use crate::api::error::Error;
use crate::auth::rbac::GROUP;
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
        effects.join(change.api.settle_aggregation(change.target, new, change.old));
        Ok(())
    }

    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        effects.join(change.api.release_aggregation(change.target));
        Ok(())
    }

    fn is_contended(&self) -> bool {
        true
    }
}
