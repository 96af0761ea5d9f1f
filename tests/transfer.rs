//! Backup, restore and migration: between databases of both kinds, beside running servers, and their refusals.

mod support;

use std::io::Write as _;
use std::path::{Path, PathBuf};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use rowplane::cli::keys::Keys;
use rowplane::cli::transfer::{Summary, backup, migrate, restore};
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::transfer::{Export, Length, Meter, Record, StoredObject};
use rowplane::storage::{Error, Key, Terms, Unit, Units, backup as format};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::database::Database;
use crate::support::object::{create, resource};
use crate::support::server::{ALL_CONFIGMAPS, CONFIGMAPS, Setup, TestServer, rv, token};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/widgets";
/// More objects than one statement inserts.
const OBJECTS: usize = 1100;

async fn fill(server: &TestServer) {
    // Concurrently, so that many share a commit, but not more than a server accepts at the same time.
    let create = async |n: usize| {
        server.create(&format!("c-{n:04}"), json!({"n": n.to_string()})).await;
    };
    for round in (0..OBJECTS).step_by(100) {
        join_all((round..round + 100).map(create)).await;
    }
    server.set("c-0000", json!({"n": "changed"})).await;
    server.remove("c-0001").await;
    server.remove("c-0002").await;
    server.create("c-0002", json!({"n": "again"})).await;
    // Long enough to be packed.
    server.set("c-0005", json!({"long": "again and ".repeat(500)})).await;
    server.post(DEFINITIONS, &definition("widgets", "Widget")).await.expect(201);
    let spec = json!({"widgets": [1, 2.5]});
    let widget = json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec});
    server.post(WIDGETS, &widget).await.expect(201);
}

fn definition(plural: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    let names = json!({"plural": plural, "kind": kind});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.ex.io")},
        "spec": {"group": "ex.io", "scope": "Cluster", "names": names, "versions": [version]},
    })
}

/// Custom objects have come with what defines them, and with the names that nobody else can have.
async fn check_custom(moved: &TestServer) {
    let widget = moved.get(format!("{WIDGETS}/w")).await.ok();
    assert_eq!(widget["spec"]["widgets"], json!([1, 2.5]));
    let rival = moved.post(DEFINITIONS, &definition("gadgets", "Widget")).await.expect(201);
    let conditions = rival["status"]["conditions"].as_array().expect("conditions");
    assert!(
        conditions.iter().any(|one| one["type"] == "NamesAccepted" && one["status"] == "False"),
        "{rival}"
    );
    for plural in ["widgets", "gadgets"] {
        moved.delete(format!("{DEFINITIONS}/{plural}.ex.io")).await.ok();
    }
}

async fn items(server: &TestServer, path: &str) -> Value {
    server.get(path).await.ok()["items"].clone()
}

fn config_maps(summary: &Summary) -> u64 {
    summary.objects[&GroupResource::new("", "configmaps")]
}

fn file(dir: &TempDir) -> PathBuf {
    dir.path().join("backup")
}

