//! Compares watches with the log: the nine promises, as etcd's robustness suite names them.

use std::collections::HashSet;

use super::history::{EventKind, Filter, Key, Promise, Start, Stream, Told, Version, Violation, WatchRun};
use super::log::{Expected, Log};

pub fn check(log: &Log, run: &WatchRun) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut at = 0;
    for (number, stream) in run.streams.iter().enumerate() {
        let judge = Judge::new(log, &run.filter, stream);
        let mut found = judge.judge();
        if number > 0 && stream.start != Start::State {
            found.extend(resumed_too_late(log, run, at, judge.start));
        }
        at = stream.told.iter().filter_map(revision_of).next_back().unwrap_or(at).max(judge.start);
        let place = |violation: Violation| Violation {
            story: format!("stream {number} of a watch of {:?}: {}", run.filter, violation.story),
            ..violation
        };
        violations.extend(found.into_iter().map(place));
    }
    violations
}

/// Each watch must have been told everything up to `end`, once all faults are over.
pub fn check_complete(log: &Log, run: &WatchRun, end: u64) -> Option<Violation> {
    let last = run.streams.last()?;
    let told = last.told.iter().filter_map(revision_of).max().unwrap_or(0).max(start_of(last));
    let missing =
        expected(log, &run.filter, told).into_iter().find(|expected| expected.object.revision <= end);
    missing.map(|missing| {
        Violation::new(Promise::Reliable, format!("never told {missing:?}, only up to {told}"))
    })
}

/// A stream must continue where the previous one ended.
fn resumed_too_late(log: &Log, run: &WatchRun, ended: u64, start: u64) -> Option<Violation> {
    let missing =
        expected(log, &run.filter, ended).into_iter().find(|expected| expected.object.revision <= start)?;
    let story = format!("resumed at {start} after {ended}, {missing:?} is missing");
    Some(Violation::new(Promise::Resumable, story))
}

/// The start of a stream.
struct FirstState {
    told: Vec<(Key, Version, EventKind)>,
    bookmark: Option<u64>,
}

struct Judge<'a> {
    log: &'a Log,
    filter: &'a Filter,
    /// The revision after the stream's first state.
    start: u64,
    expected: Vec<Expected>,
    /// The synthetic events and the bookmark that ends them, if the stream started with a state.
    state: Option<FirstState>,
    live: &'a [Told],
}

impl<'a> Judge<'a> {
    fn new(log: &'a Log, filter: &'a Filter, stream: &'a Stream) -> Self {
        let (state, start, live) = match stream.start {
            Start::After(revision) => (None, revision, &stream.told[..]),
            Start::State => {
                let end = stream
                    .told
                    .iter()
                    .position(|told| matches!(told, Told::Bookmark { end_of_state: true, .. }));
                let bookmark = end.and_then(|end| revision_of(&stream.told[end]));
                let (synthetic, live) = stream.told.split_at(end.map_or(stream.told.len(), |end| end + 1));
                let synthetic = synthetic.iter().filter_map(|told| match told {
                    Told::Event { kind, key, object } => Some((key.clone(), object.clone(), *kind)),
                    _ => None,
                });
                let state = FirstState { told: synthetic.collect(), bookmark };
                (Some(state), bookmark.unwrap_or(0), live)
            }
        };
        Self { log, filter, start, expected: expected(log, filter, start), state, live }
    }

    fn judge(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        violations.extend(self.state());
        violations.extend(self.ordered());
        violations.extend(self.unique());
        violations.extend(self.reliable_and_resumable());
        violations.extend(self.bookmarkable());
        violations.extend(self.crosses_no_jump());
        for (kind, key, object) in self.events() {
            violations.extend(self.event(kind, key, object));
        }
        violations
    }

    fn events(&self) -> impl Iterator<Item = (EventKind, &Key, &Version)> {
        self.live.iter().filter_map(|told| match told {
            Told::Event { kind, key, object } => Some((*kind, key, object)),
            _ => None,
        })
    }

    /// A stream that started with a state has reported the complete state at its bookmark, in order.
    fn state(&self) -> Vec<Violation> {
        let Some(FirstState { told, bookmark: Some(bookmark) }) = &self.state else { return Vec::new() };
        let mut violations = Vec::new();
        if let Some(other) = told.iter().find(|(.., kind)| *kind != EventKind::Added) {
            violations
                .push(Violation::new(Promise::CreatedOrModified, format!("in the first state: {other:?}")));
        }
        let state = self.log.state_at(*bookmark);
        let state: Vec<_> = state.iter().filter(|(key, version)| self.filter.holds(key, version)).collect();
        if !state.iter().copied().eq(told.iter().map(|(key, version, _)| (key, version))) {
            violations.push(Violation::new(
                Promise::Reliable,
                format!("the state at {bookmark} was told as {told:?}"),
            ));
        }
        violations
    }

