use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use sqlx::Connection as _;

use super::log::Flush;
use super::write_connection::on_its_thread;
use super::*;
use crate::metrics::Metrics;
use crate::scheduling;
use crate::storage::Feed as _;
use crate::storage::commit::LARGEST_BATCH;
use crate::storage::compactor::compact_once;
use crate::storage::{Change, Expect, Key, Mutation, Outcome};

/// A log file whose syncs end as the test decides.
struct Disk {
    begun: mpsc::Sender<()>,
    verdicts: std::sync::Mutex<mpsc::Receiver<io::Result<()>>>,
}

impl Flush for Disk {
    fn flush(&self) -> io::Result<()> {
        let _ = self.begun.send(());
        self.verdicts.lock().expect("one at a time").recv().expect("the test decides")
    }
}

struct Obedient {
    _directory: tempfile::TempDir,
    store: Arc<Sqlite>,
    begins: mpsc::Receiver<()>,
    decide: mpsc::Sender<io::Result<()>>,
}

async fn obedient() -> Obedient {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Arc::new(Sqlite::open(&directory.path().join("state.db")).await.expect("open"));
    store.resource_ids(&[GroupResource::new("", "configmaps")]).await.expect("an id");
    let (begun, begins) = mpsc::channel();
    let (decide, verdicts) = mpsc::channel();
    store.writer.replace_log(Arc::new(Disk { begun, verdicts: std::sync::Mutex::new(verdicts) })).await;
    Obedient { _directory: directory, store, begins, decide }
}

fn create(name: &str) -> [Mutation; 1] {
    let value = Bytes::from_static(br#"{"metadata":{}}"#).into();
    let change = Change::Put { uid: name.into(), stored_version: "v1".into(), value };
    [Mutation::new(Key::new(ResourceId(1), "ns", name), Expect::Absent, change)]
}

#[tokio::test]
async fn a_commit_is_answered_and_shown_only_when_it_is_on_the_disk() {
    let Obedient { store, begins, decide, _directory } = obedient().await;
    let before = store.clock().await.expect("readable").revision;
    let writer = store.clone();
    let writing = tokio::spawn(async move { writer.commit(&create("a"), Revision(0)).await });
    tokio::task::spawn_blocking(move || begins.recv()).await.expect("ran").expect("a sync begins");
    assert!(!writing.is_finished());
    assert_eq!(store.clock().await.expect("readable").revision, before);
    let feed = store.changes(before, None, 10).await.expect("readable");
    assert!(feed.rows.is_empty() && feed.through == before);
    let next = Revision(before.0 + 1);
    assert!(matches!(store.count(&Scan::all(ResourceId(1)), next).await, Err(Error::Future { .. })));
    assert!(matches!(store.scan(Scan::all(ResourceId(1)), next).await, Err(Error::Future { .. })));
    decide.send(Ok(())).expect("waited for");
    let commit = writing.await.expect("ran").expect("committed");
    assert_eq!(commit.outcomes, [Outcome::Committed(next)]);
    assert_eq!(store.clock().await.expect("readable").revision, next);
    assert_eq!(store.changes(before, None, 10).await.expect("readable").rows.len(), 1);
}

/// How many ConfigMaps the database file contains without its log.
async fn configmaps_in_the_file_alone(path: &Path) -> i64 {
    let directory = tempfile::tempdir().expect("a directory");
    let copy = directory.path().join("copy.db");
    std::fs::copy(path, &copy).expect("copy");
    let mut connection = SqliteConnectOptions::new().filename(copy).connect().await.expect("open");
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM objects WHERE resource = 1");
    // In a young store the schema itself is still in the log.
    count.fetch_one(&mut connection).await.unwrap_or(0)
}

#[tokio::test]
async fn after_a_failed_sync_nothing_is_shown_or_built_upon() {
    let Obedient { store, begins, decide, _directory: directory } = obedient().await;
    let before = store.clock().await.expect("readable").revision;
    decide.send(Err(io::Error::other("bad block"))).expect("open");
    // A second sync would succeed, which proves nothing.
    decide.send(Ok(())).expect("open");
    let failed = store.commit(&create("a"), Revision(0)).await;
    assert!(matches!(failed, Err(Error::Unknown(_))), "{failed:?}");
    assert_eq!(&*store.broken().await, "the log could not be synced: bad block");
    let refused = store.commit(&create("b"), Revision(0)).await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    assert!(matches!(store.sweep(1).await, Err(Error::Broken(_))));
    assert!(matches!(store.reclaim().await, Err(Error::Broken(_))));
    assert_eq!(store.clock().await.expect("readable").revision, before);
    assert_eq!(begins.try_iter().count(), 1, "the disk is not asked again");

    // The log is left for the next start.
    let path = directory.path().join("state.db");
    store.close().await;
    drop(store);
    assert!(std::fs::metadata(path.with_extension("db-wal")).expect("a log").len() > 0);
    assert_eq!(configmaps_in_the_file_alone(&path).await, 0);
    let store = Sqlite::open(&path).await.expect("open");
    assert_eq!(store.clock().await.expect("readable").revision, Revision(before.0 + 1));
    assert_eq!(configmaps_in_the_file_alone(&path).await, 1, "what is shown has been folded first");
}

/// After a cancelled or failed call, nobody has synced its commit.
#[tokio::test]
async fn a_commit_that_nobody_noted_is_synced_by_the_descriptor_that_was_there() {
    let Obedient { store, begins: _begins, decide, _directory } = obedient().await;
    let mut turn = store.writer.turn().await.expect("a turn");
    let changed = sqlx::query("UPDATE clock SET compacted = 1").execute(&mut turn.connection).await;
    changed.expect("committed");
    drop(turn);
    decide.send(Err(io::Error::other("bad block"))).expect("open");
    decide.send(Ok(())).expect("open");
    let refused = store.commit(&create("a"), Revision(0)).await;
    assert!(matches!(refused, Err(Error::Broken(_))), "{refused:?}");
    assert_eq!(&*store.broken().await, "the log could not be synced: bad block");
}

/// Commits wait for this thread, also beside threads that compute.
#[tokio::test]
async fn the_thread_that_writes_runs_soon_also_after_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Sqlite::open(&directory.path().join("state.db")).await.expect("open");
    for _ in 0..2 {
        let mut turn = store.writer.turn().await.expect("a turn");
        let (answer, answered) = mpsc::channel();
        let ask = move || answer.send(scheduling::runs_soon()).expect("heard");
        on_its_thread(&mut turn.connection, ask).await.expect("asked");
        assert!(answered.recv().expect("called"));
        // A turn that is not given back ends its connection, and the next one has another thread.
        drop(turn);
    }
}

