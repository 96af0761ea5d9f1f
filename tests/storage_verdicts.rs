//! The rules of a batch are written twice: in `src/storage/judge.rs`, and in the procedure of PostgreSQL. Random batches are
//! committed on PostgreSQL and in memory, where the former judges, under random terms; outcomes and rows are the same.
//!
//! A failure prints the seed; `ROWPLANE_TEST_SEED=… ./test --test storage_verdicts` repeats the run.

mod support;

use std::sync::Arc;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rowplane::codec::at_rest::ValueFormat;
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::storage::counting::{Account, Charge, Ledger};
use rowplane::storage::{
    Amendment, AuditQuery, AuditRow, Backend, Change, Commit, EncodedResource, Error, Expect, Fence, Key,
    Mutation, Registration, RegistryChange, Requirement, ResourceId, Terms, UnchangedRange, Unit, Units,
};

use crate::support::database::Database;
use crate::support::object::{feed, put, resource};

const STEPS: usize = 1200;
const NAMES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const COUNTERS: [&str; 2] = ["one", "two"];

/// A counter is `<used>/<limit>`.
#[derive(Debug)]
struct Numbers;

struct Number {
    key: Key,
    used: i64,
    limit: i64,
}

impl Ledger for Numbers {
    fn open(&self, key: &Key, value: Bytes) -> Option<Box<dyn Account>> {
        let text = std::str::from_utf8(&value).ok()?;
        let (used, limit) = text.trim().split_once('/')?;
        Some(Box::new(Number { key: key.clone(), used: used.parse().ok()?, limit: limit.parse().ok()? }))
    }
}

impl Account for Number {
    fn add(&mut self, charge: &Charge) -> bool {
        let amount: i64 = charge.amounts[0].1.parse().expect("a number");
        let used = self.used + amount;
        if charge.limited && amount > 0 && used > self.limit {
            return false;
        }
        self.used = used;
        true
    }

    fn duplicate(&self) -> Box<dyn Account> {
        Box::new(Number { key: self.key.clone(), ..*self })
    }

    fn change(&self) -> Change {
        counter(&self.key, self.used, self.limit)
    }
}

fn counter(key: &Key, used: i64, limit: i64) -> Change {
    let value = Bytes::from(format!("{used}/{limit}"));
    let draft = Draft::of_json(&key.namespace, &key.name, value);
    Change::Put { uid: "counter".into(), stored_version: "v1".into(), value: draft.into() }
}

struct Test {
    postgres: Arc<dyn Backend>,
    memory: Arc<dyn Backend>,
    things: ResourceId,
    exempt: ResourceId,
    counters: ResourceId,
    random: StdRng,
    read: Revision,
    compacted: Revision,
    /// Whether the batch may have charges.
    charges: bool,
    seen: Seen,
}

