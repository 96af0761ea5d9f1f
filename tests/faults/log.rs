//! What happened, in the words of the database: each change in the order of its revision, written down by a trigger
//! inside the transaction that made it.

use std::collections::BTreeMap;

use super::history::{EventKind, Filter, Key, Promise, Token, Version, Violation};

/// A row that the trigger wrote. Of another resource if there is no key.
#[derive(Clone, Debug)]
pub struct Row {
    pub revision: u64,
    /// Of a ConfigMap in the run's namespaces.
    pub key: Option<Key>,
    pub deleted: bool,
    pub uid: String,
    pub value: Vec<u8>,
}

/// One change of one object.
#[derive(Clone, Debug)]
pub struct Change {
    pub revision: u64,
    pub key: Key,
    pub before: Option<Version>,
    pub after: Option<Version>,
}

/// The state after a revision, in key order.
pub type State = BTreeMap<Key, Version>;

pub struct Log {
    end: u64,
    /// In the order of their revisions.
    pub changes: Vec<Change>,
    /// What was wrong with the rows themselves.
    pub violations: Vec<Violation>,
}

/// What a watcher with some filter has to be told of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub kind: EventKind,
    pub key: Key,
    /// Of a deletion the state before, under the deletion's revision.
    pub object: Version,
}

impl Log {
    /// `rows` are in the order of their revisions; at `start`, before the first, no object existed.
    pub fn new(start: u64, rows: Vec<Row>) -> Self {
        let mut log = Self { end: start, changes: Vec::new(), violations: Vec::new() };
        let mut state = State::new();
        for row in rows {
            if row.revision != log.end + 1 {
                log.clock(format!("revision {} follows {}", row.revision, log.end));
            }
            log.end = row.revision;
            let Some(key) = row.key else { continue };
            let before = state.get(&key).cloned();
            let after = if row.deleted { None } else { log.version(row.revision, &row.uid, &row.value) };
            match &after {
                Some(after) => {
                    if before.as_ref().is_some_and(|before| before.uid != after.uid) {
                        log.clock(format!("{key:?} has another uid at {}", row.revision));
                    }
                    state.insert(key.clone(), after.clone());
                }
                None => {
                    if before.is_none() {
                        log.clock(format!("{key:?} was deleted at {}, and was not there", row.revision));
                    }
                    state.remove(&key);
                }
            }
            log.changes.push(Change { revision: row.revision, key, before, after });
        }
        log
    }

    fn version(&mut self, revision: u64, uid: &str, value: &[u8]) -> Option<Version> {
        let token = Token::find(value);
        if token.is_none() {
            self.clock(format!("revision {revision} holds no token"));
        }
        Some(Version { uid: uid.to_owned(), revision, token: token? })
    }

    fn clock(&mut self, story: String) {
        self.violations.push(Violation::new(Promise::Clock, story));
    }

    pub fn state_at(&self, revision: u64) -> State {
        let mut state = State::new();
        for change in self.changes.iter().take_while(|change| change.revision <= revision) {
            match &change.after {
                Some(after) => state.insert(change.key.clone(), after.clone()),
                None => state.remove(&change.key),
            };
        }
        state
    }

    /// The changes with a revision above `after`.
    pub fn since(&self, after: u64) -> &[Change] {
        &self.changes[self.changes.partition_point(|change| change.revision <= after)..]
    }

    pub fn at(&self, revision: u64) -> Option<&Change> {
        let index = self.changes.binary_search_by_key(&revision, |change| change.revision).ok()?;
        Some(&self.changes[index])
    }
}

impl Change {
    /// What this change is to a watcher: nothing, if it is not about what the filter lets through.
    pub fn seen_through(&self, filter: &Filter) -> Option<Expected> {
        let holds =
            |version: &Option<Version>| version.as_ref().filter(|v| filter.holds(&self.key, v)).cloned();
        let (kind, object) = match (holds(&self.before), holds(&self.after)) {
            (None, Some(after)) => (EventKind::Added, after),
            (Some(_), Some(after)) => (EventKind::Modified, after),
            (Some(before), None) => (EventKind::Deleted, Version { revision: self.revision, ..before }),
            (None, None) => return None,
        };
        Some(Expected { kind, key: self.key.clone(), object })
    }
}
