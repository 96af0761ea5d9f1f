//! The objects that tokens depend on, as the watch cache has them.

use std::sync::Arc;

use crate::cache::State;
use crate::codec::object::Object;
use crate::fields::{self, ObjectMap};
use crate::gotext::{Fraction, parse_time, timestamp};
use crate::revision::Revision;
use crate::storage::ResourceId;

/// The store's numbers of the resources.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    pub accounts: ResourceId,
    pub secrets: ResourceId,
    pub pods: ResourceId,
    pub nodes: ResourceId,
    /// Public keys of all servers of the store; nobody serves them.
    pub keys: ResourceId,
}

/// A state in which objects are looked up.
pub struct Live<'a> {
    pub state: &'a State,
    pub resources: &'a Resources,
}

/// An object that exists, with the fields that tokens are judged by.
pub struct Found {
    pub revision: Revision,
    pub uid: String,
    /// In seconds since the epoch.
    pub deleted_at: Option<i64>,
    pub object: ObjectMap,
}

impl Live<'_> {
    pub fn get(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.state.get(resource, namespace, name)
    }

    /// `None` for an object that cannot be read: what it says is not known.
    pub fn read(&self, object: &Object) -> Option<Found> {
        let content = object.to_closed_map().ok()?;
        let deleted_at = fields::text(&content, &["metadata", "deletionTimestamp"]);
        // A time that cannot be read is long past.
        let seconds = |text: &str| parse_time(text, Fraction::Any).map_or(0, |at| timestamp(at).as_second());
        Some(Found {
            revision: object.revision(),
            uid: fields::text(&content, &["metadata", "uid"]).to_owned(),
            deleted_at: (!deleted_at.is_empty()).then(|| seconds(deleted_at)),
            object: content,
        })
    }

    pub fn find(&self, resource: ResourceId, namespace: &str, name: &str) -> Option<Found> {
        self.read(&*self.get(resource, namespace, name)?)
    }
}
