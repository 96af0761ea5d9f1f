//! The state under a fork's tables.

use std::iter::{Peekable, from_fn};
use std::sync::Arc;

use super::tables::Version;
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

/// A live row: of the tables, or of the base below them.
pub enum Live<'a> {
    Own(&'a Arc<Version>),
    Base(Arc<Object>),
}

impl Live<'_> {
    pub fn revision(&self) -> Revision {
        match self {
            Self::Own(version) => version.revision,
            Self::Base(object) => object.revision(),
        }
    }

    pub fn namespace_and_name(&self) -> (&str, &str) {
        match self {
            Self::Own(version) => (&version.key.namespace, &version.key.name),
            Self::Base(object) => (object.namespace(), object.name()),
        }
    }

    pub fn row(&self, resource: ResourceId) -> Row {
        match self {
            Self::Own(version) => version.row(),
            Self::Base(object) => row_of(resource, object),
        }
    }
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

/// Rows of the tables and of the base, which have no key in common, in key order.
pub fn merged<'a>(
    own: impl Iterator<Item = &'a Arc<Version>>,
    base: impl Iterator<Item = Arc<Object>>,
) -> impl Iterator<Item = Live<'a>> {
    let (mut own, mut base) = (own.map(Live::Own).peekable(), base.map(Live::Base).peekable());
    from_fn(move || match is_first(&mut own, &mut base) {
        true => own.next(),
        false => base.next(),
    })
}

fn is_first<'a>(
    own: &mut Peekable<impl Iterator<Item = Live<'a>>>,
    base: &mut Peekable<impl Iterator<Item = Live<'a>>>,
) -> bool {
    match (own.peek(), base.peek()) {
        (Some(own), Some(base)) => own.namespace_and_name() < base.namespace_and_name(),
        (own, _) => own.is_some(),
    }
}
