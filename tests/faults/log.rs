//! What happened, according to the database: each change in the order of its revision, recorded by a trigger inside the
//! transaction that made it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use rowplane::codec::at_rest;
use rowplane::storage::SAFETY_GAP;

use super::history::{
    Action, Answer, Call, EventKind, Filter, Key, Promise, Time, Token, Version, Violation,
};

/// A row that the trigger wrote.
#[derive(Clone, Debug)]
pub struct Row {
    pub revision: u64,
    /// Set for objects of the load in the run's namespaces.
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
    /// Set if a failover has reverted the change: from this revision on it has never happened.
    pub lost_at: Option<u64>,
}

/// A standby has taken over.
#[derive(Clone, Debug)]
pub struct Failover {
    /// The last revision of the old primary that the standby has.
    pub survived: u64,
    /// The rows that only the old primary had.
    pub lost: Vec<Row>,
    /// From before the old primary's end until after the promotion.
    pub began: Time,
    pub ended: Time,
}

/// The state after a revision, in key order.
pub type State = BTreeMap<Key, Version>;

pub struct Log {
    end: u64,
    /// In the order of their revisions, including lost ones.
    pub changes: Vec<Change>,
    /// The clock after each failover.
    jumps: Vec<u64>,
    failovers: Vec<Failover>,
    /// Errors in the rows themselves.
    pub violations: Vec<Violation>,
}

/// What a watcher with some filter must be told of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub kind: EventKind,
    pub key: Key,
    /// For a deletion, the state before with the deletion's revision.
    pub object: Version,
}

impl Log {
    /// `rows` are in the order of their revisions; at `start`, before the first, no object existed.
    pub fn new(start: u64, rows: Vec<Row>, failovers: Vec<Failover>) -> Self {
        let (changes, violations) = (Vec::new(), Vec::new());
        let jumps: Vec<u64> = (0..failovers.len()).map(|at| jump(at, &failovers, &rows)).collect();
        let failures = failovers.clone();
        let mut log = Self { end: start, changes, failovers, jumps: jumps.clone(), violations };
        let mut state = State::new();
        let mut rows = rows.into_iter().peekable();
        for (failover, jump) in failures.into_iter().zip(jumps) {
            while let Some(row) = rows.next_if(|row| row.revision <= failover.survived) {
                log.add(row, &mut state, None);
            }
            let kept = state.clone();
            if !failover.jumps().contains(&jump) {
                log.clock(format!(
                    "the clock went to {jump} after a failover that kept {}",
                    failover.survived
                ));
            }
            for row in failover.lost {
                log.add(row, &mut state, Some(jump));
            }
            if log.end >= jump {
                log.clock(format!("{} was used before the clock went to {jump}", log.end));
            }
            state = kept;
            log.end = jump;
        }
        for row in rows {
            log.add(row, &mut state, None);
        }
        log
    }

    fn add(&mut self, row: Row, state: &mut State, lost_at: Option<u64>) {
        if row.revision != self.end + 1 {
            self.clock(format!("revision {} follows {}", row.revision, self.end));
        }
        self.end = row.revision;
        let Some(key) = row.key else { return };
        let before = state.get(&key).cloned();
        let after = if row.deleted { None } else { self.version(row.revision, &row.uid, &row.value) };
        match &after {
            Some(after) => {
                if before.as_ref().is_some_and(|before| before.uid != after.uid) {
                    self.clock(format!("{key:?} has another uid at {}", row.revision));
                }
                state.insert(key.clone(), after.clone());
            }
            None => {
                if before.is_none() {
                    self.clock(format!("{key:?} was deleted at {}, and was not there", row.revision));
                }
                state.remove(&key);
            }
        }
        self.changes.push(Change { revision: row.revision, key, before, after, lost_at });
    }

    fn version(&mut self, revision: u64, uid: &str, value: &[u8]) -> Option<Version> {
        // Long messages are packed.
        let token = match at_rest::open(value) {
            Ok(opened) => Token::find(&opened.message),
            Err(_) => Token::find(value),
        };
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
        let happened = |change: &&Change| change.lost_at.is_none_or(|jump| revision < jump);
        for change in self.changes.iter().take_while(|change| change.revision <= revision).filter(happened) {
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

impl Log {
    /// How failovers changed objects: each is reverted to the standby's state.
    pub fn restorations(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for (failover, jump) in self.failovers.iter().zip(&self.jumps) {
            let kept = self.state_at(*jump);
            let lost = self.changes.iter().filter(|change| change.lost_at == Some(*jump));
            let keys: std::collections::BTreeSet<&Key> = lost.map(|change| &change.key).collect();
            calls.extend(keys.into_iter().map(|key| Call {
                key: key.clone(),
                action: Action::Restore { to: kept.get(key).cloned() },
                answer: Answer::Written { revision: None },
                called: failover.began,
                returned: failover.ended,
            }));
        }
        calls
    }

    /// The first revision after a failover, if it is between these two.
    pub fn jump_between(&self, before: u64, after: u64) -> Option<u64> {
        self.jumps.iter().copied().find(|jump| before < *jump && *jump <= after)
    }
}

impl Failover {
    /// Where the clock may be after a failover: beyond the new primary's newest revision, up to what the server that
    /// moves the clock has seen of the old one.
    fn jumps(&self) -> RangeInclusive<u64> {
        let known = self.lost.last().map_or(self.survived, |row| row.revision);
        self.survived + SAFETY_GAP..=known + SAFETY_GAP
    }
}

/// The clock after a failover: the next revision tells, if there is one.
fn jump(at: usize, failovers: &[Failover], rows: &[Row]) -> u64 {
    let failover = &failovers[at];
    let lost_later = failovers[at + 1..].iter().flat_map(|later| &later.lost);
    let later =
        rows.iter().chain(lost_later).map(|row| row.revision).filter(|next| *next > failover.survived);
    later.min().map_or(failover.survived + SAFETY_GAP, |next| next - 1)
}

impl Change {
    /// Whether the object has changed without a change of its content.
    pub fn is_touch(&self) -> bool {
        let (Some(before), Some(after)) = (&self.before, &self.after) else { return false };
        before.token == after.token && before.uid == after.uid
    }

    /// How a watcher sees the change; `None` if its filter excludes it.
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
