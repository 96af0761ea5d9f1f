//! The view of the store that plugins have: other objects, as of a moment ago.

use std::cell::OnceCell;
use std::sync::Arc;

use super::{Attempt, Verdict};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::error::Error;
use crate::resource::Resource;
use crate::schema::names::Gvr;
use crate::{Cluster, ObjectMap};

/// One state, seen from one namespace. If a plugin asks for an object that cannot be read, the plugin does not get it,
/// its answer is ignored, and admission fails with [`View::failure`]: a LimitRange keeps limiting when it becomes
/// unreadable.
pub(super) struct View<'a> {
    cluster: &'a Cluster,
    state: &'a State,
    /// The namespace of the admitted object; empty for the cluster scope.
    namespace: &'a str,
    failure: OnceCell<Error>,
}

impl<'a> View<'a> {
    pub fn new(cluster: &'a Cluster, state: &'a State, namespace: &'a str) -> Self {
        Self { cluster, state, namespace, failure: OnceCell::new() }
    }

    /// The error, if a plugin asked for an object that cannot be read.
    pub fn failure(self) -> Option<Error> {
        self.failure.into_inner()
    }

    /// The namespace of the admitted object; empty for the cluster scope.
    pub fn namespace(&self) -> &str {
        self.namespace
    }

    /// Makes a name with a random suffix.
    pub fn generate_name(&self, prefix: &str) -> String {
        (self.cluster.config.generate_name)(prefix)
    }

    /// Reads a cluster-scoped object.
    pub fn get(&self, resource: &Gvr, name: &str) -> Option<ObjectMap> {
        self.find(resource, "", name)
    }

    /// Reads an object in the namespace.
    pub fn sibling(&self, resource: &Gvr, name: &str) -> Option<ObjectMap> {
        self.find(resource, self.namespace, name)
    }

    fn find(&self, resource: &Gvr, namespace: &str, name: &str) -> Option<ObjectMap> {
        let resource = self.resource(resource)?;
        let found = self.state.get(resource.id, namespace, name)?;
        self.read(resource, &found)
    }

    /// All cluster-scoped objects in whose JSON a member of this name occurs.
    pub fn mentioning(&self, resource: &Gvr, member: &str) -> Vec<ObjectMap> {
        self.list(resource, None, |object| object.mentions(member))
    }

    /// All objects in the namespace.
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
        // An unreadable object might contain the member, so it counts.
        let found = objects.range(&range).filter(|object| object.json().is_err() || wanted(object));
        found.filter_map(|object| self.read(resource, object)).collect()
    }

    fn read(&self, resource: &Resource, object: &Object) -> Option<ObjectMap> {
        let failure = match resource.decode(object) {
            Ok(map) => return Some(map),
            Err(error) => error,
        };
        self.cluster.unreadable.tell("admission", object, &failure);
        let _ = self.failure.set(failure);
        None
    }

    fn resource(&self, name: &Gvr) -> Option<&Arc<Resource>> {
        self.cluster.resources.get(name)
    }
}

/// Completes an object by the state that this replica has. A refusal is checked again in the newest state, which may
/// contain what was missing.
///
/// The error of `complete` says why the object is refused.
pub(super) fn complete<'a, F>(attempt: &'a mut Attempt<'_>, complete: F) -> Verdict<'a>
where
    F: Fn(&View<'_>, &mut ObjectMap) -> Result<(), String> + Send + 'a,
{
    let cluster = attempt.cluster;
    match complete_in(&cluster.cache.any(), attempt, &complete) {
        Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
            let fresh = cluster.cache.fresh().await?;
            complete_in(&fresh, attempt, &complete)
        })),
        verdict => Verdict::Now(verdict),
    }
}

/// Checks an object by the state that this replica has, and a refusal again, like [`complete`].
pub(super) fn check<'a, F>(attempt: &'a Attempt<'_>, check: F) -> Verdict<'a>
where
    F: Fn(&View<'_>, &ObjectMap) -> Result<(), String> + Send + 'a,
{
    let cluster = attempt.cluster;
    match check_in(&cluster.cache.any(), attempt, &check) {
        Err(_) if cluster.store.backend().shared() => Verdict::Later(Box::pin(async move {
            let fresh = cluster.cache.fresh().await?;
            check_in(&fresh, attempt, &check)
        })),
        verdict => Verdict::Now(verdict),
    }
}

fn complete_in(
    state: &State,
    attempt: &mut Attempt<'_>,
    complete: impl Fn(&View<'_>, &mut ObjectMap) -> Result<(), String>,
) -> Result<(), Error> {
    let view = View::new(attempt.cluster, state, attempt.target.namespace);
    let verdict = complete(&view, attempt.object_mut()?);
    concluded(attempt, view, verdict)
}

fn check_in(
    state: &State,
    attempt: &Attempt<'_>,
    check: impl Fn(&View<'_>, &ObjectMap) -> Result<(), String>,
) -> Result<(), Error> {
    let Some(object) = &attempt.object else { return Ok(()) };
    let view = View::new(attempt.cluster, state, attempt.target.namespace);
    let verdict = check(&view, object);
    concluded(attempt, view, verdict)
}

/// The plugin's verdict, unless it asked for an object that cannot be read.
fn concluded(attempt: &Attempt<'_>, view: View<'_>, verdict: Result<(), String>) -> Result<(), Error> {
    if let Some(failure) = view.failure() {
        return Err(failure);
    }
    verdict.map_err(|reason| attempt.refused(reason))
}
