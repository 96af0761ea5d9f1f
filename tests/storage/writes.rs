//! What a batch writes, and what it refuses.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rowplane::revision::Revision;
use rowplane::storage::{Change, Expect, Key, Mutation, Outcome, Requirement, Scan, Terms, Unit, Units};

use crate::support::database::{Database, Table};
use crate::support::object::{committed, create, delete, list, pass, put, resource, update, value};

pub async fn a_precondition_decides(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "a");
    let outcome = async |mutation: Mutation| {
        backend.commit(&[mutation], Revision(0)).await.expect("commit").outcomes[0]
    };
    let missing = Outcome::Conflict { found: None };
    assert_eq!(outcome(update(&key, Revision(1), 0)).await, missing);
    assert_eq!(outcome(delete(&key, Revision(1))).await, missing);

    let first = committed(outcome(create(&key, 1)).await);
    let taken = Outcome::Conflict { found: Some(first) };
    assert_eq!(outcome(create(&key, 2)).await, taken);
    assert_eq!(outcome(update(&key, Revision(first.0 - 1), 2)).await, taken);
    assert_eq!(outcome(delete(&key, Revision(first.0 + 1))).await, taken);
    let removal = Mutation::new(key.clone(), Expect::Absent, Change::Delete);
    assert_eq!(outcome(removal).await, taken, "deleting what must be absent");

    let second = committed(outcome(update(&key, first, 2)).await);
    let third = committed(outcome(delete(&key, second)).await);
    assert_eq!(outcome(update(&key, second, 3)).await, missing);
    assert_eq!(outcome(update(&key, third, 3)).await, missing, "a tombstone is no version to update");
    assert_eq!(outcome(delete(&key, third)).await, missing);
    let fourth = committed(outcome(create(&key, 4)).await);
    assert_eq!([second.0, third.0, fourth.0], [first.0 + 1, first.0 + 2, first.0 + 3]);
}

/// Random batches over few keys: winners' revisions follow the base one by one, whoever loses in between.
pub async fn losers_fail_alone_and_take_no_revision(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let keys: Vec<Key> = (0..6).map(|n| Key::new(resource, "ns", &format!("k{n}"))).collect();
    let mut live: Vec<Option<Revision>> = vec![None; keys.len()];
    let mut random = StdRng::seed_from_u64(7);
    let mut last = backend.clock().await.expect("clock").revision;
    let (mut winners, mut losers) = (0, 0);
    for _ in 0..60 {
        let targets: Vec<usize> =
            (0..random.random_range(1..12)).map(|_| random.random_range(0..keys.len())).collect();
        let batch: Vec<Mutation> = targets
            .iter()
            .map(|target| match (live[*target], random.random_range(0..3)) {
                (Some(version), 0) => delete(&keys[*target], version),
                (Some(version), 1) => update(&keys[*target], version, 0),
                (_, _) => create(&keys[*target], 0),
            })
            .collect();
        let commit = backend.commit(&batch, last).await.expect("commit");
        assert_eq!(commit.base, last, "a batch starts where the one before ended");
        assert_eq!(commit.outcomes.len(), batch.len());
        for ((target, mutation), outcome) in targets.iter().zip(&batch).zip(commit.outcomes) {
            match outcome {
                Outcome::Committed(revision) => {
                    assert_eq!(revision.0, last.0 + 1);
                    last = revision;
                    live[*target] = matches!(mutation.change, Change::Put { .. }).then_some(revision);
                    winners += 1;
                }
                Outcome::Conflict { found } => {
                    assert_eq!(found, live[*target], "the loser is told what it met");
                    losers += 1;
                }
                other => panic!("there is no fence, and nothing is required: {other:?}"),
            }
        }
        assert_eq!(backend.clock().await.expect("clock").revision, last);
    }
    assert!(losers > 50 && winners > 50, "both happened: {losers} losers, {winners} winners");
}

pub async fn a_batch_of_losers_leaves_no_trace(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "a");
    pass(&*backend, create(&key, 1)).await;
    let before = backend.clock().await.expect("clock");
    let batch = [create(&key, 2), update(&key, Revision(1), 2)];
    let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
    assert_eq!(commit.base, before.revision);
    assert!(commit.outcomes.iter().all(|outcome| matches!(outcome, Outcome::Conflict { .. })));
    assert_eq!(backend.clock().await.expect("clock"), before);
    assert_eq!(database.rows(Table::Objects).await, 1);
    assert_eq!(database.rows(Table::Changes).await, 1);
}

