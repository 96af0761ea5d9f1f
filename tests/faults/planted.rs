//! Bugs planted in a good history: the checkers must find each of them, and nothing in the unchanged history.

use super::history::{
    Action, Answer, Call, EventKind, Filter, Freshness, History, Key, Listing, PatchForm, Promise, Start,
    Stream, Time, Token, Told, Version, Violation, WatchRun,
};
use rowplane::storage::SAFETY_GAP;

use super::log::{Failover, Log, Row};
use super::watches;

const UID: &str = "u";

fn key(name: &str) -> Key {
    ("a".to_owned(), name.to_owned())
}

fn token(number: usize, colour: &str) -> Token {
    Token::new(1, number, colour)
}

fn version(number: usize, colour: &str, revision: u64) -> Version {
    Version { uid: UID.to_owned(), revision, token: token(number, colour) }
}

fn call(name: &str, action: Action, answer: Answer, called: Time) -> Call {
    Call { key: key(name), action, answer, called, returned: called + 5 }
}

fn written(revision: u64) -> Answer {
    Answer::Written { revision: Some(revision) }
}

fn told(kind: EventKind, name: &str, object: Version) -> Told {
    Told::Event { kind, key: key(name), object }
}

fn rows() -> Vec<Row> {
    let row = |revision, name: &str, deleted, number, colour: &str| Row {
        revision,
        key: Some(key(name)),
        deleted,
        uid: UID.to_owned(),
        value: format!("…{}…", token(number, colour).as_str()).into_bytes(),
    };
    vec![
        row(11, "x", false, 1, "red"),
        row(12, "x", false, 2, "red"),
        row(13, "y", false, 3, "red"),
        row(14, "x", false, 4, "blue"),
        row(15, "x", true, 0, ""),
        Row { revision: 16, key: None, deleted: false, uid: String::new(), value: Vec::new() },
    ]
}

/// `x` is created at 11, changed at 12, changed to blue at 14, and deleted at 15; `y` is created at 13.
fn good() -> History {
    let log = Log::new(10, rows(), Vec::new());
    let calls = vec![
        call("x", Action::Create { token: token(1, "red") }, written(11), 10),
        call("x", Action::Read, Answer::Found(version(1, "red", 11)), 20),
        call(
            "x",
            Action::Update { token: token(2, "red"), at: Some(version(1, "red", 11)) },
            written(12),
            30,
        ),
        call("y", Action::Create { token: token(3, "red") }, written(13), 40),
        // Not answered, but carried out.
        call("x", Action::Update { token: token(4, "blue"), at: None }, Answer::Unknown, 50),
        call("x", Action::Read, Answer::Found(version(4, "blue", 14)), 60),
        call(
            "x",
            Action::Delete { at: Some(version(4, "blue", 14)) },
            Answer::Written { revision: None },
            70,
        ),
        call("x", Action::Read, Answer::Missing, 80),
    ];
    let listings = vec![Listing {
        freshness: Freshness::Latest,
        filter: Filter::default(),
        called: 65,
        returned: 66,
        revision: 14,
        page_revisions: vec![14, 14],
        items: vec![(key("x"), version(4, "blue", 14)), (key("y"), version(3, "red", 13))],
    }];
    let all = WatchRun {
        filter: Filter::default(),
        streams: vec![
            Stream {
                start: Start::After(10),
                told: vec![
                    told(EventKind::Added, "x", version(1, "red", 11)),
                    told(EventKind::Modified, "x", version(2, "red", 12)),
                    told(EventKind::Added, "y", version(3, "red", 13)),
                ],
            },
            Stream {
                start: Start::After(13),
                told: vec![
                    told(EventKind::Modified, "x", version(4, "blue", 14)),
                    Told::Bookmark { revision: 14, end_of_state: false },
                    told(EventKind::Deleted, "x", version(4, "blue", 15)),
                ],
            },
        ],
    };
    let red = WatchRun {
        filter: Filter {
            namespace: Some("a".to_owned()),
            colour: Some("red".to_owned()),
            ..Filter::default()
        },
        streams: vec![Stream {
            start: Start::State,
            told: vec![
                told(EventKind::Added, "x", version(2, "red", 12)),
                Told::Bookmark { revision: 12, end_of_state: true },
                told(EventKind::Added, "y", version(3, "red", 13)),
                told(EventKind::Deleted, "x", version(2, "red", 14)),
            ],
        }],
    };
    History { log, calls, listings, watches: vec![all, red], migrated: false }
}

/// Checks the good history after a bug was planted in it.
#[track_caller]
fn finds(promise: Promise, plant: impl FnOnce(&mut History)) {
    assert_eq!(good().judge(), []);
    let mut history = good();
    plant(&mut history);
    let violations = history.judge();
    assert!(violations.iter().any(|violation| violation.promise == promise), "{promise:?} in {violations:?}");
}

