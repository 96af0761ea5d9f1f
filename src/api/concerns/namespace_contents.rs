//! Namespaces: the objects that every namespace has come in one transaction with it.

use super::{Concern, ObjectChange};
use crate::api::ObjectMap;
use crate::api::effects::Effects;
use crate::api::error::Error;
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
            effects.join(change.api.companions(change.target)?);
        }
        Ok(())
    }
}
