//! What clients have done and seen, and whether it is possible.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Namespace and name.
pub type Key = (String, String);

/// A write request, and its outcome as far as its sender knows.
#[derive(Debug)]
pub struct Write {
    pub key: Key,
    pub operation: Operation,
    /// The newest revision that any client knew when this was sent.
    pub floor: u64,
    pub outcome: Outcome,
}

#[derive(Clone, Debug)]
pub enum Operation {
    /// The token is in the object, and in no other version of any object.
    Create {
        token: String,
    },
    Update {
        token: String,
        at: u64,
    },
    /// Deletes the object with this uid at this revision.
    Delete {
        uid: String,
        at: u64,
    },
}

#[derive(Debug)]
pub enum Outcome {
    /// The answer to a deletion contains no revision.
    Done {
        revision: Option<u64>,
    },
    Refused,
    /// No answer, or one that does not tell.
    Unknown,
}

/// The content of a version of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub uid: String,
    pub revision: u64,
    pub token: String,
}

#[derive(Debug, PartialEq, Eq)]
pub enum EventKind {
    Added,
    Modified,
    Deleted,
}

#[derive(Debug)]
pub struct Event {
    pub kind: EventKind,
    pub key: Key,
    /// The state after the change; for a deletion, the last state with the deletion's revision.
    pub object: Version,
}

#[derive(Debug)]
pub struct Listing {
    /// The newest revision that any client knew when this was requested.
    pub floor: u64,
    pub revision: u64,
    pub items: Vec<(Key, Version)>,
}

pub struct History {
    /// Whether nothing else was written, so that the revisions of the events have no gaps.
    pub alone: bool,
    /// The revision before the first write; no object existed then.
    pub start: u64,
    pub writes: Vec<Write>,
    pub listings: Vec<Listing>,
    /// In the order of arrival.
    pub events: Vec<Event>,
}

/// The token of the last object, which ends the watch.
pub const SENTINEL: &str = "sentinel";

type State = BTreeMap<Key, Version>;

impl History {
    pub fn summary(&self) -> String {
        let count =
            |outcome: fn(&Outcome) -> bool| self.writes.iter().filter(|w| outcome(&w.outcome)).count();
        format!(
            "{} writes done, {} refused, {} unknown; {} events, {} lists",
            count(|outcome| matches!(outcome, Outcome::Done { .. })),
            count(|outcome| matches!(outcome, Outcome::Refused)),
            count(|outcome| matches!(outcome, Outcome::Unknown)),
            self.events.len(),
            self.listings.len(),
        )
    }

    /// The last revision.
    pub fn end(&self) -> u64 {
        self.events.last().map_or(self.start, |event| event.object.revision)
    }

    pub fn check(&self) {
        self.check_clock();
        self.check_events();
        self.check_writes();
        for listing in &self.listings {
            self.check_listing(listing);
        }
    }

    /// The clock has no gaps: where nothing else writes, each revision belongs to one event, in order. This finds changes
    /// that are reported twice or not at all, and revisions that are used twice.
    fn check_clock(&self) {
        let mut before = self.start;
        for event in &self.events {
            let revision = event.object.revision;
            assert!(revision == before + 1 || !self.alone && revision > before, "{before} {event:?}");
            before = revision;
        }
    }

