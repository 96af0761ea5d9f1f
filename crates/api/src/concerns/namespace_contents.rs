//! Namespaces: the objects that every namespace has come in one transaction with it.

use super::{Concern, ObjectChange};
use crate::ObjectMap;
use crate::effects::Effects;
use crate::error::Error;
use crate::schema::resource::ResourceDefinition;

pub(super) struct NamespaceContents;

impl Concern for NamespaceContents {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.plural == *"namespaces" && definition.group().is_empty()
    }

    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        _: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        if change.old.is_none() {
            effects.join(change.cluster.companions(change.target)?);
        }
        Ok(())
    }
}
