//! Keeps what belongs into every namespace: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Both come
//! with the namespace; this controller makes them where they are missing all the same, and undoes changes of the second.
//!
//! A ConfigMap that kube-controller-manager has written stays as it is: two controllers that know different certificates
//! would otherwise write for ever.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::bootstrap::create::create;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::namespace_contents::{CA_KEY, DEFAULT_ACCOUNT, NamespaceContents, ROOT_CA};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::cache::event::Event;
use crate::cache::{Range, Watcher};
use crate::codec::object::Object;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

/// The pause before a namespace is looked at again in which something could not be written.
const RETRY: Duration = Duration::from_secs(1);
const OTHER_MANAGER: &str = "kube-controller-manager";

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(contents) = api.config.namespace_contents.clone() else { return std::future::pending().await };
    let resources = ["namespaces", "serviceaccounts", "configmaps"];
    let [Some(namespaces), Some(accounts), Some(config_maps)] =
        resources.map(|plural| api.resources.get(&Gvr::fixed("v1", plural)).cloned())
    else {
        return std::future::pending().await;
    };
    let keeper = Keeper { api: &api, contents, namespaces, config_maps };
    let state = api.cache.any();
    let watch = |resource: &Resource| api.cache.watch(resource.id, state.revision);
    let (mut of_namespaces, mut of_accounts, mut of_maps) =
        (watch(&keeper.namespaces), watch(&accounts), watch(&keeper.config_maps));
    let mut open: BTreeSet<String> = state
        .objects(keeper.namespaces.id)
        .range(&Range::of(None))
        .map(|object| object.name().to_owned())
        .collect();
    loop {
        keeper.keep(&mut open).await;
        tokio::select! {
            () = of_namespaces.changed() => {}
            () = of_accounts.changed() => {}
            () = of_maps.changed() => {}
            () = tokio::time::sleep(RETRY), if !open.is_empty() => {}
        }
        collect(&mut of_namespaces, &mut open, |object| Some(object.name())).await?;
        collect(&mut of_accounts, &mut open, |object| named(object, DEFAULT_ACCOUNT)).await?;
        collect(&mut of_maps, &mut open, |object| named(object, ROOT_CA)).await?;
    }
}

/// The namespace of an object that has this name.
fn named<'a>(object: &'a Object, name: &str) -> Option<&'a str> {
    (object.name() == name).then(|| object.namespace())
}

/// Adds the namespaces in which something has happened.
async fn collect(
    watcher: &mut Watcher,
    open: &mut BTreeSet<String>,
    namespace_of: impl for<'a> Fn(&'a Object) -> Option<&'a str>,
) -> Result<(), Error> {
    loop {
        let events: Vec<Arc<Event>> = watcher.next().await?;
        if events.is_empty() {
            return Ok(());
        }
        let objects = events.iter().filter_map(|event| event.current.as_ref().or(event.previous.as_ref()));
        open.extend(objects.filter_map(|object| namespace_of(object)).map(str::to_owned));
    }
}

struct Keeper<'a> {
    api: &'a Api,
    contents: NamespaceContents,
    namespaces: Arc<Resource>,
    config_maps: Arc<Resource>,
}

impl Keeper<'_> {
    /// Brings the namespaces up to date. Those that could not be stay.
    async fn keep(&self, open: &mut BTreeSet<String>) {
        for namespace in std::mem::take(open) {
            match self.keep_one(&namespace).await {
                // The namespace is going away, or somebody else was faster, which is told by another event.
                Ok(())
                | Err(Error::NotFound { .. } | Error::ForbiddenBecause { .. } | Error::Conflict { .. }) => {}
                Err(error) => {
                    tracing::warn!(%namespace, %error, "cannot make what belongs into a namespace");
                    open.insert(namespace);
                }
            }
        }
    }

    async fn keep_one(&self, namespace: &str) -> Result<(), Error> {
        let state = self.api.cache.any();
        let is_there = |object: Arc<Object>| !object.mentions("deletionTimestamp");
        if !state.get(self.namespaces.id, "", namespace).is_some_and(is_there) {
            return Ok(());
        }
        for (gvr, object) in self.contents.objects() {
            let Some(resource) = self.api.resources.get(&gvr) else { continue };
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            match state.get(resource.id, namespace, name) {
                None => create(self.api, &gvr, namespace, object).await?,
                Some(found) if name == ROOT_CA => self.restore(namespace, &found).await?,
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Undoes a change of the certificates.
    async fn restore(&self, namespace: &str, found: &Object) -> Result<(), Error> {
        let Ok(mut object) = found.to_closed_map() else { return Ok(()) };
        let data = json!({CA_KEY: self.contents.root_ca});
        if object.get("data") == Some(&data) || is_others(&object) {
            return Ok(());
        }
        object.insert("data", data);
        object.shift_remove("binaryData");
        let target = Target { resource: &self.config_maps, namespace, name: ROOT_CA };
        self.api.update(&Request::own(Verb::Update, target), Body::Object(&object)).await.map(drop)
    }
}

/// Whether kube-controller-manager has written the object.
fn is_others(object: &ObjectMap) -> bool {
    let managers = fields::items(object, &["metadata", "managedFields"]);
    managers.iter().any(|entry| entry.get("manager").and_then(Value::as_str) == Some(OTHER_MANAGER))
}