    fn ordered(&self) -> Vec<Violation> {
        let revisions: Vec<u64> = self.events().map(|(.., object)| object.revision).collect();
        let pairs = revisions.windows(2).filter(|pair| pair[1] < pair[0]);
        pairs.map(|pair| Violation::new(Promise::Ordered, format!("{} after {}", pair[1], pair[0]))).collect()
    }

    fn unique(&self) -> Vec<Violation> {
        let mut told = HashSet::new();
        let again = self.events().filter(|(.., object)| !told.insert(object.revision));
        again
            .map(|(kind, key, object)| {
                Violation::new(Promise::Unique, format!("again: {kind:?} {key:?} {object:?}"))
            })
            .collect()
    }

    /// Nothing is missing between the start and the first event, and between any two events.
    fn reliable_and_resumable(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut at = self.start;
        for (index, (.., object)) in self.events().enumerate() {
            let promise = if index == 0 { Promise::Resumable } else { Promise::Reliable };
            if index == 0 && object.revision <= self.start {
                let story = format!("{} was told after a start at {}", object.revision, self.start);
                violations.push(Violation::new(promise, story));
            }
            violations.extend(self.between(at, object.revision).map(|missing| {
                Violation::new(
                    promise,
                    format!("{missing:?} is missing between {at} and {}", object.revision),
                )
            }));
            at = at.max(object.revision);
        }
        violations
    }

    /// When a bookmark arrives, everything up to it has been reported, and nothing up to it follows.
    fn bookmarkable(&self) -> Vec<Violation> {
        let mut violations = Vec::new();
        let mut told = self.start;
        let mut bookmark = self.start;
        for item in self.live {
            match item {
                Told::Event { object, .. } => {
                    if object.revision <= bookmark && bookmark > self.start {
                        let story = format!("{} was told after a bookmark at {bookmark}", object.revision);
                        violations.push(Violation::new(Promise::Bookmarkable, story));
                    }
                    told = told.max(object.revision);
                }
                Told::Bookmark { revision, .. } => {
                    if *revision < bookmark {
                        let story = format!("a bookmark at {revision} after one at {bookmark}");
                        violations.push(Violation::new(Promise::Bookmarkable, story));
                    }
                    bookmark = bookmark.max(*revision);
                    violations.extend(self.between(told, bookmark + 1).map(|missing| {
                        Violation::new(
                            Promise::Bookmarkable,
                            format!("bookmark at {bookmark} before {missing:?}"),
                        )
                    }));
                    told = told.max(bookmark);
                }
                Told::Expired => {}
            }
        }
        violations
    }

    /// History ends at a failover: what was reported before it may be lost.
    fn crosses_no_jump(&self) -> Option<Violation> {
        let last = self.live.iter().filter_map(revision_of).max()?;
        let jump = self.log.jump_between(self.start, last)?;
        let story = format!("went on from {} to {last} over the failover at {jump}", self.start);
        Some(Violation::new(Promise::Resumable, story))
    }

    /// What should have been reported above `after` and below `before`.
    fn between(&self, after: u64, before: u64) -> impl Iterator<Item = &Expected> {
        let first = self.expected.partition_point(|expected| expected.object.revision <= after);
        self.expected[first..].iter().take_while(move |expected| expected.object.revision < before)
    }

    fn event(&self, kind: EventKind, key: &Key, object: &Version) -> Option<Violation> {
        let told = || format!("{kind:?} {key:?} {object:?}");
        let Some(change) = self.log.at(object.revision) else {
            return Some(Violation::new(
                Promise::Atomic,
                format!("nothing happened at the revision of {}", told()),
            ));
        };
        let Some(expected) = change.seen_through(self.filter) else {
            return Some(Violation::new(Promise::Filtered, format!("{} is not for this watch", told())));
        };
        let promise = if expected.key != *key {
            Promise::Atomic
        } else if expected.kind != kind {
            Promise::CreatedOrModified
        } else if expected.object != *object && kind == EventKind::Deleted {
            Promise::PreviousState
        } else if expected.object != *object {
            Promise::Atomic
        } else {
            return None;
        };
        Some(Violation::new(promise, format!("{} instead of {expected:?}", told())))
    }
}

fn expected(log: &Log, filter: &Filter, after: u64) -> Vec<Expected> {
    log.since(after).iter().filter_map(|change| change.seen_through(filter)).collect()
}

fn revision_of(told: &Told) -> Option<u64> {
    match told {
        Told::Event { object, .. } => Some(object.revision),
        Told::Bookmark { revision, .. } => Some(*revision),
        Told::Expired => None,
    }
}

fn start_of(stream: &Stream) -> u64 {
    match stream.start {
        Start::After(revision) => revision,
        Start::State => 0,
    }
}
