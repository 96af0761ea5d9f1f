//! Compares requests and lists with the log: no answered write is lost, no refused one was carried out, no read is
//! older than allowed, and each list is the state at its revision.

use std::collections::{HashMap, HashSet};

use super::history::{Action, Answer, Call, Freshness, Key, Listing, Promise, Time, Token, Violation};
use super::log::{Change, Log};

/// Each answered write is in the log as it was answered, and each change in the log has a cause that was not refused.
pub fn check_calls(log: &Log, calls: &[Call]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut causes: HashMap<&Token, &Call> = HashMap::new();
    for call in calls {
        if let Some(token) = call.action.token() {
            causes.insert(token, call);
        }
    }
    let mut written: HashMap<&Token, Vec<&Change>> = HashMap::new();
    for change in &log.changes {
        let Some(after) = change.after.as_ref().filter(|_| !change.is_touch()) else { continue };
        let all = written.entry(&after.token).or_default();
        all.push(change);
        if change.lost_at.is_some() {
            // The new primary refused it, and its client was told so.
            continue;
        }
        if all.iter().filter(|change| change.lost_at.is_none()).count() > 1 {
            violations.push(Violation::new(Promise::Durable, format!("done twice: {change:?}")));
        }
        let caused = causes.get(&after.token).is_some_and(|call| may_have_caused(call, change));
        if !caused {
            let cause = causes.get(&after.token);
            violations.push(Violation::new(Promise::Durable, format!("{change:?} comes from {cause:?}")));
        }
    }
    for call in calls {
        let Answer::Written { revision } = call.answer else { continue };
        let done = match &call.action {
            Action::Create { token }
            | Action::Update { token, .. }
            | Action::Patch { token, .. }
            | Action::Apply { token }
            | Action::Status { token, .. } => {
                let changes = written.get(token).map_or(&[][..], Vec::as_slice);
                changes.iter().any(|change| Some(change.revision) == revision)
            }
            Action::Delete { at: Some(at) } => log.changes.iter().any(|change| {
                change.after.is_none() && change.before.as_ref().is_some_and(|before| before == at)
            }),
            Action::Scale { .. } => revision
                .and_then(|revision| log.at(revision))
                .is_some_and(|change| change.is_touch() && change.key == call.key),
            // The condition depends on the state; the search for an order checks it.
            Action::Delete { at: None } | Action::Read | Action::Restore { .. } => true,
        };
        if !done {
            let instead = revision.and_then(|revision| log.at(revision));
            violations.push(Violation::new(Promise::Durable, format!("lost: {call:?}, instead {instead:?}")));
        }
    }
    violations.extend(check_deletions(log, calls));
    violations
}

fn may_have_caused(call: &Call, change: &Change) -> bool {
    let possible = matches!(call.answer, Answer::Written { .. } | Answer::Unknown) && call.key == change.key;
    possible
        && match &call.action {
            Action::Create { .. } => change.before.is_none(),
            Action::Apply { .. } => true,
            Action::Update { at: Some(at), .. }
            | Action::Patch { at: Some(at), .. }
            | Action::Status { at: Some(at), .. } => change.before.as_ref() == Some(at),
            Action::Update { at: None, .. }
            | Action::Patch { at: None, .. }
            | Action::Status { at: None, .. } => change.before.is_some(),
            Action::Scale { .. } | Action::Delete { .. } | Action::Read | Action::Restore { .. } => false,
        }
}

/// A change of an object that keeps its token must come from a scale that was not refused.
pub fn check_touches(log: &Log, calls: &[Call]) -> Vec<Violation> {
    let scales = || calls.iter().filter(|call| matches!(call.action, Action::Scale { .. }));
    let answered: HashSet<u64> = scales().filter_map(told).collect();
    let mut left: HashMap<&Key, usize> = HashMap::new();
    for call in scales().filter(|call| call.answer == Answer::Unknown) {
        *left.entry(&call.key).or_default() += 1;
    }
    let surviving = log.changes.iter().filter(|change| change.is_touch() && change.lost_at.is_none());
    let unexplained = surviving.filter(|change| !answered.contains(&change.revision)).filter(|change| {
        let left = left.entry(&change.key).or_default();
        let explained = *left > 0;
        *left = left.saturating_sub(1);
        !explained
    });
    unexplained
        .map(|change| Violation::new(Promise::Durable, format!("nobody asked for {change:?}")))
        .collect()
}