/// After an error that is not a failed sync nothing was written, and the next write succeeds.
#[tokio::test]
async fn a_turn_that_is_lost_costs_nothing_else() {
    let Obedient { store, begins: _begins, decide, _directory } = obedient().await;
    let before = store.clock().await.expect("readable").revision;
    let mut turn = store.writer.turn().await.expect("a turn");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut turn.connection).await.expect("begun");
    sqlx::query("UPDATE clock SET revision = 99").execute(&mut turn.connection).await.expect("updated");
    drop(turn);
    for _ in 0..2 {
        decide.send(Ok(())).expect("open");
    }
    let commit = store.commit(&create("a"), Revision(0)).await.expect("committed");
    assert_eq!(commit.outcomes, [Outcome::Committed(Revision(before.0 + 1))]);
}

#[tokio::test]
async fn what_an_earlier_process_left_is_folded_before_it_is_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let (path, crashed) = (directory.path().join("state.db"), directory.path().join("crashed.db"));
    let store = Sqlite::open(&path).await.expect("open");
    store.resource_ids(&[GroupResource::new("", "configmaps")]).await.expect("an id");
    for name in ["a", "b"] {
        store.commit(&create(name), Revision(0)).await.expect("committed");
    }
    for (from, to) in [("db", "db"), ("db-wal", "db-wal")] {
        std::fs::copy(path.with_extension(from), crashed.with_extension(to)).expect("copy");
    }
    let revision = store.clock().await.expect("readable").revision;
    // A reader of the state before the last commit prevents the checkpoint from moving everything.
    let options = SqliteConnectOptions::new().filename(&crashed);
    let mut reader = options.connect().await.expect("open");
    let mut reading = reader.begin().await.expect("begun");
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM objects").fetch_one(&mut *reading).await.expect("readable");
    assert_eq!(count, 2);
    let mut other = options.connect().await.expect("open");
    sqlx::query("UPDATE clock SET compacted = 1").execute(&mut other).await.expect("committed");
    let opening = tokio::spawn({
        let crashed = crashed.clone();
        async move { Sqlite::open(&crashed).await.expect("open") }
    });
    for _ in 0..1000 {
        tokio::task::yield_now().await;
        assert!(!opening.is_finished());
    }
    reading.rollback().await.expect("an end");
    let again = opening.await.expect("ran");
    assert_eq!(again.clock().await.expect("readable").revision, revision);
    assert_eq!(configmaps_in_the_file_alone(&crashed).await, 2);
    assert_eq!(std::fs::metadata(crashed.with_extension("db-wal")).expect("a log").len(), 0);
}

