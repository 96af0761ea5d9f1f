//! The end of a definition: its objects are deleted, and when the last one is gone, so is what keeps the definition.
//!
//! No object is created after the revision that marks a definition for deletion, on whichever server, since each create
//! requires the definition to be as it was (`api/src/definitions.rs`). So a state without objects is the end.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};

use super::{status_of, write, write_status};
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields, meta, metadata};
use crate::cache::Range;
use crate::codec::object::Object;
use crate::kinds::apiextensions::custom_resource_definition::conditions::{self, CLEANUP, Condition};
use crate::long_work::{Turn, decoding};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::schema::resource::Verb;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, Scan};
use crate::tree::Value;

/// Deletions under way at a time: enough to fill a batch.
const PARALLEL: usize = 64;
const COMPLETED: &str = "InstanceDeletionCompleted";
const REMOVED_ALL: &str = "removed all instances";

/// Deletes what is left of a definition's objects, and releases the definition if that is nothing.
pub async fn clean_up(api: &Api, target: Target<'_>) -> Result<(), Error> {
    let state = api.cache.fresh().await?;
    let decided_at = state.revision;
    let Some(found) = state.get(target.resource.id, "", target.name) else {
        return Ok(());
    };
    let mut definition = target.resource.decode_closed(&found)?;
    let is_ours = meta_finalizers(&definition).any(|finalizer| finalizer == CLEANUP);
    if !is_ours || !metadata(&definition).is_some_and(meta::is_terminating) {
        return Ok(());
    }
    if !conditions::is_true(&definition, "Established") {
        let message = "resource was never established";
        return release(api, (target, decided_at), definition, "NeverEstablished", message).await;
    }
    let reason = conditions::find(&definition, "Terminating").map(|condition| condition["reason"].clone());
    if reason.is_none_or(|reason| reason != "InstanceDeletionInProgress") {
        let message = "CustomResource deletion is in progress";
        tell(api, &mut definition, "InstanceDeletionInProgress", message.to_owned());
        write_status(api, target, &definition).await?;
        let Some(found) = api.cache.fresh().await?.get(target.resource.id, "", target.name) else {
            return Ok(());
        };
        definition = target.resource.decode_closed(&found)?;
    }
    api.follow_definitions().await?;
    let served = api.catalog.served();
    let name = GroupResource::new(
        fields::text(&definition, &["spec", "group"]),
        fields::text(&definition, &["spec", "names", "plural"]),
    );
    let Some(resource) = served.by_storage(&name) else {
        delete_unserved(api, &name, None).await?;
        return release(api, (target, decided_at), definition, COMPLETED, REMOVED_ALL).await;
    };
    if let Err(error) = delete_all(api, resource).await {
        tell(api, &mut definition, "InstanceDeletionFailed", format!("could not issue all deletes: {error}"));
        write_status(api, target, &definition).await?;
        return Err(error);
    }
    if api.cache.fresh().await?.objects(resource.id).is_empty() {
        return release(api, (target, decided_at), definition, COMPLETED, REMOVED_ALL).await;
    }
    Ok(())
}

fn meta_finalizers(definition: &ObjectMap) -> impl Iterator<Item = &str> {
    metadata(definition).into_iter().flat_map(meta::finalizers)
}

fn tell(api: &Api, definition: &mut ObjectMap, reason: &'static str, message: String) {
    conditions::set(definition, &Condition::new("Terminating", true, reason, message), &api.now());
}

/// Takes the finalizer off, together with the last word on the definition's objects.
async fn release(
    api: &Api,
    (target, decided_at): (Target<'_>, Revision),
    mut definition: ObjectMap,
    reason: &'static str,
    message: &str,
) -> Result<(), Error> {
    conditions::set(&mut definition, &Condition::new("Terminating", false, reason, message), &api.now());
    let others: Vec<Value> =
        meta_finalizers(&definition).filter(|finalizer| *finalizer != CLEANUP).map(Value::from).collect();
    fields::object_mut(&mut definition, "metadata").insert("finalizers", others.into());
    write(api, &status_of(target).decided_at(decided_at), &definition).await
}

/// Deletes the rows of a resource that is served in no version: nobody can take a finalizer off any of them.
pub async fn delete_unserved(
    api: &Api,
    name: &GroupResource,
    requires: Option<&Requirement>,
) -> Result<(), Error> {
    let backend = api.cache.backend();
    let ids = backend.resource_ids(std::slice::from_ref(name)).await?;
    let Some(resource) = ids.first() else { return Ok(()) };
    let mut rows = backend.scan(Scan::all(*resource), backend.clock().await?.revision).await?;
    while let Some(row) = rows.next().await {
        let row = row?;
        let key = Key::new(*resource, &row.namespace, &row.name);
        let deletion = Mutation::new(key, Expect::At(row.revision), Change::Delete);
        api.store.write(deletion.requiring(requires.cloned())).await?;
    }
    Ok(())
}

/// Deletes every object that is not on its way out.
async fn delete_all(api: &Api, resource: &Arc<Resource>) -> Result<(), Error> {
    let objects = api.cache.fresh().await?.objects(resource.id);
    let mut left: Vec<Arc<Object>> = Vec::new();
    let mut unreadable = None;
    let mut turn = Turn::default();
    for object in objects.range(&Range::of(None)) {
        // What waits for others already is not asked again.
        match object.json().map(|_| object) {
            Ok(object) if !is_terminating(object) => left.push(object.clone()),
            Ok(_) => {}
            // It may have finalizers, so it stays until someone deletes it by name.
            Err(error) => {
                api.unreadable.tell("definitions", object, &error);
                unreadable.get_or_insert(error);
            }
        }
        if turn.take(decoding(object.size())) {
            turn.end().await;
        }
    }
    let deletions = left.iter().map(Ok);
    let delete = |object: &Arc<Object>| {
        let object = object.clone();
        async move {
            let target = Target { resource, namespace: object.namespace(), name: object.name() };
            match api.delete(&Request::own(Verb::Delete, target)).await {
                Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        }
    };
    stream::iter(deletions).try_for_each_concurrent(PARALLEL, delete).await?;
    unreadable.map_or(Ok(()), |error| Err(error.into()))
}

fn is_terminating(object: &Object) -> bool {
    object.mentions("deletionTimestamp")
        && object.to_map().is_ok_and(|object| metadata(&object).is_some_and(meta::is_terminating))
}
