//! Loads the state from the store.

use std::sync::Arc;

use futures_util::TryStreamExt as _;
use rowplane_store::storage::{Backend, Error, ResourceId, Row, Scan};

use super::keys::Kv;
use super::lags::Lags;
use super::notes::{self, Note};
use super::rows::{Stored, Tables};
use super::state::{Lease, State, key_of, lease_id};

/// A state that is compacted away while it is read is given up, so often.
const ATTEMPTS: usize = 5;

pub async fn load(backend: &dyn Backend, tables: &Tables) -> Result<State, Error> {
    for _ in 1..ATTEMPTS {
        match load_once(backend, tables).await {
            Err(Error::Compacted { .. }) => {}
            loaded => return loaded,
        }
    }
    load_once(backend, tables).await
}

async fn load_once(backend: &dyn Backend, tables: &Tables) -> Result<State, Error> {
    let clock = backend.clock().await?;
    let mut state =
        State { sequence: clock.revision, lags: Lags::new(clock.revision, clock.lag), ..State::default() };
    let Tables { keys, leases, notes } = *tables;
    for resource in [keys, leases, notes] {
        let mut rows = backend.scan(Scan::all(resource), clock.revision).await?;
        while let Some(row) = rows.try_next().await? {
            take(&mut state, tables, resource, row)?;
        }
    }
    if let Some(note) = state.notes.get(notes::COMPACTION) {
        state.compacted = notes::number(&note.value).unwrap_or_default() as i64;
    }
    Ok(state)
}

fn take(state: &mut State, tables: &Tables, resource: ResourceId, row: Row) -> Result<(), Error> {
    let Row { name, revision: sequence, value, .. } = row;
    let (revision, stored) = tables.decode(resource, &value)?;
    match stored {
        Stored::Key(_) => {
            state.insert(Arc::new(Kv::new(key_of(&name)?, sequence, revision, stored)?));
        }
        Stored::Lease(ttl) => {
            state.leases.insert(lease_id(&name)?, Lease { sequence, ttl });
        }
        Stored::Note(value) => {
            state.notes.insert((*name).into(), Note { sequence, value });
        }
    }
    Ok(())
}
