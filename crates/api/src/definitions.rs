//! Stored CustomResourceDefinitions, and the resources that are served for them.
//!
//! Every server follows the definitions in its own cache: [`Cluster::follow_definitions`] makes a generation of what is
//! served of all that has changed. Whoever writes a definition is answered when this server serves what it says. Another
//! one serves it as soon as it has seen the write, which it makes sure of before it says that something is not there
//! ([`Cluster::newest_served`]).
//!
//! A write of a custom object requires its definition to be at the revision from which the object's resource was made:
//! none is judged by a schema that is gone, and none is created once the definition is marked for deletion.

mod names;
mod past;
mod serving;

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cache::{Objects, Range, State};
use crate::catalog::Served;
use crate::error::Error;
use crate::followers::definitions::known::{Known, Reading};
use crate::resource::Resource;
use crate::{Cluster, Target};

impl Cluster {
    /// Serves what the definitions in the cache say. Does nothing if none has changed.
    pub async fn follow_definitions(&self) -> Result<(), Error> {
        let definitions = &self.definitions;
        let is_shown = |state: &State| !definitions.shown.is_behind(state, definitions.resource);
        if is_shown(&self.cache.any()) {
            return Ok(());
        }
        let mut known = definitions.known.lock().await;
        let state = self.cache.any();
        if is_shown(&state) {
            return Ok(());
        }
        let Some(resource) = definitions.resource else { return Ok(()) };
        let objects = state.objects(resource);
        let names = match definitions.shown.changed_keys(&self.cache, &state, resource) {
            Some(changed) => changed,
            None => self.all_definitions(&known, &objects),
        };
        let names = names.iter().map(|key| key.split_once('\0').map_or(&**key, |(_, name)| name));
        let (schemas, inherited) = (&definitions.schemas, definitions.inherited());
        let reading = Reading { schemas, inherited, number: &mut || definitions.number() };
        let mut update = known.update(names, resource, &objects, reading);
        self.serve_custom(update.take_changes()).await?;
        *known = update.commit();
        definitions.shown.advance(&state);
        Ok(())
    }

    /// The names of all definitions that are stored or that something is served for.
    fn all_definitions(&self, known: &Known, objects: &Objects) -> BTreeSet<Box<str>> {
        let served = self.catalog.served();
        let custom = served.besides().filter(|resource| resource.custom.is_some());
        let mut names: BTreeSet<Box<str>> =
            custom.map(|resource| resource.group_resource().to_string().into()).collect();
        names.extend(known.names().map(Box::from));
        names.extend(objects.range(&Range::of(None)).map(|object| object.name().into()));
        names
    }

    /// The variant of [`Cluster::follow_definitions`] for the writer of a definition, who does not fail if it cannot be
    /// served now: the error is logged.
    pub(super) async fn show_definitions(&self) {
        if let Err(error) = self.follow_definitions().await {
            tracing::warn!(%error, "cannot serve what definitions say, will try again");
        }
    }

    /// Whether a resource is served as it was when the request took it.
    pub fn is_current(&self, resource: &Resource) -> bool {
        let served = self.catalog.served();
        served.get(&resource.definition.gvr()).is_some_and(|newest| std::ptr::eq(&**newest, resource))
    }

    /// An error that lets a client try again if the definition that a write was judged by is not that of now. Requests of
    /// clients are judged again before they see it.
    pub(super) fn check_current(&self, target: Target<'_>) -> Result<(), Error> {
        match self.is_current(target.resource) {
            true => Ok(()),
            false => {
                Err(Error::ServerTimeout { resource: target.resource.group_resource(), operation: "update" })
            }
        }
    }

    /// The generation that is served once this server has seen every write that any server has answered.
    pub async fn newest_served(&self) -> Result<Arc<Served>, Error> {
        self.cache.fresh().await?;
        self.follow_definitions().await?;
        Ok(self.catalog.served())
    }

    /// The variant of [`Cluster::newest_served`] that asks the store only where other servers write, too: alone, a server
    /// knows what it has written.
    pub async fn served_everywhere(&self) -> Result<Arc<Served>, Error> {
        if self.cache.backend().shared() { self.newest_served().await } else { Ok(self.catalog.served()) }
    }

    /// The variant of [`Cluster::served_everywhere`] for readers that show it and decide nothing: while the store is away,
    /// they get what this server knows.
    pub async fn served_as_known(&self) -> Arc<Served> {
        self.served_everywhere().await.unwrap_or_else(|_| self.catalog.served())
    }
}

/// Serves what definitions say as they come, until the server ends.
pub async fn follow(cluster: Arc<Cluster>) {
    const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);
    let Some(resource) = cluster.definitions.resource else { return std::future::pending().await };
    let mut watcher = cluster.cache.watch(resource, cluster.cache.any().revision);
    loop {
        if let Err(error) = cluster.follow_definitions().await {
            tracing::warn!(%error, "cannot serve what definitions say, will try again");
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        watcher.changed().await;
        // What has happened is read from the state.
        while watcher.next().await.is_ok_and(|events| !events.is_empty()) {}
    }
}