/// How often what came out, so that a run which tests nothing is noticed.
#[derive(Debug, Default)]
struct Seen {
    committed: u32,
    conflict: u32,
    unmet: u32,
    apart: u32,
    unfit: u32,
    outdated: u32,
    range_changed: u32,
    fenced: u32,
    registry: u32,
    refused: u32,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_database_judges_as_the_server_does() {
    let seed = match std::env::var("ROWPLANE_TEST_SEED") {
        Ok(seed) => seed.parse().expect("ROWPLANE_TEST_SEED is a number"),
        Err(_) => rand::random(),
    };
    println!("ROWPLANE_TEST_SEED={seed}");
    let (database, memory) = (Database::postgres().await, Database::memory());
    let (postgres, memory) = (database.open().await, memory.open().await);
    let mut ids = Vec::new();
    for plural in ["things", "leases", "counters"] {
        ids.push(resource(&*postgres, plural).await);
        assert_eq!(resource(&*memory, plural).await, ids[ids.len() - 1]);
    }
    let read = postgres.clock().await.expect("clock").revision;
    assert_eq!(memory.clock().await.expect("clock").revision, read);
    let random = StdRng::seed_from_u64(seed);
    let (things, exempt, counters) = (ids[0], ids[1], ids[2]);
    let seen = Seen::default();
    let compacted = Revision(0);
    let mut test =
        Test { postgres, memory, things, exempt, counters, random, read, compacted, charges: false, seen };
    for _ in 0..STEPS {
        test.step().await;
    }
    println!("{:?}", test.seen);
    let Seen { committed, conflict, unmet, apart, unfit, outdated, range_changed, fenced, registry, refused } =
        test.seen;
    for seen in [committed, conflict, unmet, apart, unfit, outdated, range_changed, fenced, registry, refused]
    {
        assert!(seen > 20, "{:?}", test.seen);
    }
    let audited = |backend: Arc<dyn Backend>| async move {
        backend.audit_rows(&AuditQuery { limit: 10_000, ..AuditQuery::default() }).await.expect("events")
    };
    let (one, other) = (audited(test.postgres.clone()).await, audited(test.memory.clone()).await);
    assert!(one.len() > 100);
    assert_eq!(one, other);
    assert_eq!(
        database.number("SELECT COUNT(*) FROM batches").await,
        1,
        "one batch at a time takes one place"
    );
}

/// No row has the version 0, nor the one by which a charged row is told from all others while a batch is judged.
#[tokio::test]
async fn versions_that_no_row_has_are_expected_in_vain() {
    use rowplane::storage::Outcome::{Committed, Conflict, Unmet};
    for database in [Database::postgres().await, Database::memory()] {
        let store = database.open().await;
        let (things, counters) = (resource(&*store, "things").await, resource(&*store, "counters").await);
        let key = |name: &str| Key::new(things, "ns", name);
        let counter_key = Key::new(counters, "ns", "one");
        let made = Mutation::new(counter_key.clone(), Expect::Absent, counter(&counter_key, 0, 9));
        let commit = |batch: Vec<Mutation>| {
            let store = store.clone();
            async move { commit(&*store, &batch.into(), Terms::default()).await.expect("it commits").outcomes }
        };
        assert!(matches!(commit(vec![made]).await[..], [Committed(_)]));
        let charged = |name: &str, row: &Key, expect| {
            let amounts = [("used".into(), "1".into())].into();
            let charge = Charge { key: counter_key.clone(), ledger: &Numbers, amounts, limited: true };
            let required = Requirement { key: row.clone(), expect };
            let create = put(&key(name), Expect::Absent, 1).requiring([required]);
            Mutation { charges: vec![charge], ..create }
        };
        let (never, mark) = (Expect::At(Revision(0)), Expect::At(Revision(u64::MAX)));
        let outcomes = commit(vec![
            charged("a", &key("absent"), never),
            put(&key("absent"), never, 1),
            charged("b", &key("absent"), Expect::Absent),
            Mutation::new(counter_key.clone(), mark, counter(&counter_key, 0, 9)),
            charged("c", &counter_key, mark),
        ]);
        let outcomes = outcomes.await;
        let [
            Unmet { found: None, .. },
            Conflict { found: None },
            Committed(_),
            Conflict { .. },
            Unmet { .. },
            Committed(_),
        ] = outcomes[..]
        else {
            panic!("{outcomes:?}")
        };
    }
}

impl Test {
    async fn step(&mut self) {
        if self.random.random_bool(0.1) {
            self.compact().await;
        }
        let live = self.live().await;
        let size = if self.random.random_bool(0.05) { 0 } else { self.random.random_range(1..10) };
        self.charges = self.random.random_bool(0.7);
        let batch = self.units(size, &live);
        let registry = self.random.random_bool(0.15).then(|| self.registry());
        let registers = matches!(registry, Some(RegistryChange::Put(_)));
        let fence = (self.random.random_bool(0.6) && !registers).then(|| Fence {
            server: "a".into(),
            incarnation: if self.random.random_bool(0.9) { "now" } else { "before" }.into(),
            exempt: vec![self.exempt],
        });
        let floor = match self.random.random_bool(0.05) {
            true => Revision(self.read.0 + self.random.random_range(0..2)),
            false => Revision(0),
        };
        let terms = Terms { floor, fence: fence.as_ref(), registry: registry.as_ref() };
        let (one, other) =
            (commit(&*self.postgres, &batch, terms).await, commit(&*self.memory, &batch, terms).await);
        match (one, other) {
            (Ok(one), Ok(other)) => {
                assert_eq!((one.base, &one.outcomes), (other.base, &other.outcomes), "{batch:#?} {terms:?}");
                self.note(&one, registry.is_some());
            }
            (Err(one), Err(other)) => {
                assert_eq!(one.to_string(), other.to_string(), "{batch:#?} {terms:?}");
                self.seen.refused += 1;
            }
            (one, other) => panic!("{one:?}, in memory {other:?}: {batch:#?} {terms:?}"),
        }
        let rows = |backend: Arc<dyn Backend>, after| async move {
            let rows = feed(&*backend, after, None, 100).await.into_iter();
            rows.map(|row| (row.revision, row.key, row.kind, row.value, row.counting)).collect::<Vec<_>>()
        };
        let (one, other) =
            (rows(self.postgres.clone(), self.read).await, rows(self.memory.clone(), self.read).await);
        assert_eq!(one, other, "{batch:#?}");
        // What was replaced stands in the feed of a single resource.
        let replaced = |backend: Arc<dyn Backend>, resource, after| async move {
            let rows = feed(&*backend, after, Some(resource), 100).await.into_iter();
            rows.map(|row| (row.revision, row.previous)).collect::<Vec<_>>()
        };
        for resource in [self.things, self.counters] {
            let one = replaced(self.postgres.clone(), resource, self.read).await;
            assert_eq!(one, replaced(self.memory.clone(), resource, self.read).await, "{batch:#?}");
        }
        let clock = self.memory.clock().await.expect("clock");
        assert_eq!(self.postgres.clock().await.expect("clock"), clock);
        self.read = clock.revision;
    }

