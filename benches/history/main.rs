//! Thirty days of a cluster of 100 nodes in one SQLite file: what they take, and how quickly the past is read.
//!
//!     cargo bench --bench history -- [--versions N] [--seed N] [--dir DIR]
//!
//! A generator with a clock of its own writes two versions a second: heartbeats of Nodes (10 KB), Pods that come, change
//! and go (5 KB), Deployments (4 KB). Every simulated hour compaction does its work. Values are JSON, as those of custom
//! resources are stored; messages are shorter. Figures are of the storage layer alone.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use bytes::Bytes;
use clap::Parser;
use futures_util::TryStreamExt as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use rowplane::revision::Revision;
use rowplane::scheduling::Scheduling;
use rowplane::schema::names::GroupResource;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{
    Change, Commits as _, Expect, History as _, Key, Mutation, Outcome, Reads as _, Registry as _,
    ResourceId, Scan, Upkeep as _,
};
use rowplane::wall_clock::WallClock;

const VERSIONS_A_SECOND: u64 = 2;
const HOUR_MS: i64 = 3_600_000;
const BATCH: usize = 32;

#[derive(Parser)]
struct Arguments {
    /// How many versions are written: 5,184,000 are 30 days.
    #[arg(long, default_value_t = 5_184_000)]
    versions: u64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The directory of the file, which stays; a temporary one by default.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// An object of the generator.
struct Live {
    key: Key,
    at: Option<Revision>,
    /// The number of versions that it has had.
    versions: u32,
}

struct Cluster {
    store: Sqlite,
    random: StdRng,
    begun_ms: i64,
    now_ms: Arc<AtomicI64>,
    kinds: [ResourceId; 3],
    objects: Vec<Live>,
    /// The places of objects that have not been written yet.
    unborn: Vec<usize>,
    next_pod: u64,
}

const NODES: usize = 100;
const DEPLOYMENTS: usize = 300;
const PODS: usize = 3000;

#[tokio::main]
async fn main() {
    let arguments = Arguments::parse();
    let kept = arguments.dir.clone();
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = kept.unwrap_or_else(|| temporary.path().to_owned());
    // The database itself is made now, and no commit is older.
    let begun_ms = WallClock::default().millis() + 1000;
    let now_ms = Arc::new(AtomicI64::new(begun_ms));
    let told = now_ms.clone();
    let clock =
        WallClock::new(move || UNIX_EPOCH + Duration::from_millis(told.load(Ordering::Acquire) as u64));
    let path = directory.join("history.db");
    let store = Sqlite::open_beside(&path, Scheduling::default(), clock).await.expect("a store");
    let names = [("", "nodes"), ("apps", "deployments"), ("", "pods")];
    let names = names.map(|(group, plural)| GroupResource::new(group, plural));
    let ids = store.resource_ids(&names).await.expect("ids");
    let mut cluster = Cluster {
        store,
        random: StdRng::seed_from_u64(arguments.seed),
        begun_ms,
        now_ms,
        kinds: [ids[0], ids[1], ids[2]],
        objects: Vec::new(),
        unborn: Vec::new(),
        next_pod: 0,
    };
    let begun = Instant::now();
    cluster.write(arguments.versions).await;
    println!("{} versions written in {:.0?}, seed {}", arguments.versions, begun.elapsed(), arguments.seed);
    cluster.measure(arguments.versions).await;
}

impl Cluster {
    async fn write(&mut self, versions: u64) {
        for n in 0..NODES {
            self.add(0, "", &format!("node-{n}"));
        }
        for n in 0..DEPLOYMENTS {
            self.add(1, &format!("team-{}", n % 20), &format!("app-{n}"));
        }
        for _ in 0..PODS {
            self.add_pod();
        }
        let (mut written, mut hour) = (0, self.begun_ms + HOUR_MS);
        while written < versions {
            written += self.batch().await;
            let now = self.begun_ms + (written * 1000 / VERSIONS_A_SECOND) as i64;
            self.now_ms.store(now, Ordering::Release);
            if now >= hour {
                hour += HOUR_MS;
                self.compact(now).await;
            }
        }
    }