pub async fn one_key_many_times_in_a_batch(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = Key::new(resource, "ns", "a");
    let base = backend.clock().await.expect("clock").revision.0;
    let at = |n: u64| Revision(base + n);
    let batch = [
        create(&key, 1),
        create(&key, 2),
        update(&key, at(1), 3),
        update(&key, at(1), 4),
        delete(&key, at(2)),
        delete(&key, at(2)),
        create(&key, 5),
        update(&key, at(4), 6),
    ];
    let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
    let expected = [
        Outcome::Committed(at(1)),
        Outcome::Conflict { found: Some(at(1)) },
        Outcome::Committed(at(2)),
        Outcome::Conflict { found: Some(at(2)) },
        Outcome::Committed(at(3)),
        Outcome::Conflict { found: None },
        Outcome::Committed(at(4)),
        Outcome::Committed(at(5)),
    ];
    assert_eq!(commit.outcomes, expected);
    for (revision, n) in [(1, Some(1)), (2, Some(3)), (3, None), (4, Some(5)), (5, Some(6))] {
        let items = list(&*backend, &Scan::all(resource), at(revision)).await.expect("list");
        let values: Vec<_> = items.into_iter().map(|(.., value)| value).collect();
        assert_eq!(values, n.map(value).into_iter().collect::<Vec<_>>(), "at base + {revision}");
    }
}

pub async fn what_is_joined_passes_together_or_not_at_all(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let key = |name: &str| Key::new(resource, "ns", name);
    let taken = pass(&*backend, create(&key("taken"), 0)).await;
    let before = backend.clock().await.expect("clock");
    let commit = async |mut units: Units| {
        backend.commit_under(&mut units, Terms::default()).await.expect("commit").outcomes
    };

    let losers = Unit::of(vec![create(&key("a"), 1), create(&key("taken"), 1)], create(&key("b"), 1));
    let outcomes = commit(Units::from_iter([losers])).await;
    assert_eq!(outcomes, [Outcome::Apart, Outcome::Conflict { found: Some(taken) }, Outcome::Apart]);
    assert_eq!(backend.clock().await.expect("clock"), before, "a group that fails takes no revision");

    let base = before.revision.0;
    let winners = Unit::of(vec![create(&key("a"), 2), delete(&key("taken"), taken)], create(&key("b"), 2));
    let outcomes = commit(Units::from_iter([winners, create(&key("taken"), 3).into()])).await;
    assert_eq!(outcomes, [1, 2, 3, 4].map(|n| Outcome::Committed(Revision(base + n))));
    let items = list(&*backend, &Scan::all(resource), Revision(base + 4)).await.expect("list");
    let found: Vec<_> = items.into_iter().map(|(_, name, _, value)| (name, value)).collect();
    assert_eq!(found, [("a".into(), value(2)), ("b".into(), value(2)), ("taken".into(), value(3))]);
}

/// As after a failover: the clock has jumped, and what was there before may be there again.
pub async fn what_was_decided_before_commits_were_lost_is_not_written(database: &Database) {
    let backend = database.open().await;
    let key = Key::new(resource(&*backend, "things").await, "ns", "a");
    let first = pass(&*backend, create(&key, 1)).await;
    let outcome = async |decided_at: Revision| {
        let mutation = Mutation { decided_at: Some(decided_at), ..update(&key, first, 2) };
        backend.commit(&[mutation], Revision(0)).await.expect("commit").outcomes[0]
    };
    let jumped = backend.advance_clock(Revision(first.0 + 100)).await.expect("a jump");
    assert_eq!(outcome(first).await, Outcome::Outdated);
    assert_eq!(outcome(Revision(jumped.revision.0 - 1)).await, Outcome::Outdated);
    assert_eq!(outcome(jumped.revision).await, Outcome::Committed(Revision(jumped.revision.0 + 1)));
}

/// Statements may exist per size and be padded: no size loses, adds or mixes up a write.
pub async fn every_batch_size(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let mut expected = Vec::new();
    for size in [1_usize, 2, 3, 4, 5, 7, 8, 9, 31, 64, 65, 127, 200, 255, 256] {
        let namespace = format!("size-{size:03}");
        let keys: Vec<Key> = (0..size).map(|n| Key::new(resource, &namespace, &format!("{n:03}"))).collect();
        // Every third write loses, so that the statements that write hold fewer rows than the batch.
        let batch: Vec<Mutation> = (0..size)
            .map(|n| {
                let expect = if n % 3 == 2 { Expect::At(Revision(1)) } else { Expect::Absent };
                put(&keys[n], expect, (size * 1000 + n) as u64)
            })
            .collect();
        let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
        let mut next = commit.base.0;
        for n in (0..size).filter(|n| n % 3 != 2) {
            next += 1;
            assert_eq!(commit.outcomes[n], Outcome::Committed(Revision(next)));
            let stored = value((size * 1000 + n) as u64);
            expected.push((namespace.clone(), format!("{n:03}"), next, stored));
        }
    }
    let end = backend.clock().await.expect("clock").revision;
    assert_eq!(list(&*backend, &Scan::all(resource), end).await.expect("list"), expected);
}

