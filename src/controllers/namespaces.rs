//! Empties namespaces that are being deleted: everything in them is deleted, Pods first (KEP-5080), then their last
//! finalizer is removed. Meanwhile their conditions tell what is left.

mod extensions;
mod remains;
mod waiting;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::api::decode::Body;
use crate::api::request::Request;
use crate::failpoints::{Bug, strikes};
use crate::fields;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

use self::remains::Remains;
use self::waiting::{Left, Waiting};
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::options::GetOptions;
use crate::api::options::ReadAt;
use crate::api::options::delete::DeleteOptions;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, meta, metadata};
use crate::cache::Range;
use crate::codec::object::Object;
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::kinds::behavior::part::Part;
use crate::long_work::{Turn, decoding};
use crate::revision::Revision;

/// The finalizer that this controller removes.
const FINALIZER: &str = "kubernetes";
/// How often it is looked whether a namespace whose objects wait for finalizers or grace periods is due.
const RETRY: Duration = Duration::from_millis(250);

/// Namespaces that wait, by their names.
type Waits = HashMap<Box<str>, Waiting>;

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(namespaces) = api.resources.get(&Gvr::fixed("v1", "namespaces")).cloned() else {
        return Ok(());
    };
    let mut watcher = api.cache.watch(namespaces.id, api.cache.any().revision);
    let mut waits = Waits::new();
    loop {
        // Before the namespaces are looked at: what comes meanwhile wakes this loop again.
        while !watcher.next().await?.is_empty() {}
        empty_all(&api, &namespaces, &mut waits).await;
        if !waits.is_empty() {
            let _ = tokio::time::timeout(RETRY, watcher.changed()).await;
        } else {
            watcher.changed().await;
        }
    }
}

/// Handles all terminating namespaces that are due, and notes which wait.
async fn empty_all(api: &Api, namespaces: &Arc<Resource>, waits: &mut Waits) {
    let all = api.cache.any().objects(namespaces.id);
    for namespace in all.range(&Range::of(None)) {
        if let Err(error) = namespace.json() {
            api.unreadable.tell("namespaces", namespace, error);
        }
    }
    let terminating: Vec<Arc<Object>> =
        all.range(&Range::of(None)).filter(|object| object.mentions("deletionTimestamp")).cloned().collect();
    waits.retain(|name, _| terminating.iter().any(|namespace| namespace.name() == &**name));
    for namespace in terminating {
        let (name, now) = (namespace.name(), Instant::now());
        if waits.get(name).is_some_and(|waiting| !waiting.is_due(&namespace, &api.cache.any(), now)) {
            continue;
        }
        let left = empty(api, Target { resource: namespaces, namespace: "", name }).await;
        let left = left.unwrap_or_else(|error| {
            tracing::debug!(namespace = name, %error, "not emptied yet");
            Some(Left::failed())
        });
        match left {
            Some(left) => {
                let before = waits.remove(name);
                waits.insert(name.into(), Waiting::new(&namespace, left, before, Instant::now()));
            }
            None => _ = waits.remove(name),
        }
    }
}

