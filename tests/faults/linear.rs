//! Checks whether the requests about one object behave as if made one at a time, each between its call and its answer.
//!
//! The search is that of Wing and Gong with Lowe's memory of configurations: choose a request before whose call no open
//! request was answered, apply it to the state, and continue; go back if nothing fits. Revisions only determine what is
//! tried first. A request without an answer may take effect at any time after its call, or never.

use std::collections::{BTreeMap, HashSet};

use super::history::{Action, Answer, Call, Key, Promise, Time, Token, Version, Violation};

/// The state of the object. After a write without an answer, its revision is unknown until it is read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Held {
    token: Token,
    revision: Option<u64>,
}

type State = Option<Held>;

/// Checks every object separately.
pub fn check<'a>(calls: impl IntoIterator<Item = &'a Call>) -> Vec<Violation> {
    let mut by_key: BTreeMap<&Key, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_key.entry(&call.key).or_default().push(call);
    }
    by_key.into_iter().filter_map(|(key, calls)| check_object(key, calls)).collect()
}

fn check_object(key: &Key, mut calls: Vec<&Call>) -> Option<Violation> {
    calls.retain(|call| !(matches!(call.action, Action::Read) && call.answer == Answer::Unknown));
    // They say nothing of the state, and change nothing. Whether that is so, the log tells.
    calls.retain(|call| call.answer != Answer::Refused);
    calls.sort_by_key(|call| call.called);
    let mut search =
        Search { done: vec![false; calls.len()], seen: HashSet::new(), best: 0, stuck: None, calls };
    if search.run() {
        return None;
    }
    let (state, open) = search.stuck.unwrap_or_default();
    let story = format!("{key:?}: in the state {state:?} none of these can have been next: {open:#?}");
    Some(Violation::new(Promise::Linearizable, story))
}

struct Search<'a> {
    calls: Vec<&'a Call>,
    done: Vec<bool>,
    /// Configurations from which the end cannot be reached.
    seen: HashSet<(Vec<u64>, State)>,
    /// The length of the longest attempt, for the report.
    best: usize,
    stuck: Option<(State, Vec<Call>)>,
}

/// A choice: the writes that may be next, and the state before.
struct Choice {
    state: State,
    next: std::vec::IntoIter<usize>,
    /// The requests done since the previous choice.
    trail: Vec<usize>,
}

impl Search<'_> {
    fn run(&mut self) -> bool {
        let mut state: State = None;
        let mut choices: Vec<Choice> = Vec::new();
        let mut trail = Vec::new();
        loop {
            self.take_reads(&mut state, &mut trail);
            if self.only_unknown_left() {
                return true;
            }
            if self.seen.insert((self.bits(), state.clone())) {
                let candidates = self.writes(&state);
                self.note(&state);
                choices.push(Choice {
                    state,
                    next: candidates.into_iter(),
                    trail: std::mem::take(&mut trail),
                });
            } else {
                self.undo(&mut trail);
            }
            // Goes back to a choice with an untried write.
            loop {
                let Some(choice) = choices.last_mut() else { return false };
                if let Some(index) = choice.next.next() {
                    state = step(&choice.state, self.calls[index]).expect("it was a candidate");
                    self.done[index] = true;
                    trail = vec![index];
                    break;
                }
                let mut choice = choices.pop().expect("there is one");
                self.undo(&mut choice.trail);
            }
        }
    }

    /// A request that changes nothing and fits now can be done now without loss.
    fn take_reads(&mut self, state: &mut State, trail: &mut Vec<usize>) {
        loop {
            let fits = |index: &usize| {
                let call = self.calls[*index];
                !writes(call) && step(state, call).is_some()
            };
            let Some(index) = self.open().into_iter().find(fits) else { return };
            // A read may reveal the revision of the object.
            *state = step(state, self.calls[index]).expect("it fits");
            self.done[index] = true;
            trail.push(index);
        }
    }

    /// The writes that may be next, the likeliest first.
    fn writes(&self, state: &State) -> Vec<usize> {
        let mut writes: Vec<usize> = self.open();
        writes.retain(|index| writes_and_fits(state, self.calls[*index]));
        writes.sort_by_key(|index| {
            let call = self.calls[*index];
            match call.answer {
                Answer::Written { revision: Some(revision) } => (0, revision),
                Answer::Written { revision: None } => (1, call.returned),
                _ => (2, call.called),
            }
        });
        writes
    }

    /// Requests that are not done yet, and were called before any of these was answered.
    fn open(&self) -> Vec<usize> {
        let mut first_answer = Time::MAX;
        let mut open = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            if call.called > first_answer {
                break;
            }
            if !self.done[index] {
                open.push(index);
                first_answer = first_answer.min(returned(call));
            }
        }
        open.retain(|index| self.calls[*index].called <= first_answer);
        open
    }

    fn only_unknown_left(&self) -> bool {
        let mut calls = self.calls.iter().zip(&self.done);
        calls.all(|(call, done)| *done || call.answer == Answer::Unknown)
    }

    fn undo(&mut self, trail: &mut Vec<usize>) {
        for index in trail.drain(..) {
            self.done[index] = false;
        }
    }

    fn note(&mut self, state: &State) {
        let depth = self.done.iter().filter(|done| **done).count();
        if depth >= self.best {
            self.best = depth;
            let open = self.open().into_iter().map(|index| self.calls[index].clone()).collect();
            self.stuck = Some((state.clone(), open));
        }
    }

    fn bits(&self) -> Vec<u64> {
        let word =
            |bits: &[bool]| bits.iter().enumerate().fold(0, |word, (i, bit)| word | u64::from(*bit) << i);
        self.done.chunks(64).map(word).collect()
    }
}