pub async fn unusual_names_and_values(database: &Database) {
    let backend = database.open().await;
    let resource = resource(&*backend, "things").await;
    let long = "n".repeat(253);
    let mut places =
        vec![("", "cluster-scoped"), ("ns", "it's \"quoted\""), ("ns", "system:node:ä€😀"), ("ns", &long)];
    places.sort_unstable();
    let batch: Vec<Mutation> =
        places.iter().map(|(namespace, name)| create(&Key::new(resource, namespace, name), 1)).collect();
    backend.commit(&batch, Revision(0)).await.expect("commit");
    let end = backend.clock().await.expect("clock").revision;
    let items = list(&*backend, &Scan::all(resource), end).await.expect("list");
    let found: Vec<_> = items.iter().map(|(namespace, name, ..)| (&**namespace, &**name)).collect();
    assert_eq!(found, places);
}

fn require(key: &Key, expect: Expect) -> Requirement {
    Requirement { key: key.clone(), expect }
}

pub async fn a_requirement_about_another_row_decides(database: &Database) {
    let backend = database.open().await;
    let things = resource(&*backend, "things").await;
    let namespace = Key::new(resource(&*backend, "spaces").await, "", "ns");
    let outcomes =
        async |batch: &[Mutation]| backend.commit(batch, Revision(0)).await.expect("commit").outcomes;
    let new = |name: &str| create(&Key::new(things, "ns", name), 1);
    let unmet = |found| Outcome::Unmet { requirement: 0, found };

    let absent = require(&namespace, Expect::Absent);
    let too_early = new("a").requiring([require(&namespace, Expect::At(Revision(1)))]);
    let [lost, won] = outcomes(&[too_early, new("a").requiring([absent.clone()])]).await[..] else {
        panic!()
    };
    assert_eq!(lost, unmet(None));
    committed(won);

    let first = pass(&*backend, create(&namespace, 1)).await;
    let at_first = require(&namespace, Expect::At(first));
    let batch = [
        new("b").requiring([at_first.clone()]),
        new("c").requiring([absent]),
        // From here on the row is another one.
        update(&namespace, first, 2),
        new("d").requiring([at_first.clone()]),
        new("e").requiring([require(&namespace, Expect::At(Revision(first.0 + 2)))]),
    ];
    let second = Revision(first.0 + 2);
    let expected = [
        Outcome::Committed(Revision(first.0 + 1)),
        unmet(Some(first)),
        Outcome::Committed(second),
        unmet(Some(second)),
        Outcome::Committed(Revision(first.0 + 3)),
    ];
    assert_eq!(outcomes(&batch).await, expected);

    let gone = pass(&*backend, delete(&namespace, second)).await;
    let at = |version| new("f").requiring([require(&namespace, Expect::At(version))]);
    assert_eq!(outcomes(&[at(second), at(gone)]).await, [unmet(None); 2], "a tombstone is no version");
    let end = backend.clock().await.expect("clock").revision;
    let found: Vec<_> = list(&*backend, &Scan::all(things), end).await.expect("list");
    assert_eq!(found.iter().map(|(_, name, ..)| &**name).collect::<Vec<_>>(), ["a", "b", "e"]);
}

/// As [`every_batch_size`], with required rows behind those of the batch.
pub async fn every_number_of_requirements(database: &Database) {
    let backend = database.open().await;
    let (things, spaces) = (resource(&*backend, "things").await, resource(&*backend, "spaces").await);
    let namespaces: Vec<Key> = (0..40).map(|n| Key::new(spaces, "", &format!("{n:02}"))).collect();
    let batch: Vec<Mutation> = namespaces.iter().map(|key| create(key, 1)).collect();
    let commit = backend.commit(&batch, Revision(0)).await.expect("commit");
    let versions: Vec<Revision> = commit.outcomes.into_iter().map(committed).collect();
    for (size, required) in
        [(1, 1), (1, 2), (1, 16), (1, 17), (3, 2), (4, 1), (5, 40), (255, 2), (256, 1), (256, 40)]
    {
        let requirement = |n: usize, wrong: bool| {
            let version = Revision(versions[n].0 + u64::from(wrong));
            require(&namespaces[n], Expect::At(version))
        };
        // Every seventh write requires what is not so, last.
        let batch: Vec<Mutation> = (0..size)
            .map(|n| {
                let key = Key::new(things, &format!("{size}-{required}"), &n.to_string());
                create(&key, 1)
                    .requiring((0..required).map(|r| requirement(r, n % 7 == 6 && r + 1 == required)))
            })
            .collect();
        let outcomes = backend.commit(&batch, Revision(0)).await.expect("commit").outcomes;
        for (n, outcome) in outcomes.into_iter().enumerate() {
            let unmet = Outcome::Unmet { requirement: required - 1, found: Some(versions[required - 1]) };
            if n % 7 == 6 {
                assert_eq!(outcome, unmet, "{n} of {size} with {required}");
            } else {
                committed(outcome);
            }
        }
    }
}
