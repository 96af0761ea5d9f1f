//! Transactions: which are refused whatever the state, and what the others do to a state.

mod checks;
mod compare;
mod run;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::Error;
use super::interval::Interval;
use super::keys::{Keys, Kv};
use super::lags::Sequence;
use super::state::State;
use crate::wire::messages::TxnResponse;

pub use checks::{check, delete_interval, is_serializable, touched};
pub use run::{check_revision, run};

/// The effect of a transaction in a state: the writes, all that they rest on, and the answer.
#[derive(Debug, Default)]
pub struct Plan {
    /// In the order of the events. No key comes twice.
    pub writes: Vec<Write>,
    pub reads: Reads,
    /// The revision of what the transaction writes is in it as the one after the state's.
    pub answer: TxnResponse,
}

#[derive(Debug)]
pub enum Write {
    /// A put; `seen` is the version that it replaces.
    Put {
        kv: Arc<Kv>,
        seen: Option<Sequence>,
    },
    Delete {
        key: Bytes,
        seen: Sequence,
    },
}

/// The rows that have decided about a transaction, as they were.
#[derive(Debug, Default)]
pub struct Reads {
    pub keys: BTreeMap<Bytes, Option<Sequence>>,
    pub ranges: Vec<Interval>,
    pub leases: BTreeMap<i64, Sequence>,
}

/// Why a transaction has no plan.
#[derive(Debug)]
pub enum Stop {
    Refused(Error),
    /// The keys of an interval at an older revision are wanted first.
    Past(i64, Interval),
}

/// States that a transaction reads beside the newest one.
pub type Past = Vec<(i64, Interval, Keys)>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

impl Plan {
    /// The answer, now that the writes have this revision; `base` is that of the state.
    pub fn settle(self, base: i64, revision: i64) -> TxnResponse {
        let mut answer = self.answer;
        if revision != base + 1 {
            run::move_revisions(&mut answer, base, revision);
        }
        answer
    }
}

impl Reads {
    fn key(&mut self, state: &State, key: &Bytes) {
        if !self.keys.contains_key(key) {
            self.keys.insert(key.clone(), state.kv(key).map(|kv| kv.sequence));
        }
    }

    fn interval(&mut self, state: &State, interval: &Interval) {
        match interval.as_key() {
            Some(key) => self.key(state, key),
            None if interval.is_empty() || self.ranges.contains(interval) => {}
            None => self.ranges.push(interval.clone()),
        }
    }
}

/// Names that go together into a set of locks.
pub type KeySet = BTreeSet<Bytes>;