    /// Each event follows from the state before it, and has a request as its cause.
    fn check_events(&self) {
        let mut causes: HashMap<&str, &Write> = HashMap::new();
        let mut deletions: HashMap<(&str, u64), Vec<&Write>> = HashMap::new();
        for write in &self.writes {
            match &write.operation {
                Operation::Create { token } | Operation::Update { token, .. } => {
                    assert!(causes.insert(token, write).is_none(), "two writes of {token}");
                }
                Operation::Delete { uid, at } => deletions.entry((uid, *at)).or_default().push(write),
            }
        }
        let mut state = State::new();
        let mut told: HashSet<&str> = HashSet::new();
        for event in &self.events {
            let before = state.get(&event.key);
            match event.kind {
                EventKind::Added => assert_eq!(before, None, "{event:?}"),
                EventKind::Modified | EventKind::Deleted => {
                    let before = before.unwrap_or_else(|| panic!("of nothing: {event:?}"));
                    assert_eq!(before.uid, event.object.uid, "{event:?}");
                }
            }
            if event.kind == EventKind::Deleted {
                let before = before.expect("checked above");
                assert_eq!(before.token, event.object.token, "{event:?} is not the last state");
                let asked = deletions.get(&(before.uid.as_str(), before.revision));
                let asked = asked.into_iter().flatten().filter(|w| !matches!(w.outcome, Outcome::Refused));
                assert!(asked.count() > 0, "nobody asked for {event:?}");
            } else {
                assert!(told.insert(&event.object.token), "told twice: {event:?}");
                if event.object.token != SENTINEL {
                    let cause = causes.get(event.object.token.as_str());
                    let cause = cause.unwrap_or_else(|| panic!("nobody asked for {event:?}"));
                    check_cause(event, before, cause);
                }
            }
            apply(&mut state, event);
        }
    }

    /// Each answered write has its event.
    fn check_writes(&self) {
        let written: HashMap<&str, &Event> =
            self.changes().map(|event| (event.object.token.as_str(), event)).collect();
        let deleted: HashMap<&str, &Event> =
            self.deletions().map(|event| (event.object.uid.as_str(), event)).collect();
        let mut deleted_by_answer: HashSet<&str> = HashSet::new();
        for write in &self.writes {
            let Outcome::Done { revision } = write.outcome else { continue };
            let event = match &write.operation {
                Operation::Create { token } | Operation::Update { token, .. } => written.get(token.as_str()),
                Operation::Delete { uid, .. } => {
                    assert!(deleted_by_answer.insert(uid), "deleted twice: {write:?}");
                    deleted.get(uid.as_str())
                }
            };
            let event = event.unwrap_or_else(|| panic!("lost: {write:?}"));
            assert!(revision.is_none_or(|revision| revision == event.object.revision), "{write:?} {event:?}");
            assert!(event.object.revision > write.floor, "back in time: {write:?} {event:?}");
        }
    }

    /// A list is the state at its revision, and at least as new as what was known when it was requested.
    pub fn check_listing(&self, listing: &Listing) {
        assert!(listing.revision >= listing.floor, "stale: {} < {}", listing.revision, listing.floor);
        let mut state = State::new();
        for event in self.events.iter().take_while(|event| event.object.revision <= listing.revision) {
            apply(&mut state, event);
        }
        // Compared as a list, so that order and duplicates count.
        let expected: Vec<_> = state.into_iter().collect();
        assert_eq!(listing.items, expected, "the list at {}", listing.revision);
    }

    fn changes(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| event.kind != EventKind::Deleted)
    }

    fn deletions(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| event.kind == EventKind::Deleted)
    }
}

fn check_cause(event: &Event, before: Option<&Version>, cause: &Write) {
    assert!(!matches!(cause.outcome, Outcome::Refused), "{cause:?} was refused and yet made {event:?}");
    assert_eq!(cause.key, event.key, "{cause:?} {event:?}");
    match &cause.operation {
        Operation::Create { .. } => assert_eq!(event.kind, EventKind::Added, "{cause:?}"),
        Operation::Update { at, .. } => {
            assert_eq!(event.kind, EventKind::Modified, "{cause:?}");
            assert_eq!(before.map(|version| version.revision), Some(*at), "{cause:?} {event:?}");
        }
        Operation::Delete { .. } => unreachable!("a deletion has no token"),
    }
}

fn apply(state: &mut State, event: &Event) {
    match event.kind {
        EventKind::Added | EventKind::Modified => state.insert(event.key.clone(), event.object.clone()),
        EventKind::Deleted => state.remove(&event.key),
    };
}
