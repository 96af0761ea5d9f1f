//! Objects in another version of their kind. Only Events and HorizontalPodAutoscalers look different in two built-in versions.
//!
//! Nothing is lost either way: what a version has no field for travels in annotations, as upstream's does.

use crate::fields::ObjectMap;

/// The other version of a kind, and the ways there and back.
#[derive(Clone, Copy, Debug)]
pub struct OtherVersion {
    pub api_version: &'static str,
    /// Makes an object of the other version one of this version, but for its `apiVersion`.
    pub convert_from: fn(ObjectMap) -> ObjectMap,
    /// Makes an object of this version one of the other version, but for its `apiVersion`.
    pub convert_to: fn(ObjectMap) -> ObjectMap,
}

impl OtherVersion {
    /// A version whose objects have the same fields.
    pub const fn alike(api_version: &'static str) -> Self {
        Self { api_version, convert_from: |object| object, convert_to: |object| object }
    }

    /// An object of the other version in this version, which is called `api_version`.
    pub fn convert_from(&self, object: ObjectMap, api_version: &str) -> ObjectMap {
        called((self.convert_from)(object), api_version)
    }

    /// An object of this version in the other version.
    pub fn convert_to(&self, object: ObjectMap) -> ObjectMap {
        called((self.convert_to)(object), self.api_version)
    }
}

fn called(mut object: ObjectMap, api_version: &str) -> ObjectMap {
    object.insert("apiVersion", api_version.into());
    object
}
