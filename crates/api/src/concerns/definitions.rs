//! CustomResourceDefinitions: their names are kept in rows of their own, and what they say is served when their writer is
//! answered.

use super::{Committed, Concern, Following, ObjectChange};
use crate::effects::Effects;
use crate::error::Error;
use crate::schema::resource::ResourceDefinition;
use crate::{Cluster, ObjectMap};

pub(super) struct Definitions;

impl Concern for Definitions {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"customresourcedefinitions" && definition.group() == "apiextensions.k8s.io"
    }

    /// A definition is written even if only its names are missing in the store.
    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        new: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let names = change.cluster.settle_names(change.target, new, change.old);
        if names.joins() {
            effects.write_unchanged();
        }
        effects.add(names);
        Ok(())
    }

    /// Rows of a definition that cannot be read are taken away by the controller of names.
    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        if let Some(old) = change.old {
            effects.join(change.cluster.release_names(change.target, old));
        }
        Ok(())
    }

    fn committed<'a>(&'a self, cluster: &'a Cluster, _: Committed<'a>) -> Option<Following<'a>> {
        Some(Box::pin(async move {
            cluster.show_definitions().await;
            Ok(None)
        }))
    }
}
