//! Forks of a state in memory: random work on two of them beside a model of each.
//!
//! A failure prints the seed; `ROWPLANE_TEST_SEED=… ./test --test storage forks` repeats the run.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use rowplane::cache::{Objects, State};
use rowplane::codec::object::Draft;
use rowplane::revision::Revision;
use rowplane::storage::memory::Memory;
use rowplane::storage::{
    Backend, ChangeKind, Error, Expect, History as _, Key, Outcome, Reads as _, ResourceId, Scan, Upkeep as _,
};
use rowplane::wall_clock::WallClock;

use crate::support::object::{delete, put};

const RESOURCE: ResourceId = ResourceId(7);
const NAMESPACES: [&str; 4] = ["", "a", "a-b", "b"];
const NAMES: [&str; 5] = ["x", "x-y", "x.y", "xy", "y"];
const BASE: u64 = 1000;
const STEPS: usize = 600;

/// The live revisions by namespace and name.
type Model = BTreeMap<(String, String), u64>;

/// A base in which every other key has an object.
fn base() -> (State, Model) {
    let (mut model, mut objects) = (Model::new(), Vec::new());
    for (index, namespace) in NAMESPACES.into_iter().enumerate() {
        for (place, name) in NAMES.into_iter().enumerate().filter(|(place, _)| (index + place) % 2 == 0) {
            let revision = (index * 10 + place + 1) as u64;
            let json = format!(r#"{{"kind":"A","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#);
            let object = Draft::of_json(namespace, name, json.into()).into_object(Revision(revision));
            objects.push(Arc::new(object));
            model.insert((namespace.to_owned(), name.to_owned()), revision);
        }
    }
    let mut state = State::at(Revision(BASE));
    state.load(RESOURCE, Objects::of_sorted(objects.into_iter()));
    (state, model)
}

fn fork(state: &State, most_bytes: u64) -> Memory {
    Memory::fork(Arc::new(state.clone()), HashMap::new(), most_bytes, WallClock::default())
}

struct Fork {
    store: Memory,
    newest: u64,
    model: Model,
}

impl Fork {
    async fn step(&mut self, random: &mut StdRng) {
        let namespace = NAMESPACES[random.random_range(0..NAMESPACES.len())];
        let name = NAMES[random.random_range(0..NAMES.len())];
        let (key, place) = (Key::new(RESOURCE, namespace, name), (namespace.to_owned(), name.to_owned()));
        let found = self.model.get(&place).copied();
        // Now and then somebody expects what is not so.
        let expected = if random.random_ratio(1, 5) { Some(999) } else { found };
        let deletes = random.random_bool(0.4) && expected.is_some();
        let mutation = match (deletes, expected) {
            (true, Some(at)) => delete(&key, Revision(at)),
            (_, None) => put(&key, Expect::Absent, self.newest),
            (_, Some(at)) => put(&key, Expect::At(Revision(at)), self.newest),
        };
        let commit = rowplane::storage::Commits::commit(&self.store, &[mutation], Revision(0))
            .await
            .expect("a commit");
        if expected != found {
            assert_eq!(commit.outcomes, [Outcome::Conflict { found: found.map(Revision) }]);
            return;
        }
        self.newest += 1;
        assert_eq!(commit.outcomes, [Outcome::Committed(Revision(self.newest))]);
        match deletes {
            true => self.model.remove(&place),
            false => self.model.insert(place, self.newest),
        };
        let changes =
            rowplane::storage::Feed::changes(&self.store, Revision(self.newest - 1), Some(RESOURCE), 9);
        let changes = changes.await.expect("changes").rows;
        let [change] = &*changes else { panic!("one change: {changes:?}") };
        assert_eq!(change.previous.as_ref().map(|(revision, _)| revision.0), found);
        assert_eq!(change.kind == ChangeKind::Deleted, deletes);
    }

    async fn check(&self) {
        let at = Revision(self.newest);
        let rows = self.store.scan(Scan::all(RESOURCE), at).await.expect("a scan");
        let rows: Vec<_> = rows.try_collect().await.expect("rows");
        let read: Model = rows
            .iter()
            .map(|row| ((row.namespace.to_string(), row.name.to_string()), row.revision.0))
            .collect();
        assert_eq!(read, self.model);
        assert!(rows.is_sorted_by_key(|row| (row.namespace.clone(), row.name.clone())));
        let live = self.store.live_revisions(&[RESOURCE], at).await.expect("revisions").remove(0);
        assert_eq!(live, rows.iter().map(|row| row.revision).collect::<Vec<_>>());
        let blocks = self.store.rows_of(live.clone()).await.expect("rows");
        let mut found: Vec<Revision> = blocks
            .map(|block| block.expect("a block"))
            .collect::<Vec<_>>()
            .await
            .concat()
            .iter()
            .map(|row| row.revision)
            .collect();
        let mut wanted = live;
        found.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(found, wanted);
        for namespace in NAMESPACES {
            let after = Some((namespace.into(), "x-y".into()));
            let scan = Scan { namespace: Some(namespace.into()), after, limit: Some(2), resource: RESOURCE };
            let rows = self.store.scan(scan, at).await.expect("a scan");
            let names: Vec<_> = rows.map(|row| row.expect("a row").name.to_string()).collect().await;
            let of_namespace = self.model.keys().filter(|(of, name)| of == namespace && &**name > "x-y");
            assert_eq!(names, of_namespace.take(2).map(|(_, name)| name.clone()).collect::<Vec<_>>());
        }
    }
}

#[tokio::test]
async fn forks_behave_like_their_models_and_leave_their_base_alone() {
    let seed = std::env::var("ROWPLANE_TEST_SEED")
        .map_or_else(|_| rand::random(), |seed| seed.parse().expect("a number"));
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let (state, model) = base();
    let mut forks =
        [(); 2].map(|()| Fork { store: fork(&state, u64::MAX), newest: BASE, model: model.clone() });
    for _ in 0..STEPS {
        let one = random.random_range(0..2);
        forks[one].step(&mut random).await;
        if random.random_ratio(1, 20) {
            let fork = &forks[one];
            // Swept rows do not bring those of the base back.
            fork.store.compact(Revision(fork.newest)).await.expect("compacted");
            fork.store.raise_floors(Revision(fork.newest), &[]).await.expect("raised");
            fork.store.sweep(u32::MAX).await.expect("swept");
        }
        for fork in &forks {
            fork.check().await;
        }
    }
    Fork { store: fork(&state, 0), newest: BASE, model }.check().await;
}

#[tokio::test]
async fn no_state_before_the_base_can_be_read() {
    let store = fork(&base().0, u64::MAX);
    let early = store.scan(Scan::all(RESOURCE), Revision(BASE - 1)).await.err();
    assert!(matches!(early, Some(Error::Compacted { oldest: Revision(BASE) })), "{early:?}");
}

#[tokio::test]
async fn a_full_fork_takes_deletions_alone() {
    let store: Arc<dyn Backend> = Arc::new(fork(&base().0, 100));
    let key = |name: &str| Key::new(RESOURCE, "new", name);
    let mut n = 0;
    let full = loop {
        let name = format!("n{n}");
        match store.commit(&[put(&key(&name), Expect::Absent, 1)], Revision(0)).await {
            Ok(_) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Full(100)) && n > 0, "{full} {n}");
    let deleted =
        store.commit(&[delete(&key("n0"), Revision(BASE + 1))], Revision(0)).await.expect("a commit");
    assert!(matches!(deleted.outcomes[..], [Outcome::Committed(_)]));
}