/// The writes of migrations, as requests without an answer: all touches that no answered scale has made.
pub fn rewrites(log: &Log, calls: &[Call]) -> Vec<Call> {
    let called: HashMap<&Token, Time> =
        calls.iter().filter_map(|call| Some((call.action.token()?, call.called))).collect();
    let scaled: HashSet<u64> =
        calls.iter().filter(|call| matches!(call.action, Action::Scale { .. })).filter_map(told).collect();
    let touches = log.changes.iter().filter(|change| change.is_touch() && !scaled.contains(&change.revision));
    let rewrite = |change: &Change| {
        // Not before the write of the content was requested.
        let called = change.before.as_ref().and_then(|before| called.get(&before.token));
        Call {
            key: change.key.clone(),
            action: Action::Scale { replicas: 0, at: None },
            answer: Answer::Unknown,
            called: called.copied().unwrap_or(0),
            returned: Time::MAX,
        }
    };
    touches.map(rewrite).collect()
}

/// There were not more deletions of an object than requested and not refused ones.
fn check_deletions(log: &Log, calls: &[Call]) -> Vec<Violation> {
    let mut asked: HashMap<_, usize> = HashMap::new();
    let mut answered: HashMap<_, usize> = HashMap::new();
    for call in calls.iter().filter(|call| matches!(call.action, Action::Delete { .. })) {
        match call.answer {
            Answer::Written { .. } => {
                *asked.entry(&call.key).or_default() += 1;
                *answered.entry(&call.key).or_default() += 1;
            }
            Answer::Unknown => *asked.entry(&call.key).or_default() += 1,
            _ => {}
        }
    }
    let (mut done, mut lost): (HashMap<_, usize>, HashMap<_, usize>) = Default::default();
    for change in log.changes.iter().filter(|change| change.after.is_none()) {
        let count = if change.lost_at.is_some() { &mut lost } else { &mut done };
        *count.entry(&change.key).or_default() += 1;
    }
    let keys: std::collections::BTreeSet<_> = asked.keys().chain(done.keys()).copied().collect();
    let count = |map: &HashMap<_, usize>, key| map.get(key).copied().unwrap_or(0);
    let wrong = keys.into_iter().filter(|key| {
        count(&done, *key) + count(&lost, *key) < count(&answered, *key)
            || count(&done, *key) > count(&asked, *key)
    });
    wrong.map(|key| Violation::new(Promise::Durable, format!("deletions of {key:?} do not add up"))).collect()
}

/// Whatever was answered before a request started has a smaller revision than the request's result.
pub fn check_time(calls: &[Call], listings: &[Listing]) -> Vec<Violation> {
    let mut told: Vec<(Time, u64)> =
        calls.iter().filter_map(|call| Some((call.returned, told(call)?))).collect();
    told.extend(listings.iter().map(|listing| (listing.returned, listing.revision)));
    told.sort_unstable();
    for index in 1..told.len() {
        told[index].1 = told[index].1.max(told[index - 1].1);
    }
    // The newest revision that any client knew at that time.
    let floor = |time: Time| {
        let index = told.partition_point(|(returned, _)| *returned < time);
        index.checked_sub(1).map_or(0, |index| told[index].1)
    };
    let mut violations = Vec::new();
    for call in calls {
        if let Answer::Written { revision: Some(revision) } = call.answer
            && revision <= floor(call.called)
        {
            let story = format!("{call:?} although {} had been told", floor(call.called));
            violations.push(Violation::new(Promise::Clock, story));
        }
    }
    for listing in listings {
        let fresh = match listing.freshness {
            Freshness::Latest => listing.revision >= floor(listing.called),
            Freshness::AtLeast(revision) => listing.revision >= revision,
            Freshness::Exactly(revision) => listing.revision == revision,
            Freshness::Any => true,
        };
        if !fresh {
            let story = format!(
                "{:?} gave {} and {} was known",
                listing.freshness,
                listing.revision,
                floor(listing.called)
            );
            violations.push(Violation::new(Promise::Snapshot, story));
        }
    }
    violations
}

fn told(call: &Call) -> Option<u64> {
    match &call.answer {
        Answer::Written { revision } => *revision,
        Answer::Found(version) => Some(version.revision),
        _ => None,
    }
}

/// Each list is the state at its revision, in key order, through its filter, wherever its pages came from.
pub fn check_listings(log: &Log, listings: &[Listing]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for listing in listings {
        let complain = |story: String| Violation::new(Promise::Snapshot, story);
        if listing.page_revisions.iter().any(|revision| *revision != listing.revision) {
            violations.push(complain(format!("pages of one list are at {:?}", listing.page_revisions)));
        }
        let state = log.state_at(listing.revision);
        let expected: Vec<_> =
            state.into_iter().filter(|(key, version)| listing.filter.holds(key, version)).collect();
        if listing.items != expected {
            let wrong = listing.items.iter().zip(&expected).find(|(told, expected)| told != expected);
            violations.push(complain(format!(
                "the list at {} ({:?}, {} pages) has {} items instead of {}; first: {wrong:?}",
                listing.revision,
                listing.freshness,
                listing.page_revisions.len(),
                listing.items.len(),
                expected.len(),
            )));
        }
    }
    violations
}
