//! What plugins see of the store: other objects, as they were a moment ago.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::schema::names::Gvr;

/// One state, seen from one namespace. An object that cannot be read is not shown to plugins, and what they say then
/// does not count: the whole admission fails with [`View::failure`]. A LimitRange does not end by becoming unreadable.
pub(super) struct View<'a> {
    api: &'a Api,
    state: &'a State,
    /// Of the object that is admitted; empty for the cluster scope.
    namespace: &'a str,
    failure: OnceCell<Error>,
}

impl<'a> View<'a> {
    pub fn new(api: &'a Api, state: &'a State, namespace: &'a str) -> Self {
        Self { api, state, namespace, failure: OnceCell::new() }
    }

    /// Why nothing can be said, if a plugin met an object that cannot be read.
    pub fn failure(self) -> Option<Error> {
        self.failure.into_inner()
    }

    /// A cluster-scoped object.
    pub fn get(&self, resource: &Gvr, name: &str) -> Option<ObjectMap> {
        let resource = self.resource(resource)?;
        let found = self.state.get(resource.id, "", name)?;
        self.read(resource, &found)
    }

    /// All cluster-scoped objects in which a member of this name occurs.
    pub fn mentioning(&self, resource: &Gvr, member: &str) -> Vec<ObjectMap> {
        self.list(resource, None, |object| object.mentions(member))
    }

    /// All objects of the namespace.
    pub fn beside(&self, resource: &Gvr) -> Vec<ObjectMap> {
        self.list(resource, Some(self.namespace), |_| true)
    }

    fn list(
        &self,
        resource: &Gvr,
        namespace: Option<&str>,
        wanted: impl Fn(&Object) -> bool,
    ) -> Vec<ObjectMap> {
        let Some(resource) = self.resource(resource) else { return Vec::new() };
        let (objects, range) = (self.state.objects(resource.id), Range::of(namespace));
        // What an unreadable object mentions, nobody knows.
        let found = objects.range(&range).filter(|object| object.json().is_err() || wanted(object));
        found.filter_map(|object| self.read(resource, object)).collect()
    }

    fn read(&self, resource: &Resource, object: &Object) -> Option<ObjectMap> {
        let failure = match resource.decode(object) {
            Ok(map) => return Some(map),
            Err(error) => error,
        };
        self.api.unreadable.tell("admission", object, &failure);
        let _ = self.failure.set(failure);
        None
    }

    fn resource(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        self.api.resources.get(name)
    }
}
