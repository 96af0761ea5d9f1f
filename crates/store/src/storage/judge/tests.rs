//! Verdicts on small batches.

use std::sync::LazyLock;

use super::*;
use crate::storage::{ResourceId, Unit};

fn found(live: &[Option<Revision>]) -> Found<'_> {
    static NONE: LazyLock<HashMap<Revision, Bytes>> = LazyLock::new(HashMap::new);
    Found { live, counted: &NONE, registered: true, compacted: Revision(5), changed: &[], lag: 0 }
}

fn mutation(name: &str, expect: Expect, put: bool) -> Mutation {
    let change = if put {
        Change::Put { uid: "u".into(), stored_version: "v1".into(), value: Bytes::from_static(b"{}").into() }
    } else {
        Change::Delete
    };
    Mutation::new(Key::new(ResourceId(1), "", name), expect, change)
}

fn apart(batch: &[Mutation]) -> Units {
    batch.to_vec().into()
}

#[test]
fn a_shared_requirement_is_judged_as_an_own_one() {
    let row = |n| Key::new(ResourceId(2), "", n);
    let needs = |name: &str, expect| {
        let shares = Some(std::sync::Arc::new(Requirement { key: row("r"), expect }));
        Mutation { shares, ..mutation(name, Expect::Absent, true) }
    };
    let raise = Mutation { key: row("r"), ..mutation("r", Expect::At(Revision(7)), true) };
    let old = Expect::At(Revision(7));
    let batch = [needs("a", old), needs("b", Expect::Absent), raise, needs("c", old), needs("a", old)];
    assert_eq!(required_keys(&batch), [&row("r")]);
    let seven = Some(Revision(7));
    let live = [None, None, seven, None, None, seven];
    let verdict = judge(&apart(&batch), Revision(9), found(&live), None);
    let unmet = |found| Outcome::Unmet { requirement: 0, found: Some(Revision(found)) };
    let committed = |revision| Outcome::Committed(Revision(revision));
    let conflict = Outcome::Conflict { found: Some(Revision(10)) };
    assert_eq!(verdict.outcomes, [committed(10), unmet(7), committed(11), unmet(11), conflict]);
}

#[test]
fn what_was_decided_by_history_that_is_given_up_is_outdated() {
    let decided = |name: &str, at: u64| Mutation {
        decided_at: Some(Revision(at)),
        ..mutation(name, Expect::Absent, true)
    };
    let pair = Unit::of(vec![decided("b", 9)], decided("c", 4));
    let batch = [decided("a", 4).into(), decided("a", 5).into(), pair, decided("b", 9).into()];
    let verdict = judge(&batch.into_iter().collect(), Revision(9), found(&[None; 5]), None);
    let committed = |revision| Outcome::Committed(Revision(revision));
    let wanted = [Outcome::Outdated, committed(10), Outcome::Apart, Outcome::Outdated, committed(11)];
    assert_eq!(verdict.outcomes, wanted);
}

#[test]
fn losers_take_no_revision_and_fail_alone() {
    let at = |n| Expect::At(Revision(n));
    let batch = [
        mutation("a", Expect::Absent, true),
        mutation("b", at(3), true),
        mutation("b", at(4), true),
        mutation("c", at(5), false),
        mutation("d", Expect::Absent, false),
    ];
    let live = [None, Some(Revision(4)), Some(Revision(4)), Some(Revision(5)), None];
    let verdict = judge(&apart(&batch), Revision(10), found(&live), None);
    assert_eq!(
        verdict.outcomes,
        [
            Outcome::Committed(Revision(11)),
            Outcome::Conflict { found: Some(Revision(4)) },
            Outcome::Committed(Revision(12)),
            Outcome::Committed(Revision(13)),
            Outcome::Conflict { found: None },
        ]
    );
    let kinds: Vec<_> = verdict.writes.iter().map(|w| (w.index, w.kind, w.previous)).collect();
    assert_eq!(
        kinds,
        [
            (0, ChangeKind::Added, None),
            (2, ChangeKind::Modified, Some(Revision(4))),
            (3, ChangeKind::Deleted, Some(Revision(5))),
        ]
    );
}

#[test]
fn one_key_is_judged_against_what_the_batch_made_of_it() {
    let batch = [
        mutation("a", Expect::At(Revision(4)), false),
        mutation("a", Expect::Absent, true),
        mutation("a", Expect::At(Revision(4)), true),
        mutation("a", Expect::At(Revision(12)), true),
    ];
    let verdict = judge(&apart(&batch), Revision(10), found(&[Some(Revision(4)); 4]), None);
    assert_eq!(
        verdict.outcomes,
        [
            Outcome::Committed(Revision(11)),
            Outcome::Committed(Revision(12)),
            Outcome::Conflict { found: Some(Revision(12)) },
            Outcome::Committed(Revision(13)),
        ]
    );
}

