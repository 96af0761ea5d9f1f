//! New objects need a namespace that exists and is not going away, up to the moment at which they are committed.
//!
//! Admission judges the namespace as this server sees it, and the write then requires the very version that was judged.
//! So nothing is created after the revision at which a namespace was marked for deletion, on whichever server.

use crate::api::error::{Cause, CauseReason, Error};
use crate::api::{Api, Target, meta, metadata};
use crate::cache::State;
use crate::codec::object::Object;
use crate::schema::names::{GroupResource, Gvr};
use crate::storage::{Expect, Key, Mutation, Requirement, ResourceId, Written};

/// How often a write is tried whose namespace has changed in the meantime, though it may still be written to. Somebody
/// who labels the namespace in every batch wins about half of these races.
const ATTEMPTS: usize = 16;

/// May an object be created here? Returns what the write then has to require; nothing in the cluster scope.
pub async fn admit_create(api: &Api, target: Target<'_>) -> Result<Option<Requirement>, Error> {
    let Some(namespaces) = namespaces(api, target) else { return Ok(None) };
    // Another replica may have created the namespace a moment ago, so "not there" needs a fresh state. A namespace that
    // is there in an old state may be gone or terminating by now: that is why its version is required.
    let mut state = api.cache.any();
    if state.get(namespaces, "", target.namespace).is_none() {
        state = api.cache.fresh().await?;
    }
    judge(namespaces, target, &state).map(Some)
}

/// A PUT or a patch that may create: the namespace counts only if there is no object yet.
pub async fn admit_update_or_create(api: &Api, target: Target<'_>) -> Result<(), Error> {
    if api.cache.any().get(target.resource.id, target.namespace, target.name).is_some() {
        return Ok(());
    }
    admit_create(api, target).await.map(drop)
}

/// Writes a new object. Where its namespace has changed since it was admitted, judges that again; what is answered is
/// whether the object could be written, and never [`Written::Unmet`].
pub async fn write_admitted(api: &Api, target: Target<'_>, mutation: Mutation) -> Result<Written, Error> {
    let mut mutation = mutation;
    for _ in 0..ATTEMPTS {
        let (lost, judged_at) = match api.store.write(mutation).await? {
            Written::Unmet { mutation, judged_at, .. } => (mutation, judged_at),
            written => return Ok(written),
        };
        let state = api.cache.at_least(judged_at).await?;
        let requires = namespaces(api, target).map(|namespaces| judge(namespaces, target, &state));
        mutation = Mutation { requires: requires.transpose()?.into_iter().collect(), ..*lost };
    }
    Err(Error::ServerTimeout { resource: target.resource.group_resource(), operation: "create" })
}

/// The namespace in which the object is to be created, at the version that allows it.
fn judge(namespaces: ResourceId, target: Target<'_>, state: &State) -> Result<Requirement, Error> {
    let namespace = target.namespace;
    let Some(found) = state.get(namespaces, "", namespace) else {
        let resource = GroupResource::new("", "namespaces");
        return Err(Error::NotFound { resource, name: namespace.to_owned() });
    };
    if is_terminating(&found)? {
        return Err(refused(target));
    }
    let key = Key::new(namespaces, "", namespace);
    Ok(Requirement { key, expect: Expect::At(found.revision()) })
}

/// An error if that cannot be read.
fn is_terminating(namespace: &Object) -> Result<bool, Error> {
    namespace.json()?;
    Ok(namespace.mentions("deletionTimestamp")
        && metadata(&namespace.to_map()?).is_some_and(meta::is_terminating))
}

/// The resource of the namespace of `target`, if it is in one.
fn namespaces(api: &Api, target: Target<'_>) -> Option<ResourceId> {
    let resource = || api.resources.get(&Gvr::fixed("v1", "namespaces")).map(|resource| resource.id);
    target.resource.definition.namespaced().then(resource).flatten()
}

fn refused(Target { resource, namespace, name }: Target<'_>) -> Error {
    let reason =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: CauseReason::NamespaceTerminating,
        field: "metadata.namespace".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
    };
    Error::ForbiddenBecause {
        resource: resource.group_resource(),
        name: name.to_owned(),
        reason,
        causes: vec![cause],
    }
}
