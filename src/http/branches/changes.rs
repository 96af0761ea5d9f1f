//! The objects of a branch that differ from the state that it was made from.

use std::sync::Arc;

use crate::api::resource::Resource;
use crate::codec::object::Object;
use crate::tree::{Map, Value, json};

/// An object before and after. At least one of the two is there.
pub struct Changed {
    pub resource: Arc<Resource>,
    pub before: Option<Arc<Object>>,
    pub after: Option<Arc<Object>>,
}

impl Changed {
    /// The newer one of the two.
    fn object(&self) -> Option<&Object> {
        self.after.as_deref().or(self.before.as_deref())
    }

    pub fn namespace(&self) -> &str {
        self.object().map_or("", Object::namespace)
    }

    pub fn name(&self) -> &str {
        self.object().map_or("", Object::name)
    }

    /// The change as clients get it. Objects are in the version that they are stored in.
    pub fn to_json(&self) -> Value {
        let event = match (&self.before, &self.after) {
            (None, _) => "ADDED",
            (Some(_), Some(_)) => "MODIFIED",
            (Some(_), None) => "DELETED",
        };
        let version = self.object().and_then(Object::api_version).unwrap_or_default().to_owned();
        let mut change = json!({
            "event": event,
            "resource": self.resource.group_resource().to_string(),
            "apiVersion": version,
            "plural": self.resource.definition.plural.to_string(),
            "namespace": self.namespace(),
            "name": self.name(),
        });
        if let Some(change) = change.as_object_mut() {
            put(change, "before", self.before.as_deref());
            put(change, "after", self.after.as_deref());
        }
        change
    }
}

/// An object that cannot be read is left out.
fn put(change: &mut Map, member: &'static str, object: Option<&Object>) {
    if let Some(object) = object.and_then(|object| object.to_map().ok()) {
        change.insert(member, Value::Object(object));
    }
}
