//! Random work on a store beside a model of it that keeps every state there ever was.
//!
//! A failure prints the seed; `ROWPLANE_TEST_SEED=… ./test --test storage_model` repeats the run.

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rowplane::revision::Revision;
use rowplane::storage::{
    Backend, Change, ChangeKind, Clock, Counting, Error, Expect, Key, Mutation, Outcome, PastError,
    Requirement, ResourceId, Scan, Terms, UnchangedRange, Unit, Units,
};

use crate::support::database::{Database, Table};
use crate::support::object::{Item, delete, give_up, items, list, put, resource};

const STEPS: usize = 1500;
const NAMESPACES: [&str; 5] = ["", "a", "a-b", "ab", "b"];
const NAMES: [&str; 5] = ["x", "x-y", "x.y", "xy", "y"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_behaves_like_the_model() {
    run(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_behaves_like_the_model() {
    run(Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_behaves_like_the_model() {
    run(Database::memory()).await;
}

async fn run(database: Database) {
    let seed = match std::env::var("ROWPLANE_TEST_SEED") {
        Ok(seed) => seed.parse().expect("ROWPLANE_TEST_SEED is a number"),
        Err(_) => rand::random(),
    };
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut test = Test::start(database, seed).await;
    for _ in 0..STEPS {
        test.step().await;
    }
    test.sweep_all().await;
}

struct Test {
    database: Database,
    /// `None` only between closing and opening again.
    backend: Option<Arc<dyn Backend>>,
    resources: Vec<ResourceId>,
    random: StdRng,
    model: Model,
    /// A watcher's place in the feed, and what it made of what it read.
    watched: (Revision, State),
}

/// Live objects: resource, namespace, name to version and value.
type State = BTreeMap<(ResourceId, String, String), (Revision, Bytes)>;

struct Model {
    clock: Clock,
    /// The state at every revision since the store was made.
    states: BTreeMap<Revision, State>,
    /// The kind of every write and what it replaced.
    changes: BTreeMap<Revision, ModelChange>,
    /// The oldest revision at which each resource can be read.
    floors: BTreeMap<ResourceId, Revision>,
}

#[derive(Clone, Debug, PartialEq)]
struct ModelChange {
    key: Key,
    kind: ChangeKind,
    value: Option<Bytes>,
    previous: Option<(Revision, Bytes)>,
    counting: Counting,
}

/// The uid of values that are stamped, by which the model tells them.
const STAMPED: &str = "stamped";

impl Test {
    async fn start(database: Database, seed: u64) -> Self {
        let backend = database.open().await;
        let resources = vec![resource(&*backend, "things").await, resource(&*backend, "others").await];
        let clock = backend.clock().await.expect("clock");
        let states = BTreeMap::from([(clock.revision, State::new())]);
        let floors = resources.iter().map(|resource| (*resource, clock.compacted)).collect();
        let model = Model { clock, states, changes: BTreeMap::new(), floors };
        let watched = (clock.revision, State::new());
        Self {
            database,
            backend: Some(backend),
            resources,
            random: StdRng::seed_from_u64(seed),
            model,
            watched,
        }
    }

    fn backend(&self) -> Arc<dyn Backend> {
        self.backend.clone().expect("open")
    }

    async fn step(&mut self) {
        match self.random.random_range(0..100) {
            0..50 => self.write().await,
            50..60 => self.list().await,
            60..62 => self.count_as_etcd().await,
            62..71 => self.list_past().await,
            71..75 => self.versions().await,
            75..85 => self.resume_feed().await,
            85..93 => self.watch().await,
            93..95 => self.compact().await,
            95 => self.raise_floors().await,
            96..98 => self.sweep().await,
            98 => self.advance().await,
            _ => self.reopen().await,
        }
        assert_eq!(self.backend().clock().await.expect("clock"), self.model.clock);
    }

    async fn write(&mut self) {
        let mut batch = self.units();
        let expected = self.model.commit(&batch);
        let terms = Terms { floor: expected.0, ..Terms::default() };
        let commit = self.backend().commit_under(&mut batch, terms).await.expect("commit");
        assert_eq!((commit.base, commit.outcomes), expected, "{batch:?}");
    }

    fn units(&mut self) -> Units {
        let (mut units, mut before) = (Units::default(), Vec::new());
        for _ in 0..self.random.random_range(1..10) {
            let mutation = self.mutation();
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

    fn mutation(&mut self) -> Mutation {
        let requirements = if self.random.random_bool(0.3) { self.random.random_range(1..4) } else { 0 };
        let required: Vec<Requirement> = (0..requirements).map(|_| self.requirement()).collect();
        let decided_at = self.random.random_bool(0.1).then(|| self.revision());
        let mut mutation = Mutation { decided_at, ..self.write_of_a_row().requiring(required) };
        if self.random.random_bool(0.2) {
            mutation = mutation.requiring_unchanged(self.range());
        }
        if let Change::Put { uid, value, .. } = &mut mutation.change
            && self.random.random_bool(0.3)
        {
            (*uid, *value) = (STAMPED.into(), value.clone().stamped());
        }
        mutation
    }

    /// Mostly one in which little has happened since.
    fn range(&mut self) -> UnchangedRange {
        let clock = self.model.clock.revision.0;
        let back = if self.random.random_bool(0.9) { 4 } else { 40 };
        let since = Revision(self.random.random_range(clock.saturating_sub(back)..=clock));
        let start = pick(&mut self.random, &NAMES).into();
        let stop = self.random.random_bool(0.8).then(|| pick(&mut self.random, &NAMES).into());
        UnchangedRange { resource: self.resource(), start, stop, since }
    }

    /// Mostly one that holds before the batch.
    fn requirement(&mut self) -> Requirement {
        let key = self.key();
        let live = self.model.newest().get(&place(&key)).map(|(version, _)| *version);
        let expect = match live {
            _ if self.random.random_bool(0.1) => Expect::At(Revision(self.random.random_range(0..200))),
            Some(version) if self.random.random_bool(0.9) => Expect::At(version),
            _ => Expect::Absent,
        };
        Requirement { key, expect }
    }

    fn key(&mut self) -> Key {
        let (namespace, name) = (pick(&mut self.random, &NAMESPACES), pick(&mut self.random, &NAMES));
        Key::new(self.resource(), namespace, name)
    }

    fn write_of_a_row(&mut self) -> Mutation {
        let key = self.key();
        let live = self.model.newest().get(&place(&key)).map(|(version, _)| *version);
        let expect = match live {
            _ if self.random.random_bool(0.1) => Expect::At(Revision(self.random.random_range(0..200))),
            Some(version) if self.random.random_bool(0.9) => Expect::At(version),
            _ => Expect::Absent,
        };
        match expect {
            Expect::At(version) if self.random.random_bool(0.3) => delete(&key, version),
            _ => put(&key, expect, self.random.random()),
        }
    }

    async fn list(&mut self) {
        let at = self.revision();
        let scan = self.scan();
        let expected = self.model.list(&scan, at);
        let found = list(&*self.backend(), &scan, at).await;
        assert_same(&found, &expected, &format!("{scan:?} at {at}"));
        let unlimited = Scan { limit: None, ..scan };
        let expected = self.model.list(&unlimited, at).map(|items| items.len() as u64);
        let found = self.backend().count(&unlimited, at).await;
        assert_same(&found, &expected, &format!("count of {unlimited:?} at {at}"));
    }

    async fn resume_feed(&mut self) {
        let after = Revision(self.revision().0.min(self.model.clock.revision.0));
        let only = self.random.random_bool(0.5).then(|| self.resource());
        let limit = self.random.random_range(1..40);
        let found = self.backend().changes(after, only, limit).await;
        if after < self.model.clock.compacted {
            let gone =
                matches!(found, Err(Error::Compacted { oldest }) if oldest == self.model.clock.compacted);
            assert!(gone, "after {after}: {found:?}");
            return;
        }
        let changes = found.expect("changes");
        let expected: Vec<_> = (self.model.changes.range(Revision(after.0 + 1)..))
            .filter(|(_, change)| only.is_none_or(|only| only == change.key.resource))
            .map(|(revision, change)| {
                let previous = change.previous.clone().filter(|_| only.is_some());
                (*revision, ModelChange { previous, ..change.clone() })
            })
            .collect();
        let rows = changes.rows.into_iter().map(|row| {
            let (kind, value, previous, counting) = (row.kind, row.value, row.previous, row.counting);
            (row.revision, ModelChange { key: row.key, kind, value, previous, counting })
        });
        let rows: Vec<_> = rows.collect();
        let asked = format!("after {after}, {only:?}, limit {limit}");
        assert_eq!(rows, expected[..rows.len()], "{asked}");
        if !changes.cut {
            assert_eq!((rows.len(), changes.through), (expected.len(), self.model.clock.revision), "{asked}");
            return;
        }
        let shared = |place: usize| expected[place].1.counting == Counting::Shared;
        let last = rows.len() - 1;
        assert_eq!(changes.through, rows[last].0);
        assert!(!shared(last), "{asked}");
        // Where the limit would separate changes that share a revision, the page ends before the first of them, if it can.
        let limit = limit as usize;
        match rows.len() {
            length if length < limit => assert!((length..limit).all(shared), "{asked}"),
            length if length > limit => assert!((0..limit).all(shared), "{asked}"),
            _ => {}
        }
    }

    /// The lag at every revision, and the last revision for each one in etcd's terms.
    async fn count_as_etcd(&mut self) {
        let Clock { revision, compacted, .. } = self.model.clock;
        let (backend, mut last) = (self.backend(), BTreeMap::new());
        for at in compacted.0.max(revision.0.saturating_sub(40))..=revision.0 {
            let lag = self.model.lag_at(Revision(at));
            assert_eq!(backend.lag_at(Revision(at)).await.expect("the lag"), lag, "at {at}");
            let shared = self.model.counting(Revision(at)) == Counting::Shared;
            if !shared || at == compacted.0 {
                last.insert(at as i64 - lag, Revision(at));
            }
        }
        for (counted, at) in &last {
            assert_eq!(backend.sequence_of(*counted).await.expect("a revision"), *at, "{counted}");
        }
        let newest = self.model.clock.etcd_revision();
        let future = backend.sequence_of(newest + 1).await;
        assert!(matches!(future, Err(Error::Future { .. })), "{future:?}");
        let oldest = compacted.0 as i64 - self.model.lag_at(compacted);
        let gone = backend.sequence_of(oldest - 1).await;
        assert!(matches!(gone, Err(Error::Compacted { .. })), "{gone:?}");
        let gone = backend.lag_at(Revision(compacted.0 - 1)).await;
        assert!(matches!(gone, Err(Error::Compacted { .. })), "{gone:?}");
    }

    /// Follows the feed in pieces; the state it makes of it is the state of the store.
    async fn watch(&mut self) {
        let limit = self.random.random_range(1..20);
        while self.watched.0 < self.model.clock.revision {
            let piece = self.backend().changes(self.watched.0, None, limit).await;
            let (at, state) = &mut self.watched;
            match piece {
                Ok(changes) => {
                    for row in changes.rows {
                        match row.value {
                            Some(value) => state.insert(place(&row.key), (row.revision, value)),
                            None => state.remove(&place(&row.key)),
                        };
                    }
                    *at = changes.through;
                    assert_ne!(self.model.counting(*at), Counting::Shared, "a watcher sees a part of a unit");
                }
                Err(Error::Compacted { .. }) => {
                    *at = self.model.clock.revision;
                    *state = self.model.newest().clone();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert_eq!(&self.watched.1, self.model.newest());
    }

    async fn compact(&mut self) {
        let to = self.revision();
        let Clock { revision, compacted, .. } = self.model.clock;
        self.model.clock.compacted = compacted.max(to.min(revision));
        assert_eq!(self.backend().compact(to).await.expect("compact"), self.model.clock);
    }

    async fn raise_floors(&mut self) {
        let own: Vec<(ResourceId, Revision)> = match self.random.random_range(0..3) {
            0 => Vec::new(),
            1 => vec![(self.resource(), self.revision())],
            _ => self.resources.clone().into_iter().map(|resource| (resource, self.revision())).collect(),
        };
        let others = if self.random.random_bool(0.5) { Revision(0) } else { self.revision() };
        self.backend().raise_floors(others, &own).await.expect("raised");
        let backend = self.backend();
        for (resource, floor) in &mut self.model.floors {
            let wanted = own.iter().find(|(own, _)| own == resource).map_or(others, |(_, wanted)| *wanted);
            *floor = (*floor).max(wanted.min(self.model.clock.compacted));
            let found = backend.floor(*resource, None).await.expect("a floor");
            assert_eq!(found, *floor);
        }
    }

    /// A revision from a little before a resource's floor to a little after the newest.
    fn past(&mut self, resource: ResourceId) -> Revision {
        let low = self.model.floors[&resource].0.saturating_sub(5).max(1);
        Revision(self.random.random_range(low..self.model.clock.revision.0 + 2))
    }

    /// Assertion 20 of `docs/spec/time-and-sql.md`.
    async fn list_past(&mut self) {
        let scan = self.scan();
        let at = self.past(scan.resource);
        let found = self.backend().scan_past(scan.clone(), at).await;
        let floor = self.model.floors[&scan.resource];
        match found {
            Err(PastError::Expired { resource, floor: told }) => {
                assert!(
                    at < floor && resource == scan.resource && told.revision == floor,
                    "{scan:?} at {at}"
                );
                return;
            }
            Err(PastError::Store(Error::Future { .. })) => return assert!(at > self.model.clock.revision),
            Err(other) => panic!("{other}"),
            Ok(_) => assert!(floor <= at && at <= self.model.clock.revision, "{scan:?} at {at}"),
        }
        let found = items(found.expect("rows")).await.expect("rows");
        let expected = self.model.items(&scan, at);
        assert_eq!(found, expected, "{scan:?} at {at}");
        for (namespace, name, revision, value) in expected {
            let row = self.backend().row_past(&Key::new(scan.resource, &namespace, &name), at).await;
            let row = row.expect("read").expect("a row");
            assert_eq!((row.revision.0, row.value), (revision, value));
        }
    }

    async fn versions(&mut self) {
        let key = self.key();
        let floor = self.model.floors[&key.resource];
        let newest = self.model.clock.revision;
        let before = self.random.random_bool(0.5).then(|| self.past(key.resource));
        let limit = self.random.random_range(1..10);
        let of_key = |(_, change): &(&Revision, &ModelChange)| change.key == key;
        let at_floor =
            self.model.states.range(..=floor).next_back().and_then(|(_, state)| state.get(&place(&key)));
        let expected: Vec<(Revision, Option<Bytes>)> = (self.model.changes.range(Revision(floor.0 + 1)..))
            .filter(of_key)
            .map(|(revision, change)| (*revision, change.value.clone()))
            .rev()
            .chain(at_floor.map(|(revision, value)| (*revision, Some(value.clone()))))
            .filter(|(revision, _)| *revision < before.unwrap_or(Revision(newest.0 + 1)))
            .take(limit as usize)
            .collect();
        let found = self.backend().versions_of(&key, before, limit).await.expect("versions");
        let found = found.into_iter().map(|version| {
            let value = (!version.deleted).then_some(version.row.value);
            (version.revision, value)
        });
        assert_eq!(found.collect::<Vec<_>>(), expected, "{key:?} before {before:?}, floor {floor}");
    }

    async fn sweep(&mut self) {
        let limit = self.random.random_range(1..30);
        self.backend().sweep(limit).await.expect("sweep");
        self.backend().reclaim().await.expect("reclaim");
    }

    async fn sweep_all(&mut self) {
        self.model.clock = give_up(&*self.backend(), self.model.clock.revision).await;
        while self.backend().sweep(100).await.expect("sweep").changes == 100 {}
        let live = self.model.newest().len() as i64;
        assert_eq!(self.database.rows(Table::Objects).await, live);
        assert_eq!(self.database.rows(Table::Changes).await, 0);
    }

    async fn advance(&mut self) {
        let floor = Revision(self.model.clock.revision.0 + self.random.random_range(0..5));
        if floor > self.model.clock.revision {
            let state = self.model.newest().clone();
            self.model.states.insert(floor, state);
            self.model.clock = Clock { revision: floor, compacted: floor, ..self.model.clock };
            self.model.floors.values_mut().for_each(|of_resource| *of_resource = floor);
        }
        assert_eq!(self.backend().advance_clock(floor).await.expect("advance"), self.model.clock);
    }

    async fn reopen(&mut self) {
        // The old one goes first: a SQLite file has one owner.
        let old = self.backend.take().expect("open");
        old.close().await;
        drop(old);
        self.backend = Some(self.database.open().await);
    }

    /// Mostly readable, sometimes compacted or in the future.
    fn revision(&mut self) -> Revision {
        let Clock { revision, compacted, .. } = self.model.clock;
        let low = compacted.0.saturating_sub(5).max(1);
        Revision(self.random.random_range(low..revision.0 + 2))
    }

    fn resource(&mut self) -> ResourceId {
        self.resources[self.random.random_range(0..self.resources.len())]
    }

    fn scan(&mut self) -> Scan {
        let namespace = self.random.random_bool(0.5).then(|| pick(&mut self.random, &NAMESPACES));
        let after = self.random.random_bool(0.5).then(|| {
            let within = namespace.unwrap_or(pick(&mut self.random, &NAMESPACES));
            (within.into(), pick(&mut self.random, &NAMES).into())
        });
        let limit = self.random.random_bool(0.5).then(|| self.random.random_range(1..8));
        Scan { resource: self.resource(), namespace: namespace.map(Box::from), after, limit }
    }
}

impl Model {
    fn newest(&self) -> &State {
        self.states.last_key_value().expect("a first state").1
    }

    /// The rules once more, one mutation at a time; what is joined is taken back if not all of it passes.
    fn commit(&mut self, batch: &Units) -> (Revision, Vec<Outcome>) {
        let base = self.clock.revision;
        let mut outcomes = Vec::new();
        for places in batch.places() {
            let Clock { revision: before, lag, .. } = self.clock;
            let passed: Vec<Outcome> = batch[places].iter().map(|mutation| self.write(mutation)).collect();
            let is_committed = |outcome: &Outcome| matches!(outcome, Outcome::Committed(_));
            if passed.iter().all(is_committed) {
                outcomes.extend(passed);
                continue;
            }
            outcomes.extend(passed.into_iter().map(|outcome| match is_committed(&outcome) {
                true => Outcome::Apart,
                false => outcome,
            }));
            (self.clock.revision, self.clock.lag) = (before, lag);
            self.states.split_off(&Revision(before.0 + 1));
            self.changes.split_off(&Revision(before.0 + 1));
        }
        (base, outcomes)
    }

    fn write(&mut self, mutation: &Mutation) -> Outcome {
        let mut state = self.newest().clone();
        let previous = state.get(&place(&mutation.key)).cloned();
        let found = previous.as_ref().map(|(version, _)| *version);
        let passes = match mutation.expect {
            Expect::Absent => found.is_none(),
            Expect::At(version) => found == Some(version),
        };
        if mutation.decided_at.is_some_and(|decided_at| decided_at < self.clock.compacted) {
            return Outcome::Outdated;
        }
        if !passes {
            return Outcome::Conflict { found };
        }
        for (requirement, Requirement { key, expect }) in mutation.requires.iter().enumerate() {
            let found = state.get(&place(key)).map(|(version, _)| *version);
            let holds = match expect {
                Expect::Absent => found.is_none(),
                Expect::At(version) => found == Some(*version),
            };
            if !holds {
                return Outcome::Unmet { requirement, found };
            }
        }
        if mutation.unchanged.iter().any(|range| self.has_changed(range)) {
            return Outcome::RangeChanged;
        }
        let revision = Revision(self.clock.revision.0 + 1);
        let counting = mutation.counting;
        let (kind, value) = match mutation.change.settled() {
            Change::Put { value, uid, .. } => {
                let stamp = self.clock.etcd_revision() + i64::from(counting != Counting::None);
                let stored = match &**uid {
                    STAMPED => Bytes::from([&stamp.to_be_bytes()[..], value.bytes()].concat()),
                    _ => value.bytes().clone(),
                };
                state.insert(place(&mutation.key), (revision, stored.clone()));
                let kind = if found.is_some() { ChangeKind::Modified } else { ChangeKind::Added };
                (kind, Some(stored))
            }
            Change::Delete | Change::Count(_) => {
                state.remove(&place(&mutation.key));
                (ChangeKind::Deleted, None)
            }
        };
        self.clock.revision = revision;
        self.clock.lag += i64::from(counting != Counting::Own);
        self.states.insert(revision, state);
        let change = ModelChange { key: mutation.key.clone(), kind, value, previous, counting };
        self.changes.insert(revision, change);
        Outcome::Committed(revision)
    }

    fn has_changed(&self, range: &UnchangedRange) -> bool {
        let within = |change: &ModelChange| {
            let (key, name) = (&change.key, &*change.key.name);
            key.resource == range.resource
                && name >= &*range.start
                && range.stop.as_deref().is_none_or(|stop| name < stop)
        };
        let since = self.changes.range(Revision(range.since.0 + 1)..);
        range.since < self.clock.compacted || since.map(|(_, change)| change).any(within)
    }

    fn counting(&self, at: Revision) -> Counting {
        self.changes.get(&at).map_or(Counting::Own, |change| change.counting)
    }

    fn lag_at(&self, at: Revision) -> i64 {
        self.changes.range(..=at).filter(|(_, change)| change.counting != Counting::Own).count() as i64
    }

    fn list(&self, scan: &Scan, at: Revision) -> Result<Vec<Item>, Error> {
        self.clock.check(at)?;
        Ok(self.items(scan, at))
    }

    fn items(&self, scan: &Scan, at: Revision) -> Vec<Item> {
        let (_, state) = self.states.range(..=at).next_back().expect("a state");
        let after = scan.after.as_ref().map(|(namespace, name)| (&**namespace, &**name));
        let items = state
            .iter()
            .filter(|((resource, ..), _)| *resource == scan.resource)
            .filter(|((_, namespace, _), _)| scan.namespace.as_deref().is_none_or(|only| only == namespace))
            .filter(|((_, namespace, name), _)| after.is_none_or(|after| (&**namespace, &**name) > after))
            .map(|((_, namespace, name), (version, value))| {
                (namespace.clone(), name.clone(), version.0, value.clone())
            });
        items.take(scan.limit.map_or(usize::MAX, |limit| limit as usize)).collect()
    }
}

fn place(key: &Key) -> (ResourceId, String, String) {
    (key.resource, key.namespace.to_string(), key.name.to_string())
}

fn pick<'a>(random: &mut StdRng, from: &[&'a str]) -> &'a str {
    from[random.random_range(0..from.len())]
}

/// Errors are compared by their text, which holds their numbers.
fn assert_same<T: PartialEq + std::fmt::Debug>(
    found: &Result<T, Error>,
    expected: &Result<T, Error>,
    what: &str,
) {
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}"),
        (Err(found), Err(expected)) => assert_eq!(found.to_string(), expected.to_string(), "{what}"),
        _ => panic!("{what}: {found:?}, expected {expected:?}"),
    }
}
