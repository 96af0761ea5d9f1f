//! Custom objects in the versions of their definition: on their way to the store, and out of it.

use super::custom::Custom;
use crate::ObjectMap;
use crate::codec::object::{Mark, Object};
use crate::error::Error;
use crate::kinds::custom::CustomVersion;
use crate::tree::Value;

impl Custom {
    pub fn served_version(&self) -> &CustomVersion {
        self.version.version()
    }

    /// Whether an object goes out byte for byte: it is stored in the served version, and its schema has nothing to
    /// prune or to add.
    pub fn serves_as_stored(&self, object: &Object) -> bool {
        let version = self.served_version();
        object.api_version() == Some(version.kind.gvk.api_version())
            && object.is_settled_by(version.number, || {
                object.to_map().is_ok_and(|map| version.kind.is_settled(&map))
            })
    }

    /// Whether an object is stored as it would be stored now: an update that changes nothing writes it again if not.
    pub fn is_stored_as_now(&self, object: &Object) -> bool {
        let stored = self.version.definition.stored();
        object.api_version() == Some(stored.kind.gvk.api_version())
            && object.is_settled_by(stored.number, || {
                object.to_map().is_ok_and(|map| stored.kind.is_settled(&map))
            })
    }

    /// Whether only the definition's webhook can make the served version of a stored object.
    pub fn needs_hook(&self, object: &Object) -> bool {
        let served = self.served_version().kind.gvk.api_version();
        self.hook.is_some() && object.api_version().is_some_and(|stored| stored != served)
    }

    /// The version that a stored object names.
    pub fn known_version(&self, api_version: &str) -> Result<&CustomVersion, Error> {
        self.version.definition.version(api_version).ok_or_else(|| {
            let what = format!("request to convert CR from an invalid group/version: {api_version}");
            Error::Unclassified(what)
        })
    }

    /// A stored object as the schema has it that it was stored under.
    pub fn as_stored(&self, mut object: ObjectMap) -> Result<ObjectMap, Error> {
        let version = self.known_version(api_version(&object))?;
        conform(version, &mut object)?;
        let told = |why| Error::Internal(format!("a stored object cannot be read: {why}"));
        version.kind.default(&mut object).map_err(told)?;
        Ok(object)
    }

    /// A stored object as it is served: as the schema has it that it was stored under, and then in the served version.
    pub fn read(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        self.convert(self.as_stored(object)?, self.served_version())
    }

    /// An object of the served version as it is stored. What a webhook converts has been converted before, or stays in
    /// the version in which it was found.
    pub fn to_stored(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        match self.hook {
            Some(_) => Ok(object),
            None => self.convert(object, self.version.definition.stored()),
        }
    }

    /// An object of the served version as it is once it has been stored and read again: another version's schema prunes
    /// it, and a status that was dropped may come back by default. A webhook's conversions have been made before.
    pub fn reread(&self, object: ObjectMap) -> Result<ObjectMap, Error> {
        self.read(self.to_stored(object)?)
    }

    /// The mark of an object that is about to be stored: whether it is settled by the schema of the stored version.
    pub fn mark(&self, stored: &ObjectMap) -> Mark {
        let version = self.version.definition.stored();
        match version.kind.is_settled(stored) {
            true => Mark::settled(version.number),
            false => Mark::default(),
        }
    }

    /// An object of any version in another one; as it is, if there is no such version. Where a webhook converts, its
    /// answers are asked for before ([`Conversions`](crate::conversion::managers::Conversions)).
    pub fn to_version(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        match self.version.definition.version(api_version) {
            Some(_) if self.hook.is_some() => ObjectMap::new(),
            Some(version) => self.convert(object.clone(), version).unwrap_or(object),
            None => object,
        }
    }

    /// Strategy `None`: another apiVersion, and what the other schema does not know is dropped.
    fn convert(&self, mut object: ObjectMap, to: &CustomVersion) -> Result<ObjectMap, Error> {
        let from = api_version(&object);
        if from != to.kind.gvk.api_version().as_str() {
            if self.hook.is_some() {
                let what = format!("an object of {from} has to be converted by a webhook first");
                return Err(Error::Internal(what));
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

pub fn conform(version: &CustomVersion, object: &mut ObjectMap) -> Result<(), Error> {
    let conformed = version.kind.conform_stored(object);
    conformed.map_err(|why| Error::Internal(format!("a stored object is none of its kind: {why}")))
}