/// Deletes the content of a namespace, and finalizes it once nothing is left. Returns what is left; `None` if the
/// namespace needs no more work.
async fn empty(api: &Api, target: Target<'_>) -> Result<Option<Left>, Error> {
    // What a failover takes back while the namespace is looked through is found in the next round.
    let decided_at = api.cache.any().revision;
    let found = match api.get(target, GetOptions { at: ReadAt::Latest }).await {
        Ok(found) => found.to_map()?,
        Err(Error::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata(&found).is_some_and(meta::is_terminating) || !is_ours(&found) {
        return Ok(None);
    }
    let (served, seen) = (api.catalog.served(), api.cache.any());
    let remains = delete_contents(api, &served, target.name).await?;
    // A resource that was added meanwhile may have objects in the namespace.
    let has_all = |newest: &Served| newest.stored().all(|resource| served.stores(resource.id));
    if (remains.is_nothing() || strikes(Bug::NamespaceEndsEarly)) && has_all(&api.catalog.served()) {
        finalize(api, target, found, decided_at).await?;
        return Ok(None);
    }
    if let Some(conditions) = remains.conditions(&found, &api.now()) {
        report(api, target, found, conditions).await?;
    }
    let is_left = |resource: &&Arc<Resource>| remains.holds(&resource.group_resource());
    let resources = namespaced(&served).filter(is_left).map(|resource| resource.id).collect();
    Ok(Some(Left::new(resources, remains.count(), remains.has_failed(), &seen)))
}

fn namespaced(served: &Served) -> impl Iterator<Item = &Arc<Resource>> {
    served.stored().filter(|resource| resource.definition.namespaced())
}

fn is_ours(namespace: &ObjectMap) -> bool {
    fields::items(namespace, &["spec", "finalizers"]).iter().any(|finalizer| finalizer == FINALIZER)
}

/// Deletes the content of a namespace. Other objects are deleted only once no Pod is left, since Pods may need them to
/// terminate.
async fn delete_contents(api: &Api, served: &Served, namespace: &str) -> Result<Remains, Error> {
    let (pods, others): (Vec<_>, Vec<_>) = namespaced(served).partition(|resource| is_pods(resource));
    let mut remains = delete_all(api, &pods, namespace).await?;
    if remains.is_nothing() {
        remains = delete_all(api, &others, namespace).await?;
        extensions::delete_contents(api, namespace, &mut remains).await;
    }
    Ok(remains)
}

fn is_pods(resource: &Resource) -> bool {
    resource.definition.group().is_empty() && &*resource.definition.plural == "pods"
}

async fn delete_all(api: &Api, resources: &[&Arc<Resource>], namespace: &str) -> Result<Remains, Error> {
    let mut remains = Remains::default();
    for resource in resources {
        if let Err(error) = delete_objects(api, resource, namespace).await {
            remains.failed(&error);
        }
    }
    // Every create requires the version of the namespace with which it was admitted (`api/src/admission/namespace.rs`), so
    // none commits after the namespace was marked: a fresh state without content is final.
    let state = api.cache.fresh().await?;
    let mut turn = Turn::default();
    for resource in resources {
        for object in state.objects(resource.id).range(&Range::of(Some(namespace))) {
            remains.add(&resource.group_resource(), object);
            if turn.take(decoding(object.size())) {
                turn.end().await;
            }
        }
    }
    Ok(remains)
}

async fn delete_objects(api: &Api, resource: &Arc<Resource>, namespace: &str) -> Result<(), Error> {
    let options =
        DeleteOptions { dependents: Dependents::Policy(Propagation::Background), ..DeleteOptions::default() };
    let objects = api.cache.any().objects(resource.id);
    let mut turn = Turn::default();
    for object in objects.range(&Range::of(Some(namespace))) {
        // An unreadable object may have finalizers, so it stays until someone deletes it by name.
        if let Err(error) = object.json() {
            api.unreadable.tell("namespaces", object, error);
            continue;
        }
        // The object is terminating already and waits for someone else.
        if object.mentions("deletionTimestamp")
            && metadata(&object.to_map()?).is_some_and(meta::is_terminating)
        {
            if turn.take(decoding(object.size())) {
                turn.end().await;
            }
            continue;
        }
        let target = Target { resource, namespace, name: object.name() };
        match api.delete(&Request::own(Verb::Delete, target).with(&options).seen_by_hooks()).await {
            Ok(_) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn report(
    api: &Api,
    target: Target<'_>,
    mut namespace: ObjectMap,
    conditions: Vec<Value>,
) -> Result<(), Error> {
    if let Some(status) = namespace.entry("status").or_insert_with(|| json!({})).as_object_mut() {
        status.insert("conditions", conditions.into());
    }
    write(api, Request::own(Verb::Update, target).on(Part::Status), &namespace).await
}

async fn finalize(
    api: &Api,
    target: Target<'_>,
    mut namespace: ObjectMap,
    decided_at: Revision,
) -> Result<(), Error> {
    let finalizers = fields::items(&namespace, &["spec", "finalizers"]).iter();
    let others: Vec<&Value> = finalizers.filter(|finalizer| **finalizer != FINALIZER).collect();
    let spec = json!({"finalizers": others});
    namespace.insert("spec", spec);
    let request = Request::own(Verb::Update, target).on(Part::Finalize).decided_at(decided_at);
    write(api, request, &namespace).await
}

async fn write(api: &Api, request: Request<'_>, namespace: &ObjectMap) -> Result<(), Error> {
    match api.update(&request.seen_by_hooks(), Body::Object(namespace)).await {
        Ok(_) | Err(Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
