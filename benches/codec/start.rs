//! A start with 10,000 Pods in the database, in either encoding.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use rowplane::cache::Cache;
use rowplane::codec::at_rest::StorageMediaType;
use rowplane::codec::object::{Draft, Object};
use rowplane::revision::Revision;
use rowplane::runtime::Runtime;
use rowplane::schema::names::GroupResource;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Backend, Change, Expect, HighWaterMark, Key, Mutation};

use crate::{counting, pod};

const PODS: usize = 10_000;
const BATCH: usize = 200;

pub fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!(
        "| {PODS} Pods of 5 KB | from bytes ms | a start on SQLite ms | file MB | in memory, KB a Pod |"
    );
    println!("| --- | ---: | ---: | ---: | ---: |");
    for media in [StorageMediaType::Json, StorageMediaType::Protobuf] {
        let drafts: Vec<Draft> = (0..PODS)
            .map(|n| {
                let name = format!("web-{n:05}");
                Draft::encode("default", &name, pod::pod(&name, 1), media).without_message()
            })
            .collect();
        let (parsed, kilobytes) = parse(&drafts);
        let (start, file) = runtime.block_on(start(drafts));
        println!("| {} | {parsed:.0} | {start:.0} | {file:.1} | {kilobytes:.2} |", media.as_str());
    }
}

/// Milliseconds to turn stored values into objects, and the bytes that one object takes.
fn parse(drafts: &[Draft]) -> (f64, f64) {
    let values: Vec<Bytes> = drafts.iter().map(|draft| draft.value().clone()).collect();
    let before = counting::held();
    let start = Instant::now();
    let objects: Vec<Object> = values
        .into_iter()
        .map(|value| Draft::parse("default", "web", value).into_object(Revision(7)))
        .collect();
    let elapsed = start.elapsed().as_secs_f64() * 1e3;
    (elapsed, (counting::held() - before) as f64 / 1024.0 / objects.len() as f64)
}

/// Milliseconds to load a cache, and megabytes of the database.
async fn start(drafts: Vec<Draft>) -> (f64, f64) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("pods.db");
    let backend: Arc<dyn Backend> = Arc::new(Sqlite::open(&path).await.expect("open"));
    let resource = backend.resource_ids(&[GroupResource::new("", "pods")]).await.expect("an id")[0];
    let mutations: Vec<Mutation> = drafts
        .into_iter()
        .enumerate()
        .map(|(n, draft)| {
            let key = Key::new(resource, "default", &format!("web-{n:05}"));
            let change = Change::Put { uid: "u".into(), stored_version: "v1".into(), value: draft.into() };
            Mutation::new(key, Expect::Absent, change)
        })
        .collect();
    for batch in mutations.chunks(BATCH) {
        backend.commit(batch, Revision(0)).await.expect("commit");
    }
    let mark = Arc::new(HighWaterMark::load(directory.path().join("mark")));
    let begin = Instant::now();
    let (cache, _sink) = Cache::start(
        backend.clone(),
        Draft::parse,
        &[resource],
        mark,
        &Runtime::default(),
        &Default::default(),
    )
    .await
    .expect("a cache");
    let elapsed = begin.elapsed().as_secs_f64() * 1e3;
    assert_eq!(cache.any().objects(resource).len(), PODS);
    backend.close().await;
    (elapsed, std::fs::metadata(path).expect("a file").len() as f64 / 1e6)
}
