use std::io;
use std::sync::{Arc, mpsc};

use bytes::Bytes;

use super::log::Flush;
use super::*;
use crate::codec::object::Draft;
use crate::storage::{Change, Expect, Key, Mutation, Outcome};

/// The log of a disk that obeys the test.
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
    store.desk.replace_log(Box::new(Disk { begun, verdicts: std::sync::Mutex::new(verdicts) })).await;
    Obedient { _directory: directory, store, begins, decide }
}

fn create(name: &str) -> [Mutation; 1] {
    let draft = Draft::of_json("ns", name, Bytes::from_static(br#"{"metadata":{}}"#));
    let change = Change::Put { uid: name.into(), stored_version: "v1".into(), draft };
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

#[tokio::test]
async fn after_a_failed_sync_the_next_write_saves_everything_first() {
    let Obedient { store, begins: _begins, decide, _directory } = obedient().await;
    let before = store.clock().await.expect("readable").revision;
    decide.send(Err(io::Error::other("bad block"))).expect("open");
    let failed = store.commit(&create("a"), Revision(0)).await;
    assert!(matches!(failed, Err(Error::Unknown(_))), "{failed:?}");
    assert_eq!(store.clock().await.expect("readable").revision, before);
    // On a new connection with a log of its own, once what was committed has been folded into the file.
    let commit = store.commit(&create("b"), Revision(0)).await.expect("committed");
    assert_eq!(commit.outcomes, [Outcome::Committed(Revision(before.0 + 2))]);
    assert_eq!(store.changes(before, None, 10).await.expect("readable").rows.len(), 2);
}
