//! Snapshots by their names.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::error::{Error, Exists};
use crate::api::verbs::snapshot::Snapshot;
use crate::schema::names::GroupResource;

/// The most snapshots that are kept: each keeps its objects in memory.
const MOST: usize = 1000;

/// The snapshots of a server and of its branches.
#[derive(Default)]
pub struct Snapshots(Mutex<BTreeMap<String, Arc<Snapshot>>>);

impl Snapshots {
    /// Keeps a snapshot; fails if there is one of that name.
    pub fn add(&self, name: &str, snapshot: Snapshot) -> Result<(), Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.contains_key(name) {
            let (resource, name) = (resource(), name.to_owned());
            return Err(Error::AlreadyExists { resource, name, cause: Exists::Plain });
        }
        if all.len() >= MOST {
            return Err(Error::too_many("snapshots are kept"));
        }
        all.insert(name.to_owned(), Arc::new(snapshot));
        Ok(())
    }

    pub fn get(&self, name: &str) -> Result<Arc<Snapshot>, Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(name).cloned().ok_or_else(|| Error::not_found(resource(), name))
    }

    pub fn remove(&self, name: &str) -> Result<Arc<Snapshot>, Error> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(name).ok_or_else(|| Error::not_found(resource(), name))
    }

    pub fn all(&self) -> Vec<(String, Arc<Snapshot>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(name, snapshot)| (name.clone(), snapshot.clone())).collect()
    }
}

fn resource() -> GroupResource {
    GroupResource::new("rowplane.dev", "snapshots")
}
