//! What plugins see of the store: other objects, as they were a moment ago.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{Attempt, Verdict};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target};
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

/// What a plugin makes of a new object, or why there may be none.
type Complete = fn(&View<'_>, &mut ObjectMap) -> Result<(), String>;

/// Why a plugin does not want an object, which is valid.
type Check = fn(&View<'_>, &ObjectMap) -> Result<(), String>;

/// Completes an object by what this replica knows. A refusal is looked at again in the newest state, where others may have
/// made what was missed.
pub(super) fn complete<'a>(attempt: &'a mut Attempt<'_>, complete: Complete) -> Verdict<'a> {
    let api = attempt.api;
    match complete_in(&api.cache.any(), attempt, complete) {
        Err(_) if api.store.backend().shared() => Verdict::Later(Box::pin(async move {
            let fresh = api.cache.fresh().await?;
            complete_in(&fresh, attempt, complete)
        })),
        verdict => Verdict::Now(verdict),
    }
}

/// Looks at an object by what this replica knows, and again as [`complete`] does.
pub(super) fn check<'a>(attempt: &'a Attempt<'_>, check: Check) -> Verdict<'a> {
    let api = attempt.api;
    match check_in(&api.cache.any(), attempt, check) {
        Err(_) if api.store.backend().shared() => Verdict::Later(Box::pin(async move {
            let fresh = api.cache.fresh().await?;
            check_in(&fresh, attempt, check)
        })),
        verdict => Verdict::Now(verdict),
    }
}

fn complete_in(state: &State, attempt: &mut Attempt<'_>, complete: Complete) -> Result<(), Error> {
    let view = View::new(attempt.api, state, attempt.target.namespace);
    let verdict = complete(&view, attempt.object_mut()?);
    concluded(attempt, view, verdict)
}

fn check_in(state: &State, attempt: &Attempt<'_>, check: Check) -> Result<(), Error> {
    let Some(object) = &attempt.object else { return Ok(()) };
    let view = View::new(attempt.api, state, attempt.target.namespace);
    let verdict = check(&view, object);
    concluded(attempt, view, verdict)
}

/// What a plugin says, if it could see all that it asked for.
fn concluded(attempt: &Attempt<'_>, view: View<'_>, verdict: Result<(), String>) -> Result<(), Error> {
    if let Some(failure) = view.failure() {
        return Err(failure);
    }
    let Target { resource, name, .. } = attempt.target;
    verdict.map_err(|reason| Error::Forbidden {
        resource: resource.group_resource(),
        name: name.to_owned(),
        reason,
    })
}
