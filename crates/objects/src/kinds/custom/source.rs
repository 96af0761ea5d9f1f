//! A stored definition as documents read it.

use std::sync::Arc;

use crate::codec::object::Object;
use crate::fields;
use crate::kinds::prelude::*;
use crate::schema::resource::Declaration;

/// Shares the stored object, and reads it when somebody asks.
#[derive(Debug)]
pub struct Source {
    object: Arc<Object>,
    digest: String,
}

impl Source {
    /// `map` is what the object says.
    pub fn new(object: &Arc<Object>, map: &ObjectMap) -> Self {
        let generation = fields::at(map, &["metadata", "generation"]).cloned().unwrap_or_default();
        let digest = format!("{} {generation}", fields::text(map, &["metadata", "uid"]));
        Self { object: object.clone(), digest }
    }
}

impl Declaration for Source {
    fn digest(&self) -> String {
        self.digest.clone()
    }

    fn spec(&self) -> Option<Map> {
        fields::object(&self.object.to_map().ok()?, "spec").cloned()
    }
}
