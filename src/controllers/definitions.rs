//! CustomResourceDefinitions that wait for something: those that are being deleted for the end of their objects, and
//! those without all of their names for somebody who gives one up.

mod cleanup;
mod leftovers;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use self::cleanup::clean_up;
use self::leftovers::Leftovers;
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields};
use crate::cache::Range;
use crate::cache::event::Event;
use crate::codec::object::Object;
use crate::kinds::apiextensions::custom_resource_definition::conditions;
use crate::kinds::behavior::part::Part;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::storage;

const DEFINITIONS: Gvr = Gvr::fixed("apiextensions.k8s.io/v1", "customresourcedefinitions");
/// While objects of a definition wait for others (their finalizers), they are looked at again this often.
const RETRY: Duration = Duration::from_millis(250);

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let Some(resource) = api.resources.get(&DEFINITIONS).cloned() else { return Ok(()) };
    let state = api.cache.any();
    let mut watcher = api.cache.watch(resource.id, state.revision);
    let mut waiting = Waiting { leftovers: Leftovers::of_all(&api), ..Waiting::default() };
    for definition in state.objects(resource.id).range(&Range::of(None)) {
        waiting.look_at(&api, definition);
    }
    // Nobody may have told of a name that was given up.
    waiting.due.extend(waiting.nameless.keys().cloned());
    loop {
        let names_are_free = waiting.leftovers.remove(&api).await;
        // Among these events is every definition that was refused a name before it became free.
        loop {
            let events = match watcher.next().await {
                // What has happened is not to be had: it is found by looking at everything.
                Err(storage::Error::Compacted { .. }) => return Ok(()),
                events => events?,
            };
            if events.is_empty() {
                break;
            }
            events.iter().for_each(|event| waiting.learn(&api, event));
        }
        if names_are_free {
            waiting.due.extend(waiting.nameless.keys().cloned());
        }
        waiting.settle(&api, &resource).await?;
        waiting.clean_up(&api, &resource).await;
        if !waiting.leftovers.is_empty() {
            continue;
        }
        if waiting.ending.is_empty() {
            watcher.changed().await;
        } else {
            let _ = tokio::time::timeout(RETRY, watcher.changed()).await;
        }
    }
}

/// The definitions that wait.
#[derive(Default)]
struct Waiting {
    /// The definitions that are being deleted.
    ending: BTreeSet<Box<str>>,
    /// The definitions without all of their names, with their groups.
    nameless: BTreeMap<Box<str>, String>,
    /// The definitions to be looked at for their names.
    due: BTreeSet<Box<str>>,
    leftovers: Leftovers,
}

impl Waiting {
    fn learn(&mut self, api: &Api, event: &Event) {
        match &event.current {
            Some(definition) => self.look_at(api, definition),
            None => {
                let Some(gone) = &event.previous else { return };
                self.ending.remove(gone.name());
                self.nameless.remove(gone.name());
                if let Ok(object) = gone.to_map() {
                    self.leftovers.add(api, &object);
                }
                // Its name ends with its group.
                if let Some((_, group)) = gone.name().split_once('.') {
                    self.ask_others(gone.name(), group);
                }
            }
        }
    }

    fn look_at(&mut self, api: &Api, definition: &Object) {
        let name: Box<str> = definition.name().into();
        let object = match definition.to_map() {
            Ok(object) => object,
            Err(error) => return api.unreadable.tell("definitions", definition, error),
        };
        let has_cleanup = fields::items(&object, &["metadata", "finalizers"])
            .iter()
            .any(|finalizer| finalizer == conditions::CLEANUP);
        if has_cleanup && fields::at(&object, &["metadata", "deletionTimestamp"]).is_some() {
            self.ending.insert(name.clone());
        } else {
            self.ending.remove(&name);
        }
        let group = fields::text(&object, &["spec", "group"]);
        if conditions::is_true(&object, "NamesAccepted") {
            self.nameless.remove(&name);
        } else {
            self.nameless.insert(name.clone(), group.to_owned());
        }
        // It was stored by a release that gave no names, or what keeps its names was lost.
        if conditions::find(&object, "NamesAccepted").is_none() || !api.has_its_names(&object) {
            self.due.insert(name.clone());
        }
        self.ask_others(&name, group);
    }

    /// Somebody of the group has changed, and may have given up a name.
    fn ask_others(&mut self, name: &str, group: &str) {
        let others = self.nameless.iter().filter(|(other, of)| &***other != name && *of == group);
        self.due.extend(others.map(|(other, _)| other.clone()));
    }

    /// Lets definitions ask for their names again.
    async fn settle(&mut self, api: &Api, resource: &Arc<Resource>) -> Result<(), Error> {
        while let Some(name) = self.due.pop_first() {
            let target = Target { resource, namespace: "", name: &name };
            if let Some(found) = api.cache.fresh().await?.get(resource.id, "", &name)
                && let Err(error) = write_status(api, target, &resource.decode_closed(&found)?).await
            {
                tracing::warn!(name = &*name, %error, "cannot give a definition its names");
            }
        }
        Ok(())
    }

    async fn clean_up(&self, api: &Api, resource: &Arc<Resource>) {
        for name in &self.ending {
            let target = Target { resource, namespace: "", name };
            if let Err(error) = clean_up(api, target).await {
                tracing::warn!(name = &**name, %error, "the objects of a definition are not deleted yet");
            }
        }
    }
}

/// Writes a status, and what a write to it may change besides. Who is gone or was changed meanwhile is looked at again.
async fn write_status(api: &Api, target: Target<'_>, object: &ObjectMap) -> Result<(), Error> {
    write(api, &status_of(target), object).await
}

fn status_of(target: Target<'_>) -> Request<'_> {
    Request::own(Verb::Update, target).on(Part::Status)
}

async fn write(api: &Api, request: &Request<'_>, object: &ObjectMap) -> Result<(), Error> {
    match api.update(request, Body::Object(object)).await {
        Ok(_) | Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