fn require(name: &str, expect: Expect) -> Requirement {
    Requirement { key: Key::new(ResourceId(2), "", name), expect }
}

#[test]
fn a_requirement_fails_the_mutation_alone_and_each_key_is_read_once() {
    let at = |n| Expect::At(Revision(n));
    let create = |name| mutation(name, Expect::Absent, true);
    let batch = [
        create("a").requiring([require("ns", at(3))]),
        create("b").requiring([require("ns", at(2))]),
        create("c").requiring([require("ns", at(3)), require("gone", Expect::Absent)]),
        create("d").requiring([require("ns", at(3)), require("gone", at(1))]),
        create("e"),
        mutation("f", at(9), true).requiring([require("ns", at(2))]),
    ];
    let keys: Vec<&str> = required_keys(&batch).into_iter().map(|key| &*key.name).collect();
    assert_eq!(keys, ["ns", "gone"]);
    let live = [None, None, None, None, None, None, Some(Revision(3)), None];
    let verdict = judge(&apart(&batch), Revision(10), found(&live), None);
    assert_eq!(
        verdict.outcomes,
        [
            Outcome::Committed(Revision(11)),
            Outcome::Unmet { requirement: 0, found: Some(Revision(3)) },
            Outcome::Committed(Revision(12)),
            Outcome::Unmet { requirement: 1, found: None },
            Outcome::Committed(Revision(13)),
            // A conflict on the mutation's own row is reported before unmet requirements: the caller has lost the
            // row anyway.
            Outcome::Conflict { found: None },
        ]
    );
    assert_eq!(verdict.writes.iter().map(|write| write.index).collect::<Vec<_>>(), [0, 2, 4]);
}

#[test]
fn what_an_earlier_mutation_made_of_a_required_row_counts() {
    let at = |n| Expect::At(Revision(n));
    let namespace = |expect, put| Mutation { key: require("ns", expect).key, ..mutation("ns", expect, put) };
    let create = |name, version| mutation(name, Expect::Absent, true).requiring([require("ns", at(version))]);
    let batch = [
        create("a", 3),
        namespace(at(3), true),
        create("b", 3),
        create("c", 12),
        namespace(at(12), false),
        create("d", 12),
        namespace(Expect::Absent, true),
        create("e", 15),
    ];
    let mut live = vec![None; batch.len()];
    (live[1], live[4], live[6]) = (Some(Revision(3)), Some(Revision(3)), Some(Revision(3)));
    live.push(Some(Revision(3)));
    assert_eq!(
        judge(&apart(&batch), Revision(10), found(&live), None).outcomes,
        [
            Outcome::Committed(Revision(11)),
            Outcome::Committed(Revision(12)),
            Outcome::Unmet { requirement: 0, found: Some(Revision(12)) },
            Outcome::Committed(Revision(13)),
            Outcome::Committed(Revision(14)),
            Outcome::Unmet { requirement: 0, found: None },
            Outcome::Committed(Revision(15)),
            Outcome::Committed(Revision(16)),
        ]
    );
}

#[test]
fn what_is_joined_passes_together_or_not_at_all() {
    let at = |n| Expect::At(Revision(n));
    let create = |name| mutation(name, Expect::Absent, true);
    let batch: Units = [
        Unit::of(vec![create("a"), create("b")], create("c").requiring([require("ns", at(3))])),
        // The second of these finds what the first unit has taken, and takes nothing with it.
        Unit::of(vec![create("d"), create("a")], create("e")),
        Unit::of(vec![create("d")], create("e").requiring([require("ns", at(2))])),
        create("d").into(),
        Unit::of(vec![mutation("a", at(11), false)], create("e")),
    ]
    .into_iter()
    .collect();
    let mut live = vec![None; batch.len()];
    live.push(Some(Revision(3)));
    let verdict = judge(&batch, Revision(10), found(&live), None);
    let committed = |n| Outcome::Committed(Revision(n));
    assert_eq!(
        verdict.outcomes,
        [
            committed(11),
            committed(12),
            committed(13),
            Outcome::Apart,
            Outcome::Conflict { found: Some(Revision(11)) },
            Outcome::Apart,
            Outcome::Apart,
            Outcome::Unmet { requirement: 0, found: Some(Revision(3)) },
            committed(14),
            committed(15),
            committed(16),
        ]
    );
    assert_eq!(verdict.writes.iter().map(|write| write.index).collect::<Vec<_>>(), [0, 1, 2, 8, 9, 10]);
}