    async fn compact(&mut self) {
        let to = Revision(self.random.random_range(self.compacted.0..=self.read.0));
        let clock = self.postgres.compact(to).await.expect("compact");
        assert_eq!(self.memory.compact(to).await.expect("compact"), clock);
        self.compacted = clock.compacted;
    }

    fn note(&mut self, commit: &Commit, registry: bool) {
        use rowplane::storage::Outcome::{
            Apart, Committed, Conflict, Fenced, Outdated, RangeChanged, Unfit, Unmet,
        };
        for outcome in &commit.outcomes {
            *match outcome {
                Committed(_) => &mut self.seen.committed,
                Conflict { .. } => &mut self.seen.conflict,
                Unmet { .. } => &mut self.seen.unmet,
                Apart => &mut self.seen.apart,
                Unfit { .. } => &mut self.seen.unfit,
                Outdated => &mut self.seen.outdated,
                RangeChanged => &mut self.seen.range_changed,
                Fenced => &mut self.seen.fenced,
            } += 1;
        }
        self.seen.registry += u32::from(registry);
    }

    async fn live(&self) -> Vec<(Key, Revision)> {
        let mut live = Vec::new();
        for resource in [self.things, self.exempt, self.counters] {
            let scan = rowplane::storage::Scan::all(resource);
            let at = self.read;
            for (namespace, name, version, _) in
                support::object::list(&*self.memory, &scan, at).await.expect("list")
            {
                live.push((Key::new(resource, &namespace, &name), Revision(version)));
            }
        }
        live
    }

    fn units(&mut self, size: usize, live: &[(Key, Revision)]) -> Units {
        let (mut units, mut before) = (Units::default(), Vec::new());
        for _ in 0..size {
            let mutation = self.mutation(live);
            match self.random.random_bool(0.2) {
                true => before.push(mutation),
                false => units.push(self.unit(std::mem::take(&mut before), mutation)),
            }
        }
        units
    }

    fn unit(&mut self, before: Vec<Mutation>, last: Mutation) -> Unit {
        match self.random.random_range(0..10) {
            0..3 => Unit::of_one_revision(before, last),
            3 => Unit::of_no_revision(before, last),
            _ => Unit::of(before, last),
        }
    }

    /// Mostly one in which nothing has happened before the batch.
    fn range(&mut self) -> UnchangedRange {
        let back = if self.random.random_bool(0.8) { 0 } else { 20 };
        let since = Revision(self.random.random_range(self.read.0.saturating_sub(back)..=self.read.0));
        let name = |random: &mut StdRng| NAMES[random.random_range(0..NAMES.len())].into();
        let start = name(&mut self.random);
        let stop = self.random.random_bool(0.8).then(|| name(&mut self.random));
        UnchangedRange { resource: self.things, start, stop, since }
    }

