//! The state under a fork's tables.

use std::sync::Arc;

use crate::codec::object::Object;
use crate::revision::Revision;
use crate::storage::{Key, ResourceId, Row, Scan};

/// The state that a fork begins with. It never changes, and its objects are shared with whoever has made it.
pub trait Base: Send + Sync + 'static {
    fn revision(&self) -> Revision;

    fn get(&self, key: &Key) -> Option<Arc<Object>>;

    /// The objects that a scan covers, in key order; its limit is ignored.
    fn objects<'a>(&'a self, scan: &Scan) -> Box<dyn Iterator<Item = Arc<Object>> + Send + 'a>;

    /// The objects with these revisions, with their resources. The work depends on the size of the whole state.
    fn objects_of(&self, revisions: &[Revision]) -> Vec<(ResourceId, Arc<Object>)>;
}

/// The row of an object of the base.
pub fn row_of(resource: ResourceId, object: &Object) -> Row {
    Row {
        resource,
        namespace: object.namespace().into(),
        name: object.name().into(),
        revision: object.revision(),
        value: object.to_stored(),
    }
}
