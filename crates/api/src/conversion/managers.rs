//! Objects as managers of fields in other versions see them, while a write is at work.
//!
//! The rules of ownership are functions without I/O. They ask for conversions here; what is not known yet is noted, then
//! the webhook is asked for all of it at once, and the rules run again. What cannot be converted is empty in their eyes, so
//! that nobody's fields change.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Converter, api_version};
use crate::error::Error;
use crate::resource::Resource;
use crate::{ObjectMap, metadata_mut};

/// How often the rules may ask for more: a write looks at two objects, and prunes through all versions.
const ROUNDS: usize = 64;

/// The conversions that a write has asked for so far.
#[derive(Default)]
pub struct Conversions(Mutex<Vec<Known>>);

struct Known {
    /// Without managers.
    object: ObjectMap,
    to: String,
    /// `None` as long as nobody has asked the webhook.
    converted: Option<Result<ObjectMap, Error>>,
}

impl Conversions {
    fn known(&self) -> MutexGuard<'_, Vec<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object in another version, without managers.
    pub fn get(&self, object: &ObjectMap, to: &str) -> ObjectMap {
        // It was made of something that is not known yet.
        if api_version(object).is_empty() {
            return ObjectMap::new();
        }
        let mut object = object.clone();
        metadata_mut(&mut object).shift_remove("managedFields");
        if api_version(&object) == to {
            return object;
        }
        let mut known = self.known();
        match known.iter().find(|known| known.to == to && known.object == object) {
            Some(Known { converted: Some(Ok(converted)), .. }) => converted.clone(),
            Some(_) => ObjectMap::new(),
            None => {
                known.push(Known { object, to: to.to_owned(), converted: None });
                ObjectMap::new()
            }
        }
    }

    /// Why something could not be converted.
    pub fn failure(&self) -> Option<Error> {
        let known = self.known();
        known.iter().find_map(|known| known.converted.as_ref()?.as_ref().err().cloned())
    }

    /// Objects of one version that are wanted in another one.
    fn wanted(&self) -> Option<(String, Vec<ObjectMap>)> {
        let known = self.known();
        let first = known.iter().find(|known| known.converted.is_none())?;
        let alike = known.iter().filter(|known| {
            known.converted.is_none()
                && known.to == first.to
                && api_version(&known.object) == api_version(&first.object)
        });
        Some((first.to.clone(), alike.map(|known| known.object.clone()).collect()))
    }

    fn learn(&self, to: &str, objects: &[ObjectMap], converted: Result<Vec<ObjectMap>, Error>) {
        let mut known = self.known();
        for (place, object) in objects.iter().enumerate() {
            let known = known.iter_mut().find(|known| known.to == to && known.object == *object);
            let Some(known) = known else { continue };
            known.converted = Some(match &converted {
                Ok(converted) => Ok(converted.get(place).cloned().unwrap_or_default()),
                Err(error) => Err(error.clone()),
            });
        }
    }
}

impl Converter {
    /// Runs the rules until all that they ask for is known, or the webhook fails.
    pub async fn with_conversions<T>(
        &self,
        resource: &Resource,
        conversions: &Conversions,
        mut rules: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..ROUNDS {
            let result = rules();
            let Some((to, objects)) = conversions.wanted() else { return result };
            let converted = Box::pin(self.for_managers(resource, &to, &objects)).await;
            conversions.learn(&to, &objects, converted);
        }
        Err(Error::Internal("the managers of an object ask for too many conversions".to_owned()))
    }

    async fn for_managers(
        &self,
        resource: &Resource,
        to: &str,
        objects: &[ObjectMap],
    ) -> Result<Vec<ObjectMap>, Error> {
        let Some((custom, hook)) = resource.hooked() else { return Ok(objects.to_vec()) };
        Ok(self.call(custom, hook, custom.known_version(to)?, objects).await?)
    }
}