fn returned(call: &Call) -> Time {
    if call.answer == Answer::Unknown { Time::MAX } else { call.returned }
}

/// Whether a request changes the object.
fn writes(call: &Call) -> bool {
    let open = call.answer == Answer::Unknown && !matches!(call.action, Action::Read);
    open || matches!(call.answer, Answer::Written { .. })
}

fn writes_and_fits(state: &State, call: &Call) -> bool {
    writes(call) && step(state, call).is_some()
}

/// The state after a request with this answer; `None` if the answer is impossible in this state. A request of unknown
/// outcome takes effect here; the caller considers that it never does.
fn step(state: &State, call: &Call) -> Option<State> {
    let unknown = Answer::Written { revision: None };
    let answer = if call.answer == Answer::Unknown { &unknown } else { &call.answer };
    match (&call.action, answer) {
        (Action::Create { token }, Answer::Written { revision }) => match state {
            None => Some(Some(Held { token: token.clone(), revision: *revision })),
            Some(_) => None,
        },
        (Action::Create { .. }, Answer::Exists) => state.is_some().then(|| state.clone()),
        (Action::Apply { token }, Answer::Written { revision }) => {
            let held = state.as_ref().and_then(|held| held.revision);
            let newer = revision.is_none_or(|new| held.is_none_or(|old| new > old));
            newer.then(|| Some(Held { token: token.clone(), revision: *revision }))
        }
        (Action::Scale { at, .. }, Answer::Written { revision }) => {
            let held = precondition(state, at)?;
            let newer = revision.is_none_or(|new| held.revision.is_none_or(|old| new > old));
            newer.then_some(Some(Held { revision: *revision, ..held }))
        }
        (
            Action::Update { token, at } | Action::Patch { token, at, .. } | Action::Status { token, at },
            Answer::Written { revision },
        ) => {
            let held = precondition(state, at)?;
            let newer = revision.is_none_or(|new| held.revision.is_none_or(|old| new > old));
            newer.then(|| Some(Held { token: token.clone(), revision: *revision }))
        }
        (Action::Restore { to }, Answer::Written { .. }) => {
            let held = |to: &Version| Held { token: to.token.clone(), revision: Some(to.revision) };
            Some(to.as_ref().map(held))
        }
        (Action::Delete { at }, Answer::Written { .. }) => precondition(state, at).map(|_| None),
        (
            Action::Update { at: Some(at), .. }
            | Action::Patch { at: Some(at), .. }
            | Action::Status { at: Some(at), .. }
            | Action::Scale { at: Some(at), .. }
            | Action::Delete { at: Some(at) },
            Answer::Conflict,
        ) => {
            let other = |held: &&Held| held.token != at.token || held.revision != Some(at.revision);
            state.as_ref().filter(other).map(|_| state.clone())
        }
        (
            Action::Update { .. }
            | Action::Patch { .. }
            | Action::Status { .. }
            | Action::Scale { .. }
            | Action::Delete { .. }
            | Action::Read,
            Answer::Missing,
        ) => state.is_none().then_some(None),
        (Action::Read, Answer::Found(version)) => matching(state, version).map(Some),
        _ => None,
    }
}

fn precondition(state: &State, at: &Option<Version>) -> Option<Held> {
    match at {
        Some(version) => matching(state, version),
        None => state.clone(),
    }
}

/// The state, if it can be this version; it then has the version's revision.
fn matching(state: &State, version: &Version) -> Option<Held> {
    let held = state.as_ref().filter(|held| held.token == version.token)?;
    let same = held.revision.is_none_or(|revision| revision == version.revision);
    same.then(|| Held { token: held.token.clone(), revision: Some(version.revision) })
}