fn events(history: &mut History, watch: usize, stream: usize) -> &mut Vec<Told> {
    &mut history.watches[watch].streams[stream].told
}

fn object(told: &mut Told) -> &mut Version {
    match told {
        Told::Event { object, .. } => object,
        other => panic!("{other:?} has no object"),
    }
}

#[test]
fn a_skipped_event() {
    finds(Promise::Reliable, |history| drop(events(history, 0, 0).remove(1)));
}

#[test]
fn an_event_skipped_at_the_end() {
    let history = good();
    let complete = |run: &WatchRun| watches::check_complete(&history.log, run, 15);
    assert_eq!(complete(&history.watches[0]), None);
    let mut run = history.watches[0].clone();
    run.streams[1].told.pop();
    assert_eq!(complete(&run).map(|violation| violation.promise), Some(Promise::Reliable));
}

#[test]
fn an_event_skipped_by_a_resumed_watch() {
    finds(Promise::Resumable, |history| drop(events(history, 0, 1).drain(..2)));
}

#[test]
fn an_event_repeated_by_a_resumed_watch() {
    finds(Promise::Resumable, |history| {
        let last = events(history, 0, 0)[2].clone();
        events(history, 0, 1).insert(0, last);
    });
}

#[test]
fn a_doubled_event() {
    finds(Promise::Unique, |history| {
        let twice = events(history, 0, 0)[1].clone();
        events(history, 0, 0).insert(2, twice);
    });
}

#[test]
fn a_reordered_event() {
    finds(Promise::Ordered, |history| events(history, 0, 0).swap(0, 1));
}

#[test]
fn an_event_of_another_object() {
    finds(Promise::Atomic, |history| {
        events(history, 0, 0)[1] = told(EventKind::Modified, "y", version(2, "red", 12))
    });
}

#[test]
fn an_event_with_half_of_another_change() {
    finds(Promise::Atomic, |history| object(&mut events(history, 0, 0)[1]).token = token(1, "red"));
}

#[test]
fn a_bookmark_ahead_of_its_events() {
    finds(Promise::Bookmarkable, |history| {
        events(history, 0, 1)[1] = Told::Bookmark { revision: 15, end_of_state: false };
    });
}

#[test]
fn a_bookmark_that_goes_back() {
    finds(Promise::Bookmarkable, |history| {
        events(history, 0, 1).push(Told::Bookmark { revision: 13, end_of_state: false });
    });
}

#[test]
fn an_event_that_the_filter_keeps_out() {
    finds(Promise::Filtered, |history| {
        events(history, 1, 0).push(told(EventKind::Deleted, "x", version(4, "blue", 15)));
    });
}

#[test]
fn modified_instead_of_added() {
    finds(Promise::CreatedOrModified, |history| {
        events(history, 0, 0)[2] = told(EventKind::Modified, "y", version(3, "red", 13));
    });
}

#[test]
fn a_wrong_previous_state() {
    finds(Promise::PreviousState, |history| object(&mut events(history, 0, 1)[2]).token = token(2, "red"));
}

#[test]
fn an_object_missing_from_the_first_state() {
    finds(Promise::Reliable, |history| drop(events(history, 1, 0).remove(0)));
}

#[test]
fn a_stale_read() {
    finds(Promise::Linearizable, |history| history.calls[5].answer = Answer::Found(version(1, "red", 11)));
}

#[test]
fn a_read_of_what_was_deleted() {
    finds(Promise::Linearizable, |history| history.calls[7].answer = Answer::Found(version(4, "blue", 14)));
}

#[test]
fn a_read_of_the_right_content_at_the_wrong_revision() {
    finds(Promise::Linearizable, |history| history.calls[1].answer = Answer::Found(version(1, "red", 12)));
}

#[test]
fn two_updates_of_one_version() {
    finds(Promise::Linearizable, |history| {
        let at = Some(version(1, "red", 11));
        history.calls.push(call("x", Action::Update { token: token(9, "red"), at }, written(14), 45));
    });
}

#[test]
fn a_refused_update_that_had_no_reason_to_be() {
    finds(Promise::Linearizable, |history| {
        let at = Some(version(2, "red", 12));
        history
            .calls
            .insert(3, call("x", Action::Update { token: token(9, "red"), at }, Answer::Conflict, 38));
    });
}

#[test]
fn a_lost_write() {
    finds(Promise::Durable, |history| {
        history.calls.push(call("z", Action::Create { token: token(9, "red") }, written(16), 90));
    });
}

#[test]
fn a_refused_write_that_was_done() {
    finds(Promise::Durable, |history| history.calls[3].answer = Answer::Exists);
}

