//! What plugins see of the store: other objects, as they were a moment ago.

use std::sync::Arc;

use crate::api::ObjectMap;
use crate::api::resource::{Resource, Resources};
use crate::cache::{Range, State};
use crate::codec::object::Object;

/// A resource by its place: group, version, plural.
pub(super) type Place = (&'static str, &'static str, &'static str);

/// One state, seen from one namespace.
pub(super) struct View<'a> {
    pub state: &'a State,
    pub resources: &'a Resources,
    /// Of the object that is admitted; empty for the cluster scope.
    pub namespace: &'a str,
}

impl View<'_> {
    /// A cluster-scoped object.
    pub fn get(&self, place: Place, name: &str) -> Option<ObjectMap> {
        let resource = self.resource(place)?;
        let found = self.state.get(resource.id, "", name)?;
        resource.decode(&found).ok()
    }

    /// All cluster-scoped objects in which a member of this name occurs.
    pub fn mentioning(&self, place: Place, member: &str) -> Vec<ObjectMap> {
        self.list(place, None, |object| object.mentions(member))
    }

    /// All objects of the namespace.
    pub fn beside(&self, place: Place) -> Vec<ObjectMap> {
        self.list(place, Some(self.namespace), |_| true)
    }

    fn list(
        &self,
        place: Place,
        namespace: Option<&str>,
        wanted: impl Fn(&Object) -> bool,
    ) -> Vec<ObjectMap> {
        let Some(resource) = self.resource(place) else { return Vec::new() };
        let (objects, range) = (self.state.objects(resource.id), Range::of(namespace));
        let found = objects.range(&range).filter(|object| wanted(object));
        found.filter_map(|object| resource.decode(object).ok()).collect()
    }

    fn resource(&self, (group, version, plural): Place) -> Option<&Arc<Resource>> {
        self.resources.get(group, version, plural)
    }
}
