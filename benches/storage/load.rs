//! Writers that wait for their own commits, and their measurements.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rowplane::codec::object::Draft;
use rowplane::runtime::Runtime;
use rowplane::schema::names::GroupResource;
use rowplane::storage::{Backend, Change, Expect, HighWaterMark, Key, Mutation, ResourceId, Store, Written};

/// The number of keys of one writer. They are created first, then updated in turn.
const KEYS: usize = 1000;

/// The result of one load.
pub struct Measured {
    pub writers: usize,
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Measured {
    pub fn new(writers: usize, mut latencies: Vec<Duration>, elapsed: Duration) -> Self {
        latencies.sort_unstable();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let per_second = latencies.len() as f64 / elapsed.as_secs_f64();
        Self { writers, per_second, p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// Loads a store that several servers have open: each has a share of the writers.
pub async fn through_stores(servers: &[Arc<dyn Backend>], writers: usize, duration: Duration) -> Measured {
    let group = GroupResource::new("bench", &format!("load-{writers}"));
    let resource = servers[0].resource_ids(&[group]).await.expect("an id")[0];
    let store = |backend: &Arc<dyn Backend>| {
        let mark = HighWaterMark::load(std::env::temp_dir().join("rowplane-bench-mark"));
        Store::start(backend.clone(), None, Arc::new(mark), &Runtime::default())
    };
    let stores: Vec<Store> = servers.iter().map(store).collect();
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers)
        .zip(stores.iter().cycle())
        .map(|(writer, store)| tokio::spawn(write_until(store.clone(), resource, writer, start + duration)))
        .collect();
    let mut latencies = Vec::new();
    for task in tasks {
        latencies.extend(task.await.expect("a writer"));
    }
    Measured::new(writers, latencies, start.elapsed())
}

async fn write_until(store: Store, resource: ResourceId, writer: usize, end: Instant) -> Vec<Duration> {
    let keys: Vec<Key> =
        (0..KEYS).map(|n| Key::new(resource, "ns", &format!("{writer:03}-{n:04}"))).collect();
    let mut versions = vec![Expect::Absent; KEYS];
    let mut latencies = Vec::new();
    for n in (0..KEYS).cycle() {
        let draft = Draft::of_json("ns", &keys[n].name, value());
        let change = Change::Put { uid: "uid".into(), stored_version: "v1".into(), value: draft.into() };
        let mutation = Mutation::new(keys[n].clone(), versions[n], change);
        let started = Instant::now();
        if started > end {
            break;
        }
        match store.write(mutation).await.expect("write") {
            Written::Committed { revision, .. } => versions[n] = Expect::At(revision),
            lost => panic!("a key of its own: {lost:?}"),
        }
        latencies.push(started.elapsed());
    }
    latencies
}

/// 2 KB of JSON, about as repetitive as a small Pod.
pub fn value() -> Bytes {
    let mut text = String::with_capacity(2100);
    text.push_str(
        r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"ns","uid":"u"},"spec":{"#,
    );
    for n in 0..26 {
        let id: u64 = rand::random();
        text.push_str(&format!(r#""field-{n:02}":{{"name":"volume-mount","value":"{id:016x}-token"}},"#));
    }
    text.push_str(r#""last":true}}"#);
    text.into()
}