#[test]
fn without_its_registration_a_server_writes_only_what_is_exempt() {
    let mut lease = mutation("a", Expect::Absent, true);
    lease.key.resource = ResourceId(2);
    let batch = [mutation("a", Expect::Absent, true), lease];
    let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: vec![ResourceId(2)] };
    let verdict = judge(&apart(&batch), Revision(10), found(&[None; 2]), Some(&fence));
    assert_eq!(verdict.outcomes, [Outcome::Fenced, Outcome::Committed(Revision(11))]);
    assert_eq!(verdict.writes.len(), 1);
}

#[test]
fn what_changes_the_registry_passes_as_a_whole() {
    let change = RegistryChange::Remove(vec!["other".into()]);
    let fence = Fence { server: "s".into(), incarnation: "i".into(), exempt: Vec::new() };
    let terms = Terms { fence: Some(&fence), registry: Some(&change), ..Terms::default() };
    let batch = [mutation("a", Expect::Absent, true), mutation("b", Expect::Absent, true)];
    let judged = |live, registered| {
        judge_under(&apart(&batch), Revision(10), Found { registered, ..found(live) }, terms)
    };

    let (verdict, registry) = judged(&[None; 2], true).expect("it stands");
    assert_eq!((verdict.writes.len(), registry), (2, Some(&change)));
    let (verdict, registry) = judged(&[None, Some(Revision(3))], true).expect("it stands");
    assert_eq!((verdict.writes.len(), registry), (0, None));
    assert_eq!(verdict.outcomes[1], Outcome::Conflict { found: Some(Revision(3)) });
    assert!(matches!(judged(&[None; 2], false), Err(Error::Fenced)));

    let [first, second] = batch.clone();
    let batch = [first, second.requiring([require("ns", Expect::At(Revision(3)))])];
    let judged =
        |live: &[_]| judge_under(&apart(&batch), Revision(10), found(live), terms).expect("it stands");
    assert_eq!(judged(&[None, None, Some(Revision(3))]).1, Some(&change));
    assert_eq!(judged(&[None, None, Some(Revision(4))]).1, None);
}

#[test]
fn changes_of_a_unit_share_a_revision_and_losers_take_none() {
    let create = |name| mutation(name, Expect::Absent, true);
    let batch: Units = [
        create("a").into(),
        Unit::of_one_revision(vec![create("b"), create("c")], create("d")),
        Unit::of_one_revision(vec![create("e")], create("a")),
        Unit::of_no_revision(vec![], create("f")),
        Unit::of(vec![create("g")], create("h")),
        Unit::of_one_revision(vec![], create("i")),
    ]
    .into_iter()
    .collect();
    let verdict = judge(&batch, Revision(10), Found { lag: 4, ..found(&vec![None; batch.len()]) }, None);
    let counted: Vec<_> =
        verdict.writes.iter().map(|write| (write.revision.0, write.etcd_revision)).collect();
    let expected = [(11, 7), (12, 8), (13, 8), (14, 8), (15, 8), (16, 9), (17, 10), (18, 11)];
    assert_eq!(counted, expected);
}

#[test]
fn a_range_that_has_changed_fails_its_mutation() {
    let range = |start: &str, stop: Option<&str>, since| UnchangedRange {
        resource: ResourceId(1),
        start: start.into(),
        stop: stop.map(Into::into),
        since: Revision(since),
    };
    let create = |name, range: &UnchangedRange| {
        mutation(name, Expect::Absent, true).requiring_unchanged(range.clone())
    };
    let (low, high) = (range("a", Some("m"), 10), range("m", None, 10));
    let batch = [
        create("x", &low).requiring_unchanged(low.clone()),
        // This one fails before its range is looked at, which the next one must not take for its own.
        mutation("x", Expect::Absent, true).requiring_unchanged(high.clone()),
        create("b", &low),
        create("y", &high),
        create("c", &low),
        create("d", &range("e", Some("f"), 4)),
        create("e", &range("e", Some("f"), 5)),
        create("f", &low),
    ];
    let changed = [false, false, true, false, false, false, false, false, true];
    let verdict = judge(&apart(&batch), Revision(10), Found { changed: &changed, ..found(&[None; 8]) }, None);
    let committed = |n| Outcome::Committed(Revision(n));
    let expected = [
        committed(11),
        Outcome::Conflict { found: Some(Revision(11)) },
        committed(12),
        // "x" is written by the batch.
        Outcome::RangeChanged,
        // So is "b".
        Outcome::RangeChanged,
        // History since then is given up.
        Outcome::RangeChanged,
        committed(13),
        // Before the batch, and by it.
        Outcome::RangeChanged,
    ];
    assert_eq!(verdict.outcomes, expected);
}
