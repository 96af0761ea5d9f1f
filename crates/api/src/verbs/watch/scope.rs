//! The scope of a watch: which events the client gets.

use std::sync::Arc;

use crate::cache::event::{Event, EventType};
use crate::codec::object::Object;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::options::list::Selection;
use crate::resource::Resource;

/// The scope of a watch: which events the client gets.
pub(super) struct Scope {
    pub namespace: Option<Box<str>>,
    pub selection: Selection,
    /// Whether only the namespace restricts the watch.
    unfiltered: bool,
}

impl Scope {
    pub fn new(namespace: Option<&str>, selection: Selection) -> Self {
        let namespace = namespace.or(selection.namespace.as_deref()).map(Into::into);
        let unfiltered = selection.is_everything();
        Self { namespace, selection, unfiltered }
    }

    /// Whether only what a webhook makes of a stored object tells if it is selected.
    pub fn needs_hook(&self, resource: &Resource) -> bool {
        resource.hooked().is_some() && self.selection.looks_inside()
    }

    /// The variant of [`Scope::holds`] for a stored object: where only a conversion can tell, it holds if the namespace
    /// matches.
    pub fn holds_stored(&self, resource: &Resource, object: &Object) -> Result<bool, Error> {
        if self.needs_hook(resource) {
            return Ok(self.namespace.as_deref().is_none_or(|namespace| namespace == object.namespace()));
        }
        self.holds(resource, object)
    }

    pub fn holds(&self, resource: &Resource, object: &Object) -> Result<bool, Error> {
        if self.namespace.as_deref().is_some_and(|namespace| namespace != object.namespace()) {
            return Ok(false);
        }
        if self.unfiltered { Ok(true) } else { resource.selects(&self.selection, object) }
    }

    /// The event type that this watch sees: docs/spec/list-watch.md, 4.1.
    pub fn kind(&self, resource: &Resource, event: &Event) -> Result<Option<EventType>, Error> {
        let holds = |object: &Option<Arc<Object>>| match object {
            Some(object) => self.holds(resource, object),
            None => Ok(false),
        };
        Ok(match (holds(&event.previous)?, holds(&event.current)?) {
            (false, true) => Some(EventType::Added),
            (true, true) => Some(EventType::Modified),
            (true, false) if event.current.is_some() && strikes(Bug::LeavingUnnoticed) => None,
            (true, false) => Some(EventType::Deleted),
            (false, false) => None,
        })
    }
}
