//! Custom objects in the versions of their definition: on their way to the store, and out of it.

use super::Custom;
use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::codec::object::{Mark, Object};
use crate::kinds::custom::CustomVersion;
use crate::tree::Value;

impl Custom {
    fn served_version(&self) -> &CustomVersion {
        self.version.version()
    }

    /// Whether an object goes out byte for byte: it is stored in the served version, and its schema has nothing to
    /// prune or to add.
    pub fn serves_as_stored(&self, object: &Object) -> bool {
        let version = self.served_version();
        object.api_version() == Some(version.kind.gvk.api_version())
            && object
                .is_settled_by(version.number, || object.to_map().is_ok_and(|map| is_settled(version, &map)))
    }

    /// Whether an object is stored as it would be stored now: an update that changes nothing writes it again if not.
    pub fn is_stored_as_now(&self, object: &Object) -> bool {
        let stored = self.version.definition.stored();
        object.api_version() == Some(stored.kind.gvk.api_version())
            && object
                .is_settled_by(stored.number, || object.to_map().is_ok_and(|map| is_settled(stored, &map)))
    }

    /// A stored object as it is served: as the schema has it that it was stored under, and then in the served version.
    pub fn read(&self, mut object: ObjectMap) -> Result<ObjectMap, Error> {
        let from = api_version(&object);
        let Some(version) = self.version.definition.version(from) else {
            let what = format!("request to convert CR from an invalid group/version: {from}");
            return Err(Error::Unclassified(what));
        };
        conform(version, &mut object)?;
        version.kind.default(&mut object);
        self.convert(object, self.served_version())
    }

    /// An object of the served version as it is stored.
    pub fn to_stored(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        self.convert(object, self.version.definition.stored())
    }

    /// What is known of an object that is about to be stored.
    pub fn mark(&self, stored: &ObjectMap) -> Mark {
        let version = self.version.definition.stored();
        match is_settled(version, stored) {
            true => Mark::settled(version.number),
            false => Mark::default(),
        }
    }

    /// An object of any version in another one; as it is, if there is no such version.
    pub fn to_version(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        match self.version.definition.version(api_version) {
            Some(version) => self.convert(object.clone(), version).unwrap_or(object),
            None => object,
        }
    }

    /// Strategy `None`: another apiVersion, and what the other schema does not know is dropped. Hooks are not called yet:
    /// what only they can convert is refused, so that nothing is lost.
    fn convert(&self, mut object: ObjectMap, to: &CustomVersion) -> Result<ObjectMap, Error> {
        if api_version(&object) != to.kind.gvk.api_version().as_str() {
            if self.version.definition.has_conversion_webhook {
                let from = format!("{}, Kind={}", api_version(&object), to.kind.gvk.kind);
                let why = "this server does not call conversion webhooks yet";
                return Err(Error::Unclassified(format!("conversion webhook for {from} failed: {why}")));
            }
            object.insert("apiVersion", to.kind.gvk.api_version().as_str().into());
            conform(to, &mut object)?;
        }
        Ok(object)
    }
}

fn api_version(object: &ObjectMap) -> &str {
    object.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
}

fn conform(version: &CustomVersion, object: &mut ObjectMap) -> Result<(), Error> {
    let conformed = version.kind.conform_stored(object);
    conformed.map_err(|why| Error::Internal(format!("a stored object is none of its kind: {why}")))
}

/// Whether the version's schema has nothing to prune of an object, or to add to it.
fn is_settled(version: &CustomVersion, object: &ObjectMap) -> bool {
    let mut read = object.clone();
    if version.kind.conform_stored(&mut read).is_err() {
        return false;
    }
    version.kind.default(&mut read);
    read == *object
}