/// A log file that counts its syncs.
struct Counting(Arc<AtomicUsize>);

impl Flush for Counting {
    fn flush(&self) -> io::Result<()> {
        self.0.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

fn update(name: &str, expect: Expect, size: usize) -> Mutation {
    let value = format!(r#"{{"metadata":{{}},"data":"{}"}}"#, "x".repeat(size));
    let change =
        Change::Put { uid: "u".into(), stored_version: "v1".into(), value: Bytes::from(value).into() };
    Mutation::new(Key::new(ResourceId(1), "ns", name), expect, change)
}

/// Writes the same 256 objects `rounds` times. Returns the clock at the end.
async fn churn(store: &Sqlite, rounds: usize, size: usize) -> Revision {
    let names: Vec<String> = (0..LARGEST_BATCH).map(|n| n.to_string()).collect();
    let mut versions = vec![Expect::Absent; names.len()];
    for _ in 0..rounds {
        let batch: Vec<_> =
            names.iter().zip(&versions).map(|(name, expect)| update(name, *expect, size)).collect();
        let commit = store.commit(&batch, Revision(0)).await.expect("committed");
        versions = commit
            .outcomes
            .iter()
            .map(|outcome| match outcome {
                Outcome::Committed(revision) => Expect::At(*revision),
                lost => panic!("nobody else writes: {lost:?}"),
            })
            .collect();
    }
    store.clock().await.expect("readable").revision
}

async fn counting() -> (tempfile::TempDir, Sqlite, Arc<AtomicUsize>) {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Sqlite::open(&directory.path().join("state.db")).await.expect("open");
    store.resource_ids(&[GroupResource::new("", "configmaps")]).await.expect("an id");
    let syncs = Arc::new(AtomicUsize::new(0));
    store.writer.replace_log(Arc::new(Counting(syncs.clone()))).await;
    (directory, store, syncs)
}

/// With 500 changes a slice and a sync for each, there would be more than 50 syncs.
#[tokio::test]
async fn a_pass_of_compaction_through_25000_changes_waits_for_the_disk_a_few_times() {
    let (_directory, store, syncs) = counting().await;
    let end = churn(&store, 98, 100).await;
    assert!(end.0 > 25_000);
    syncs.store(0, Ordering::Release);
    compact_once(&store, Some(end), None, &Metrics::default()).await.expect("compacted");
    assert_eq!(store.oldest_change().await.expect("readable"), None, "nothing is left");
    let syncs = syncs.load(Ordering::Acquire);
    assert!(syncs <= 2, "{syncs} syncs");
}

/// 80 MB of writes go through a log of 8 MB.
#[tokio::test]
async fn the_log_is_bounded_under_load() {
    let (directory, store, _syncs) = counting().await;
    let log = directory.path().join("state.db-wal");
    churn(&store, 80, 4000).await;
    let len = std::fs::metadata(&log).expect("a log").len();
    assert!(len < 20 << 20, "{len} bytes");
    // A long read makes the log longer, but only for a while.
    let scan = store.scan(Scan::all(ResourceId(1)), store.clock().await.expect("readable").revision);
    let scan = scan.await.expect("a scan");
    churn_more(&store, 40).await;
    drop(scan);
    churn_more(&store, 40).await;
    let frames = {
        let mut turn = store.writer.turn().await.expect("a turn");
        let frames = checkpoint::frames(&mut turn.connection).await.expect("frames");
        turn.done(None, frames).flush().await.expect("synced");
        frames
    };
    assert!(frames < 2500, "{frames} frames");
}

/// The writer that comes next does not wait for a checkpoint.
#[tokio::test]
async fn a_checkpoint_is_made_while_nobody_writes() {
    let (directory, store, _syncs) = counting().await;
    for _ in 0..16 {
        churn_more(&store, 1).await;
        assert!(!store.writer.is_fold_due().await);
    }
    assert!(configmaps_in_the_file_alone(&directory.path().join("state.db")).await > 0);
}

async fn churn_more(store: &Sqlite, rounds: usize) {
    for _ in 0..rounds {
        let batch: Vec<_> = (0..LARGEST_BATCH)
            .map(|n| update(&format!("{n}-{}", rand::random::<u64>()), Expect::Absent, 4000))
            .collect();
        store.commit(&batch, Revision(0)).await.expect("committed");
    }
}