#[test]
fn an_error_that_said_that_nothing_was_written() {
    finds(Promise::Durable, |history| history.calls[2].answer = Answer::Refused);
    finds(Promise::Durable, |history| history.calls[4].answer = Answer::Refused);
    finds(Promise::Durable, |history| history.calls[6].answer = Answer::Refused);
}

/// A patch that tests a version is a conditional write, and one that does not is none.
#[test]
fn patches_of_another_version() {
    let patched = |at| Action::Patch { token: token(2, "red"), at, form: PatchForm::Json };
    let mut history = good();
    history.calls[2].action = patched(Some(version(1, "red", 11)));
    assert_eq!(history.judge(), []);
    history.calls[2].action = patched(None);
    assert_eq!(history.judge(), []);
    finds(Promise::Durable, |history| history.calls[2].action = patched(Some(version(1, "red", 10))));
    finds(Promise::Linearizable, |history| {
        history.calls[2].action = patched(Some(version(1, "red", 11)));
        history.calls[2].answer = Answer::Conflict;
    });
}

#[test]
fn a_write_that_was_done_to_another_version() {
    finds(Promise::Durable, |history| {
        history.calls[4].action = Action::Update { token: token(4, "blue"), at: Some(version(1, "red", 11)) };
    });
}

#[test]
fn a_lost_deletion() {
    finds(Promise::Durable, |history| {
        let at = Some(version(3, "red", 13));
        history.calls.push(call("y", Action::Delete { at }, Answer::Written { revision: None }, 90));
    });
}

#[test]
fn a_revision_that_goes_back() {
    finds(Promise::Clock, |history| (history.calls[3].called, history.calls[3].returned) = (90, 95));
}

#[test]
fn a_gap_in_the_revisions() {
    let rows = [11, 13].map(|revision| Row {
        revision,
        key: None,
        deleted: false,
        uid: String::new(),
        value: Vec::new(),
    });
    let log = Log::new(10, rows.to_vec(), Vec::new());
    assert_eq!(log.violations.first().map(|violation| violation.promise), Some(Promise::Clock));
}

/// Like [`good`], with a failover at 13 that lost 14: `x` is red again, is made blue a second time, and deleted.
fn failed_over() -> History {
    let mut history = good();
    let rows: Vec<Row> = rows();
    let jump = 13 + SAFETY_GAP;
    let later = |row: &Row| Row { revision: row.revision + SAFETY_GAP, ..row.clone() };
    let again = rows[3..].iter().map(later);
    let again: Vec<Row> = again.map(|row| Row { value: swap_number(&row.value, 4, 5), ..row }).collect();
    let survived = 13;
    let failover = Failover { survived, lost: vec![rows[3].clone()], began: 67, ended: 68 };
    history.log = Log::new(10, rows[..3].iter().cloned().chain(again).collect(), vec![failover]);
    // Everything up to here happened; the client knows that the rest was lost.
    let blue = version(5, "blue", 14 + SAFETY_GAP);
    history.calls.truncate(6);
    history.calls.extend([
        call("x", Action::Read, Answer::Found(version(2, "red", 12)), 70),
        call(
            "x",
            Action::Update { token: token(5, "blue"), at: Some(version(2, "red", 12)) },
            written(14 + SAFETY_GAP),
            80,
        ),
        call("x", Action::Delete { at: Some(blue.clone()) }, Answer::Written { revision: None }, 90),
    ]);
    let told_before = events(&mut history, 0, 1);
    told_before.truncate(1);
    told_before.push(Told::Expired);
    history.watches[0].streams.push(Stream {
        start: Start::State,
        told: vec![
            told(EventKind::Added, "x", version(2, "red", 12)),
            told(EventKind::Added, "y", version(3, "red", 13)),
            Told::Bookmark { revision: jump, end_of_state: true },
            told(EventKind::Modified, "x", blue.clone()),
            told(EventKind::Deleted, "x", Version { revision: 15 + SAFETY_GAP, ..blue }),
        ],
    });
    history.watches.truncate(1);
    history
}

fn swap_number(value: &[u8], from: usize, to: usize) -> Vec<u8> {
    String::from_utf8_lossy(value).replace(&format!("T1.{from};"), &format!("T1.{to};")).into_bytes()
}

