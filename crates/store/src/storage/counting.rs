//! Rows that count what other rows use.
//!
//! A mutation carries [`Charge`]s: amounts that it adds to the counters of another row. They are judged inside the
//! transaction, one after the other, against the counters as the database has them and as the earlier mutations of the
//! batch have left them. A charge that does not fit fails its mutation. The counted row is written once, at the end of
//! the batch, so any number of writers share it without a conflict, and no count is ever lost or given out twice.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;

use super::{Change, Key, Mutation};
use crate::revision::Revision;

/// Amounts that a mutation adds to the counters of another row.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The counting row.
    pub key: Key,
    /// How the row's counters are read and written.
    pub ledger: &'static dyn Ledger,
    /// Amounts by the names of counters; negative ones give back. The ledger knows how they are written.
    pub amounts: Arc<[(Box<str>, Box<str>)]>,
    /// Whether a counter may not grow beyond its limit by this.
    pub limited: bool,
}

/// Reads rows with counters.
pub trait Ledger: Send + Sync + fmt::Debug {
    /// The counters of a stored row; `None` if it cannot be read.
    fn open(&self, key: &Key, value: Bytes) -> Option<Box<dyn Account>>;
}

/// A row with counters that charges are added to.
pub trait Account: Send {
    /// Adds an amount to each counter, or changes nothing and returns false if the charge is limited and a counter
    /// would grow beyond its limit.
    fn add(&mut self, charge: &Charge) -> bool;

    fn duplicate(&self) -> Box<dyn Account>;

    /// The row with its counters as they are now.
    fn change(&self) -> Change;
}

/// The content of a counted row, which is known once its batch has been judged.
#[derive(Clone, Debug, Default)]
pub struct Counted(Arc<OnceLock<Change>>);

impl Counted {
    /// A row whose count was not needed is not written; it reads as a deletion.
    pub(super) fn get(&self) -> &Change {
        self.0.get().unwrap_or(&Change::Delete)
    }

    pub(super) fn set(&self, change: Change) {
        let _ = self.0.set(change);
    }
}

/// The rows that the mutations charge, each once.
pub(super) fn charged_keys<'a>(mutations: impl Iterator<Item = &'a Mutation>) -> Vec<&'a Key> {
    let mut seen = HashSet::new();
    let charges = mutations.flat_map(|mutation| &mutation.charges);
    charges.map(|charge| &charge.key).filter(|key| seen.insert(*key)).collect()
}

/// The live versions of the counted rows of a batch, whose values it is judged by.
pub(super) fn counted_versions(batch: &[Mutation], live: &[Option<Revision>]) -> Vec<Revision> {
    let counted = batch.iter().zip(live).filter(|(mutation, _)| matches!(mutation.change, Change::Count(_)));
    counted.filter_map(|(_, live)| *live).collect()
}