    fn add(&mut self, kind: usize, namespace: &str, name: &str) {
        self.unborn.push(self.objects.len());
        self.objects.push(Live { key: Key::new(self.kinds[kind], namespace, name), at: None, versions: 0 });
    }

    fn add_pod(&mut self) {
        let app = self.next_pod as usize % DEPLOYMENTS;
        let (namespace, name) = (format!("team-{}", app % 20), format!("app-{app}-{:08x}", self.next_pod));
        self.next_pod += 1;
        self.add(2, &namespace, &name);
    }

    /// Writes of different objects in one commit. Returns their number.
    async fn batch(&mut self) -> u64 {
        let newborn = self.unborn.len().saturating_sub(BATCH);
        let mut places = self.unborn.split_off(newborn);
        while self.unborn.is_empty() && places.len() < BATCH {
            let place = match self.random.random_range(0..100) {
                0..17 => self.random.random_range(0..NODES),
                17..25 => NODES + self.random.random_range(0..DEPLOYMENTS),
                _ => NODES + DEPLOYMENTS + self.random.random_range(0..PODS),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        let mut gone = Vec::new();
        let mut batch = Vec::new();
        for place in &places {
            let object = &mut self.objects[*place];
            object.versions += 1;
            let expect = object.at.map_or(Expect::Absent, Expect::At);
            let is_pod = object.key.resource == self.kinds[2];
            // A Pod is pending, scheduled, running, ready, and sometimes restarted, before it goes.
            let change = match is_pod && object.versions > 6 && self.random.random_bool(0.3) {
                true => {
                    gone.push(*place);
                    Change::Delete
                }
                false => {
                    let value = match object.key.resource {
                        kind if kind == self.kinds[0] => node(&object.key, object.versions),
                        kind if kind == self.kinds[1] => deployment(&object.key, object.versions),
                        _ => pod(&object.key, object.versions),
                    };
                    let uid = format!("{:08x}-0000-4000-8000-{:012x}", place, object.key.name.len());
                    Change::Put { uid: uid.into(), stored_version: "v1".into(), value: value.into() }
                }
            };
            batch.push(Mutation::new(object.key.clone(), expect, change));
        }
        let commit = self.store.commit(&batch, Revision(0)).await.expect("a commit");
        for (place, outcome) in places.iter().zip(commit.outcomes) {
            let Outcome::Committed(revision) = outcome else { panic!("{outcome:?}") };
            self.objects[*place].at = Some(revision);
        }
        for place in gone {
            self.add_pod();
            let new = self.objects.pop().expect("a Pod");
            self.objects[place] = new;
            // Added as the last one, it is in its predecessor's place.
            self.unborn.pop();
            self.unborn.push(place);
        }
        batch.len() as u64
    }

    async fn compact(&self, now: i64) {
        let watched = self.store.moment_at(now - 300_000).await.expect("a moment").revision;
        self.store.compact(watched).await.expect("compacted");
        let Ok(settled) = self.store.moment_at(now - HOUR_MS).await else { return };
        while self.store.segment(settled.revision.min(watched)).await.expect("segments") {}
        self.store.thin().await.expect("thinned");
        self.store.reclaim().await.expect("reclaimed");
    }

    async fn measure(&mut self, count: u64) {
        let bytes = self.store.size().await.expect("a size").expect("a file");
        let each = bytes as f64 / count as f64;
        println!("{:.0} MB, {each:.0} bytes a version", bytes as f64 / 1e6);
        let now = self.now_ms.load(Ordering::Acquire);
        let mut times = Vec::new();
        for _ in 0..200 {
            times.push(self.random.random_range(self.begun_ms + HOUR_MS..now - 2 * HOUR_MS));
        }
        let mut revisions = Vec::new();
        let of_time = timed(&times, async |ms| {
            revisions.push(self.store.moment_at(*ms).await.expect("a moment").revision);
        });
        report("a time's revision", of_time.await);
        let node = Key::new(self.kinds[0], "", "node-7");
        let read = async |at: &Revision| {
            assert!(self.store.row_past(&node, *at).await.expect("a row").is_some());
        };
        report("GET of a Node in a segment", timed(&revisions, read).await);
        let recent = vec![self.store.clock().await.expect("a clock").revision; 200];
        report("GET of a Node in a row", timed(&recent, read).await);
        let pods = self.kinds[2];
        let list = async |at: &Revision| {
            let rows = self.store.scan_past(Scan::all(pods), *at).await.expect("rows");
            let rows: Vec<_> = rows.try_collect().await.expect("rows");
            // Those that are deleted and not yet made again are few.
            assert!(rows.len() > PODS * 9 / 10);
        };
        report("LIST of 3,000 Pods in segments", timed(&revisions[..10], list).await);
        report("LIST of 3,000 Pods in rows", timed(&recent[..10], list).await);
        let history = async |_: &Revision| {
            let versions = self.store.versions_of(&node, None, 1000).await.expect("versions");
            assert!(versions.len() == 1000 || count < 1_000_000, "{}", versions.len());
        };
        report("1,000 versions of a Node", timed(&recent[..10], history).await);
        let holdings = async |_: &Revision| drop(self.store.holdings().await.expect("holdings"));
        report("what each resource holds", timed(&recent[..5], holdings).await);
    }
}

async fn timed<T>(of: &[T], mut work: impl AsyncFnMut(&T)) -> Vec<Duration> {
    let mut took = Vec::new();
    for one in of {
        let begun = Instant::now();
        work(one).await;
        took.push(begun.elapsed());
    }
    took.sort_unstable();
    took
}

fn report(what: &str, took: Vec<Duration>) {
    let at = |share: usize| took[(took.len() - 1) * share / 100];
    println!("{what}: p50 {:.2?}, p99 {:.2?}", at(50), at(99));
}

/// Text of so many bytes that another object does not have.
fn own(key: &Key, bytes: usize) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    key.name.bytes().chain(key.namespace.bytes()).for_each(|byte| {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    });
    let mut random = StdRng::seed_from_u64(hash);
    (0..bytes / 16).map(|_| format!("{:016x}", random.random::<u64>())).collect()
}

fn moment(version: u32) -> String {
    format!(
        "2026-11-{:02}T{:02}:{:02}:{:02}Z",
        version / 86_400 % 30 + 1,
        version / 3600 % 24,
        version / 60 % 60,
        version % 60
    )
}

fn node(key: &Key, version: u32) -> Bytes {
    let images: Vec<String> = (0..50)
        .map(|n| {
            format!(
                r#"{{"names":["registry.example.com/team/image-{n}@sha256:{}"],"sizeBytes":{}}}"#,
                own(key, 64),
                n * 7_919_333
            )
        })
        .collect();
    let conditions: Vec<String> = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"]
        .map(|kind| format!(r#"{{"type":"{kind}","status":"False","lastHeartbeatTime":"{}","lastTransitionTime":"2026-11-01T00:00:00Z","reason":"KubeletHas{kind}"}}"#, moment(version * 300)))
        .into();
    format!(r#"{{"apiVersion":"v1","kind":"Node","metadata":{{"name":"{}","uid":"{}"}},"status":{{"conditions":[{}],"images":[{}]}}}}"#, key.name, own(key, 32), conditions.join(","), images.join(",")).into()
}

fn deployment(key: &Key, version: u32) -> Bytes {
    format!(r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"{}","namespace":"{}","annotations":{{"note":"{}"}}}},"spec":{{"replicas":{},"template":{{"image":"app:v1.{}","env":"{}"}}}},"status":{{"observedGeneration":{version},"updated":"{}"}}}}"#, key.name, key.namespace, own(key, 1200), version % 7, version / 9, own(key, 1800), moment(version * 977)).into()
}

fn pod(key: &Key, version: u32) -> Bytes {
    let phase = ["Pending", "Pending", "Running", "Running"].get(version as usize).unwrap_or(&"Running");
    format!(r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{}","namespace":"{}","labels":{{"app":"{}"}}}},"spec":{{"volumes":"{}","env":"{}","nodeName":"node-{}"}},"status":{{"phase":"{phase}","restarts":{},"since":"{}"}}}}"#, key.name, key.namespace, own(key, 48), own(key, 1200), own(key, 2400), key.name.len() % 100, version.saturating_sub(5), moment(version * 31)).into()
}
