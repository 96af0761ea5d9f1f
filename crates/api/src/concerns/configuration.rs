//! Configuration of admission: whatever is committed after a webhook or a policy has been judged by it.

use super::{Concern, ObjectChange};
use crate::ObjectMap;
use crate::effects::Effects;
use crate::error::Error;
use crate::followers::configured::GROUP;
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
            change.cluster.change_configuration(effects);
        }
        Ok(())
    }
}