/// A server on the new store has the same objects, and a clock that is ahead of everything clients have seen.
async fn check_moved(target: &Setup, source: &TestServer, page_token: &str, end: u64) {
    let moved = target.start_empty().await;
    for path in [ALL_CONFIGMAPS, "/api/v1/namespaces", DEFINITIONS, WIDGETS] {
        assert_eq!(items(&moved, path).await, items(source, path).await);
    }
    let now = moved.revision().await;
    assert!(now > end, "{now} {end}");
    let old = format!("{CONFIGMAPS}?resourceVersion={end}");
    for gone in
        [format!("{old}&resourceVersionMatch=Exact"), format!("{CONFIGMAPS}?limit=5&continue={page_token}")]
    {
        assert_eq!(moved.get(&gone).await.failure()["code"], 410, "{gone}");
    }
    let event = moved.watch(format!("{old}&watch=1")).await.next().await.expect("an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));

    let before = moved.get(format!("{CONFIGMAPS}/c-0000")).await.ok();
    let mut watch = moved.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion={now}")).await;
    let after = moved.set("c-0000", json!({"n": "moved"})).await;
    assert_eq!(before["metadata"]["uid"], after["metadata"]["uid"]);
    assert!(rv(&after) > now);
    assert_eq!(watch.expect("MODIFIED").await, after);
    check_custom(&moved).await;
    moved.remove("c-0003").await;
    watch.expect_named("DELETED", "c-0003").await;
    // The moved rows can be compacted like rows that were written here.
    moved.compact(moved.revision().await).await;
    let left = items(&moved, CONFIGMAPS).await;
    assert_eq!(left.as_array().map(Vec::len), Some(OBJECTS - 2));
    moved.stop().await;
}

async fn a_backup_is_restored(source: Database, target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (source, target) = (Setup::new(source), Setup::new(target));
    let server = source.start().await;
    fill(&server).await;
    let page_token = token(&server.get(format!("{CONFIGMAPS}?limit=5")).await.ok());
    // The server continues.
    let end = server.revision().await;
    let saved = backup(&source.database.datastore(), &file(&dir), Keys::default()).await.expect("backup");
    assert_eq!((saved.revision.0, config_maps(&saved)), (end, OBJECTS as u64 - 1));
    assert_eq!(saved.objects[&GroupResource::new("ex.io", "widgets")], 1);

    let restored = restore(&file(&dir), &target.database.datastore()).await.expect("restore");
    assert_eq!(restored, saved);
    check_moved(&target, &server, &page_token, end).await;
    server.stop().await;
}

async fn a_store_is_migrated(source: Database, target: Database) {
    let (source, target) = (Setup::new(source), Setup::new(target));
    let server = source.start().await;
    fill(&server).await;
    let page_token = token(&server.get(format!("{CONFIGMAPS}?limit=5")).await.ok());
    let end = server.revision().await;
    let moved = migrate(&source.database.datastore(), &target.database.datastore()).await.expect("migrate");
    assert_eq!(config_maps(&moved), OBJECTS as u64 - 1);
    check_moved(&target, &server, &page_token, end).await;
    server.stop().await;
}

/// The lag goes with the store, and no revision that etcd's clients have seen is given out again (docs/spec/etcd.md, 8).
async fn revisions_as_etcd_counts_them_are_moved(source: Database, target: Database, again: Database) {
    let backend = source.open().await;
    let keys = resource(&*backend, "keys").await;
    let put = |name: &str| create(&Key::new(keys, "", name), 1);
    let mut units: Units =
        [Unit::of_one_revision(vec![put("a"), put("b")], put("c")), put("d").into()].into_iter().collect();
    backend.commit_under(&mut units, Terms::default()).await.expect("commit");
    let before = backend.clock().await.expect("clock");
    assert_eq!(before.lag, 2);
    backend.close().await;
    drop(backend);

    let dir = TempDir::new().expect("a directory");
    backup(&source.datastore(), &file(&dir), Keys::default()).await.expect("a backup");
    restore(&file(&dir), &target.datastore()).await.expect("restored");
    migrate(&target.datastore(), &again.datastore()).await.expect("migrated");
    for moved in [target, again] {
        let backend = moved.open().await;
        let clock = backend.clock().await.expect("clock");
        assert_eq!(clock.lag, before.lag);
        assert!(clock.etcd_revision() > before.etcd_revision());
        let sequence = backend.sequence_of(clock.etcd_revision()).await.expect("the newest revision");
        assert_eq!(sequence, clock.revision);
    }
}

/// Whatever the error is, the target stays as it was.
async fn what_is_wrong_is_refused(target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let source = Setup::new(Database::sqlite());
    let server = source.start().await;
    server.create("one", json!({"k": "value"})).await;
    server.stop().await;
    let (good, bad) = (file(&dir), dir.path().join("bad"));
    backup(&source.database.datastore(), &good, Keys::default()).await.expect("backup");
    assert!(only_file(dir.path(), &good));

    let mut bytes = std::fs::read(&good).expect("read");
    let middle = bytes.len() / 2;
    std::fs::write(&bad, &bytes[..middle]).expect("write");
    refused(restore(&bad, &target.datastore()).await, "the backup is damaged: it ends too early");
    let at = bytes.windows(5).position(|part| part == b"value").expect("the value");
    bytes[at] ^= 1;
    std::fs::write(&bad, &bytes).expect("write");
    refused(restore(&bad, &target.datastore()).await, "the backup is damaged: its checksum is wrong");
    std::fs::write(&bad, "something else altogether").expect("write");
    refused(restore(&bad, &target.datastore()).await, "the backup is damaged: it does not begin");

    restore(&good, &target.datastore()).await.expect("still empty");
    refused(restore(&good, &target.datastore()).await, "the database is not empty");
    refused(migrate(&source.database.datastore(), &target.datastore()).await, "the database is not empty");
    let objects = "SELECT COUNT(*) FROM objects o WHERE NOT o.deleted AND NOT EXISTS (SELECT 1 FROM objects n \
        WHERE n.resource = o.resource AND n.namespace = o.namespace AND n.name = o.name \
        AND n.resource_version > o.resource_version)";
    assert_eq!(target.number(objects).await, source.database.number(objects).await);
    assert_ne!(target.number(objects).await, 0);
}

/// A store that is larger than the memory in which any database collects writes.
const LARGE_VALUE: usize = 512 << 10;
const LARGE_VALUES: usize = 240;

async fn backup_of(values: usize, path: &Path) {
    let object = |n: usize| {
        Record::Object(StoredObject {
            resource: GroupResource::new("", "configmaps"),
            namespace: "t".to_owned(),
            name: format!("c-{n:03}"),
            revision: Revision(2 + n as u64),
            uid: n.to_string(),
            stored_version: "v1".to_owned(),
            value: vec![n as u8; LARGE_VALUE],
        })
    };
    let batches = futures_util::stream::iter(0..values).map(move |n| Ok(vec![object(n)]));
    let revision = Revision(2 + values as u64);
    let export = Export { revision, gap: 1, length: Length::Unknown, batches: Box::pin(batches) };
    let file = std::fs::File::create(path).expect("create");
    format::write(export, file, &Meter::default()).await.expect("records").expect("written");
}

/// A program that restores what comes through a pipe, and the pipe.
fn restoring(dir: &TempDir, target: &Database) -> (tokio::process::Child, PathBuf) {
    let pipe = dir.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("run mkfifo").success());
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_rowplane"));
    let program = program.arg("restore").arg(&pipe).arg("--datastore").arg(target.url());
    (program.spawn().expect("start"), pipe)
}

