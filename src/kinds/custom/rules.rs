//! What a custom object has to be: what the schema of its version says, in upstream's order.

use super::CustomVersion;
use crate::causes::{Cause, Causes};
use crate::fields::ObjectMap;
use crate::kinds::behavior::part::Part;
use crate::kinds::behavior::rules::object_meta;
use crate::schema::kind::Shape;
use crate::schema::structural::Structural;

impl CustomVersion {
    fn schema(&self) -> Option<&Structural> {
        match &self.kind.shape {
            Shape::Structural(schema) => Some(schema),
            Shape::Go(_) | Shape::Opaque => None,
        }
    }

    /// What is wrong with a new object; `scale` is what its subresource of that name demands.
    pub fn create_causes(&self, object: &ObjectMap, scale: Vec<Cause>) -> Causes {
        let Some(schema) = self.schema() else { return of_scale(scale) };
        let mut causes = schema.validate(object);
        causes.extend(scale);
        embedded(schema, object, &mut causes);
        causes.append(schema.list_type_causes(object));
        causes
    }

    /// What is wrong with a new version of `old`, or with a part of it. What was wrong and has not changed may stay.
    pub fn update_causes(&self, part: Part, new: &ObjectMap, old: &ObjectMap, scale: Vec<Cause>) -> Causes {
        let Some(schema) = self.schema() else { return of_scale(scale) };
        let mut causes = match part {
            // A status that was taken away is not wrong.
            Part::Status => match new.get("status") {
                Some(status) => schema.validate_status(status, old.get("status")),
                None => Causes::default(),
            },
            _ => schema.validate_update(new, old),
        };
        causes.extend(scale);
        if part != Part::Status {
            embedded(schema, new, &mut causes);
        }
        if schema.list_type_causes(old).is_empty() {
            causes.append(schema.list_type_causes(new));
        }
        causes
    }
}

fn of_scale(scale: Vec<Cause>) -> Causes {
    let mut causes = Causes::default();
    causes.extend(scale);
    causes
}

fn embedded(schema: &Structural, object: &ObjectMap, causes: &mut Causes) {
    schema.embedded(object, &mut |place, inner| object_meta::embedded(&place.to_string(), inner, causes));
}