#[test]
fn what_a_failover_takes_back_is_no_bug_and_everything_else_is() {
    assert_eq!(failed_over().judge(), []);
    let finds = |promise: Promise, plant: &dyn Fn(&mut History)| {
        let mut history = failed_over();
        plant(&mut history);
        let violations = history.judge();
        assert!(violations.iter().any(|found| found.promise == promise), "{promise:?} in {violations:?}");
    };
    // A read of lost content after it was lost.
    finds(Promise::Linearizable, &|history| {
        history.calls[6].answer = Answer::Found(version(4, "blue", 14));
    });
    // A watch that was not told to start over.
    finds(Promise::Resumable, &|history| {
        let told = history.watches[0].streams.remove(2).told;
        let live = told[3..].to_vec();
        let old = events(history, 0, 1);
        old.pop();
        old.extend(live);
    });
    // A list after the failover that contains lost content.
    finds(Promise::Snapshot, &|history| {
        let listing = &mut history.listings[0];
        (listing.called, listing.returned) = (75, 76);
        (listing.revision, listing.page_revisions) = (13 + SAFETY_GAP, vec![13 + SAFETY_GAP]);
    });
    // Revisions that are used a second time.
    let rows = rows();
    let failover = Failover { survived: 13, lost: vec![rows[3].clone()], began: 67, ended: 68 };
    let log = Log::new(10, rows, vec![failover]);
    assert!(log.violations.iter().any(|found| found.promise == Promise::Clock), "{:?}", log.violations);
}

/// The server that moves the clock may have seen revisions that the new primary does not have, but no later ones.
#[test]
fn a_clock_that_jumps_too_little_or_too_far() {
    for (jump, finds) in [(12, true), (13, false), (14, false), (15, true)] {
        let rows: Vec<Row> = rows();
        let next = Row { revision: jump + SAFETY_GAP + 1, ..rows[3].clone() };
        let failover = Failover { survived: 13, lost: vec![rows[3].clone()], began: 67, ended: 68 };
        let log = Log::new(10, rows[..3].iter().cloned().chain([next]).collect(), vec![failover]);
        let found = log.violations.iter().any(|found| found.promise == Promise::Clock);
        assert_eq!(found, finds, "{jump}: {:?}", log.violations);
    }
}

#[test]
fn a_change_that_nobody_asked_for() {
    let mut rows = rows();
    rows.truncate(1);
    rows.push(Row { revision: 12, ..rows[0].clone() });
    let log = Log::new(10, rows, Vec::new());
    let scale = |answer| call("x", Action::Scale { replicas: 2, at: None }, answer, 20);
    assert_eq!(super::requests::check_touches(&log, &[scale(written(12))]), []);
    assert_eq!(super::requests::check_touches(&log, &[scale(Answer::Unknown)]), []);
    for calls in [vec![], vec![scale(Answer::Missing)]] {
        assert_eq!(super::requests::check_touches(&log, &calls).len(), 1);
    }
}

#[test]
fn a_stale_list() {
    finds(Promise::Snapshot, |history| {
        history.listings[0].revision = 12;
        history.listings[0].page_revisions = vec![12];
        history.listings[0].items = vec![(key("x"), version(2, "red", 12))];
    });
}

#[test]
fn a_list_with_what_its_field_selector_keeps_out() {
    finds(Promise::Snapshot, |history| history.listings[0].filter.not_named = Some("y".to_owned()));
}

#[test]
fn a_list_that_is_too_short() {
    finds(Promise::Snapshot, |history| drop(history.listings[0].items.pop()));
}

#[test]
fn pages_of_two_states() {
    finds(Promise::Snapshot, |history| history.listings[0].page_revisions[1] = 15);
}

/// No order that respects precedence is overlooked, and a write without an answer may take effect late or never.
#[test]
fn unknown_writes_may_come_late_or_never() {
    let create =
        |answer, called| call("x", Action::Create { token: token(called as usize, "red") }, answer, called);
    let found = |number, revision, called| {
        call("x", Action::Read, Answer::Found(version(number, "red", revision)), called)
    };
    let delete = |answer, called| call("x", Action::Delete { at: None }, answer, called);
    let deleted = Answer::Written { revision: None };
    let linear = |calls: &[Call]| super::linear::check(calls) == Vec::<Violation>::new();

    assert!(linear(&[create(Answer::Unknown, 1), call("x", Action::Read, Answer::Missing, 10)]));
    // The first create takes effect long after its client has given up.
    assert!(linear(&[
        create(Answer::Unknown, 1),
        create(written(5), 10),
        delete(deleted.clone(), 20),
        found(1, 7, 30),
    ]));
    // It cannot take effect twice.
    assert!(!linear(&[
        create(Answer::Unknown, 1),
        found(1, 4, 10),
        delete(deleted.clone(), 20),
        found(1, 7, 30),
    ]));
    // Two deletions of unknown outcome explain one absence each.
    assert!(linear(&[
        create(written(2), 1),
        delete(Answer::Unknown, 10),
        create(written(4), 20),
        delete(Answer::Unknown, 22),
        create(written(6), 30),
    ]));
    assert!(!linear(&[
        create(written(2), 1),
        delete(Answer::Unknown, 10),
        create(written(4), 20),
        create(written(6), 30)
    ]));
}
