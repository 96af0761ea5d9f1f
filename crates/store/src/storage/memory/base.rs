//! The state under a fork's tables.

use std::sync::Arc;

use bytes::Bytes;

use crate::revision::Revision;
use crate::storage::{Key, ResourceId, Row, Scan};

/// The state that a fork begins with. It never changes, and its objects are shared with whoever has made it.
pub trait Base: Send + Sync + 'static {
    fn revision(&self) -> Revision;

    fn get(&self, key: &Key) -> Option<Arc<dyn BaseObject>>;

    /// The objects that a scan covers, in key order; its limit is ignored.
    fn objects<'a>(&'a self, scan: &Scan) -> Box<dyn Iterator<Item = Arc<dyn BaseObject>> + Send + 'a>;

    /// The objects with these revisions, with their resources. The work depends on the size of the whole state.
    fn objects_of(&self, revisions: &[Revision]) -> Vec<(ResourceId, Arc<dyn BaseObject>)>;
}

/// An object of a base.
pub trait BaseObject: Send + Sync {
    fn revision(&self) -> Revision;

    fn namespace(&self) -> &str;

    fn name(&self) -> &str;

    /// The uid in its metadata; empty if it cannot be read.
    fn uid(&self) -> Box<str>;

    fn api_version(&self) -> Option<&str>;

    /// The bytes as they are stored.
    fn to_stored(&self) -> Bytes;
}

/// The row of an object of the base.
pub fn row_of(resource: ResourceId, object: &dyn BaseObject) -> Row {
    Row {
        resource,
        namespace: object.namespace().into(),
        name: object.name().into(),
        revision: object.revision(),
        value: object.to_stored(),
    }
}