/// Writes into a pipe. Returns the open end.
async fn feed(pipe: PathBuf, bytes: Vec<u8>) -> std::fs::File {
    let fed = tokio::task::spawn_blocking(move || {
        let mut pipe = std::fs::File::options().write(true).open(pipe).expect("open the pipe");
        pipe.write_all(&bytes).expect("it goes on reading");
        pipe
    });
    fed.await.expect("fed")
}

/// A server that waits for the clock ends sessions that hold it and say nothing, but none that waits for its file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restore_whose_file_comes_slowly_is_not_ended() {
    const WAITING: &str = "SELECT COUNT(*) FROM pg_stat_activity AS session JOIN pg_locks AS l USING (pid) \
         WHERE usename = current_user AND wait_event = 'ClientRead' AND state = 'idle in transaction' \
         AND l.relation = 'clock'::regclass AND l.mode = 'RowShareLock'";
    let target = Database::postgres().await;
    let backend = target.open().await;
    let things = resource(&*backend, "things").await;
    let dir = tempfile::tempdir().expect("a temporary directory");
    backup_of(4, &file(&dir)).await;
    let bytes = std::fs::read(file(&dir)).expect("read");
    let (begin, end) = bytes.split_at(bytes.len() / 2);
    let (mut program, pipe) = restoring(&dir, &target);
    let mut open = feed(pipe, begin.to_vec()).await;
    while target.number(WAITING).await == 0 {
        tokio::task::yield_now().await;
    }
    // It waits for longer than whoever says nothing is left alone.
    let write = create(&Key::new(things, "ns", "one"), 1);
    let refused = backend.commit(&[write], Revision(0)).await.map(drop);
    assert!(matches!(refused, Err(Error::Unavailable(_))), "{refused:?}");
    let rest = end.to_vec();
    let fed = tokio::task::spawn_blocking(move || open.write_all(&rest));
    fed.await.expect("ran").expect("it goes on reading");
    assert!(program.wait().await.expect("it ends").success());
    assert_eq!(target.number("SELECT COUNT(*) FROM objects").await, 4);
}

/// The restore is killed when most objects have been written, and nothing has been committed.
async fn an_interrupted_restore_leaves_nothing(target: Database) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let good = file(&dir);
    backup_of(LARGE_VALUES, &good).await;
    let bytes = std::fs::read(&good).expect("read");
    // Everything written to the pipe has been read, except its last 64 KiB; and the reader is never far ahead of the
    // database.
    let (mut program, pipe) = restoring(&dir, &target);
    let _open = feed(pipe, bytes[..bytes.len() - 20 * LARGE_VALUE].to_vec()).await;
    if let Database::Sqlite(_) = &target {
        let written = std::fs::metadata(target.file()).expect("a file").len();
        assert!(written > 20 * LARGE_VALUE as u64, "{written}");
    }
    program.kill().await.expect("kill");

    let restored = restore(&good, &target.datastore()).await.expect("nothing was there");
    assert_eq!(config_maps(&restored), LARGE_VALUES as u64);
    assert_eq!(target.number("SELECT COUNT(*) FROM objects").await, LARGE_VALUES as i64);
}

fn only_file(dir: &Path, file: &Path) -> bool {
    let mut entries = std::fs::read_dir(dir).expect("read the directory");
    entries.all(|entry| entry.expect("an entry").path() == file)
}

#[track_caller]
fn refused(result: Result<Summary, rowplane::cli::error::Error>, text: &str) {
    let error = result.expect_err("refused").one_line();
    assert!(error.starts_with(text), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revisions_as_etcd_counts_them_outlive_a_move() {
    let (source, target) = (Database::sqlite(), Database::postgres().await);
    revisions_as_etcd_counts_them_are_moved(source, target, Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_sqlite_is_restored_into_postgres() {
    a_backup_is_restored(Database::sqlite(), Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_postgres_is_restored_into_sqlite() {
    a_backup_is_restored(Database::postgres().await, Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_is_migrated_to_sqlite() {
    a_store_is_migrated(Database::sqlite(), Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_migrated_to_postgres() {
    a_store_is_migrated(Database::postgres().await, Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_refused_by_sqlite() {
    what_is_wrong_is_refused(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_refused_by_postgres() {
    what_is_wrong_is_refused(Database::postgres().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_restore_leaves_nothing_in_sqlite() {
    an_interrupted_restore_leaves_nothing(Database::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_restore_leaves_nothing_in_postgres() {
    an_interrupted_restore_leaves_nothing(Database::postgres().await).await;
}
