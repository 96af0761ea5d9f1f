//! Configuration of admission: whatever is committed after a webhook or a policy has been judged by it.

use super::{Concern, ObjectChange};
use crate::api::ObjectMap;
use crate::api::admission::dynamic::configured::GROUP;
use crate::api::effects::Effects;
use crate::api::error::Error;
use crate::kinds::behavior::part::Part;
use crate::schema::resource::ResourceDefinition;

pub(super) struct Configuration;

impl Concern for Configuration {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.group().as_str() == GROUP
    }

    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        _: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        self.remove(change, effects)
    }

    /// A status configures nothing.
    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        if change.part != Part::Status {
            change.api.change_configuration(effects);
        }
        Ok(())
    }
}
