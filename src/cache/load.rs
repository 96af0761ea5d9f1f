//! The state as the store has it now: at the start, and when a replica has slept through more than history.

use std::sync::Arc;

use futures_util::StreamExt;

use super::state::{Objects, State};
use crate::codec::object::Draft;
use crate::revision::Revision;
use crate::storage::{Backend, Error, ResourceId, Scan};

/// Reads every resource at one revision.
pub async fn load(backend: &dyn Backend, resources: &[ResourceId]) -> Result<State, Error> {
    let revision = backend.clock().await?.revision;
    let mut state = State::at(revision);
    for resource in resources {
        state.load(*resource, load_resource(backend, *resource, revision).await?);
    }
    Ok(state)
}

async fn load_resource(backend: &dyn Backend, resource: ResourceId, at: Revision) -> Result<Objects, Error> {
    let mut objects = Objects::default();
    let mut rows = backend.scan(Scan::all(resource), at).await?;
    while let Some(row) = rows.next().await {
        let row = row?;
        let draft = Draft::parse(&row.namespace, &row.name, row.value);
        let object = draft.into_object(row.revision);
        if let Err(error) = object.json() {
            tracing::error!(%error, "kept as it is; reading it fails, deleting it works");
        }
        objects.insert(Arc::new(object));
    }
    Ok(objects)
}
