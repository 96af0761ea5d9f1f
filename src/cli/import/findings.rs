//! Findings about a source: keys that are no objects, and objects that cannot be imported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cli::transfer::check::Named;
use crate::revision::Revision;

/// Keys of a source that are no objects, and objects that cannot be imported.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// Keys that stand for no object, counted by their beginning; of a running source those that it had at first.
    pub left: BTreeMap<String, u64>,
    /// Objects that cannot be read.
    pub refused: Named,
    /// Objects that an etcd would not take back.
    pub long: Named,
    /// The newest revision of a source that was followed.
    pub reached: Option<Revision>,
}

/// [`Findings`] that grow while objects are read.
#[derive(Clone, Default)]
pub struct Found(Arc<Mutex<Findings>>);

impl Found {
    pub fn update(&self, change: impl FnOnce(&mut Findings)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub fn findings(&self) -> Findings {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