    fn mutation(&mut self, live: &[(Key, Revision)]) -> Mutation {
        let mut mutation = self.write_of_a_row(live);
        if self.random.random_bool(0.3) {
            let requires = (0..self.random.random_range(1..4)).map(|_| self.requirement(live));
            mutation.requires = requires.collect();
        }
        if self.random.random_bool(0.3) {
            mutation.shares = Some(Arc::new(self.requirement(live)));
        }
        if self.random.random_bool(0.2) {
            mutation = mutation.requiring_unchanged(self.range());
        }
        if let Change::Put { value, .. } = &mut mutation.change
            && mutation.key.resource == self.things
            && self.random.random_bool(0.3)
        {
            *value = value.clone().stamped();
        }
        if self.charges && self.random.random_bool(0.3) {
            mutation.charges = (0..self.random.random_range(1..3)).map(|_| self.charge()).collect();
        }
        mutation.decided_at = self.random.random_bool(0.2).then(|| {
            let oldest = self.compacted.0.saturating_sub(3);
            Revision(self.random.random_range(oldest..=self.read.0))
        });
        mutation.audit = self.random.random_bool(0.2).then(|| {
            let n: u32 = self.random.random();
            Arc::new(AuditRow {
                ring: Default::default(),
                at: n.into(),
                user: "user".into(),
                verb: "create".into(),
                object: "things/ns/a".into(),
                event: Bytes::from(format!("{n}")),
            })
        });
        mutation
    }

    fn write_of_a_row(&mut self, live: &[(Key, Revision)]) -> Mutation {
        let key = self.key();
        let expect = self.expect(&key, live);
        if key.resource == self.counters {
            let (used, limit) = (self.random.random_range(0..20), self.random.random_range(5..60));
            return Mutation::new(key.clone(), expect, counter(&key, used, limit));
        }
        match self.random.random_range(0..10) {
            0..3 => Mutation::new(key, expect, Change::Delete),
            _ => put(&key, expect, self.random.random()),
        }
    }

    /// Mostly as it is before the batch. Versions that the batch gives are not guessed where there are charges: such a batch
    /// is judged before they are known.
    fn expect(&mut self, key: &Key, live: &[(Key, Revision)]) -> Expect {
        let found = live.iter().find(|(found, _)| found == key).map(|(_, version)| *version);
        match found {
            _ if self.random.random_bool(0.1) => {
                let newest = self.read.0 + if self.charges { 0 } else { 12 };
                Expect::At(Revision(self.random.random_range(0..=newest)))
            }
            _ if self.random.random_bool(0.02) => {
                Expect::At(Revision(u64::MAX - self.random.random_range(0..2)))
            }
            Some(version) if self.random.random_bool(0.9) => Expect::At(version),
            _ => Expect::Absent,
        }
    }

    fn requirement(&mut self, live: &[(Key, Revision)]) -> Requirement {
        let key = self.key();
        let expect = self.expect(&key, live);
        Requirement { key, expect }
    }

    fn key(&mut self) -> Key {
        match self.random.random_range(0..10) {
            0 => Key::new(self.exempt, "ns", "lease"),
            1 => self.counter(),
            _ => Key::new(self.things, "ns", NAMES[self.random.random_range(0..NAMES.len())]),
        }
    }

    fn counter(&mut self) -> Key {
        Key::new(self.counters, "ns", COUNTERS[self.random.random_range(0..COUNTERS.len())])
    }

    fn charge(&mut self) -> Charge {
        let amount = self.random.random_range(-3..6).to_string();
        Charge {
            key: self.counter(),
            ledger: &Numbers,
            amounts: [("used".into(), amount.into())].into(),
            limited: self.random.random_bool(0.8),
        }
    }

    fn registry(&mut self) -> RegistryChange {
        let things = self.things;
        let encoded = |encoding: &str| EncodedResource {
            resource: things,
            encoding: encoding.into(),
            decodable: vec!["v1".into(), "v2".into()],
            served: vec!["v1".into()],
        };
        match self.random.random_range(0..4) {
            0 => RegistryChange::Remove(vec!["a".into(), "nobody".into()]),
            1 => RegistryChange::Amend(
                Amendment { server: "a".into(), encoded: vec![encoded("v2")], dropped: vec![self.exempt] }
                    .into(),
            ),
            _ => RegistryChange::Put(
                Registration {
                    server: "a".into(),
                    incarnation: "now".into(),
                    format: ValueFormat::NEWEST,
                    resources: vec![encoded("v1")],
                }
                .into(),
            ),
        }
    }
}

/// Commits the batch with its counts, which belong to one store.
async fn commit(backend: &dyn Backend, batch: &Units, terms: Terms<'_>) -> Result<Commit, Error> {
    let mut batch = batch.clone();
    batch.count();
    backend.commit_under(&mut batch, terms).await
}
