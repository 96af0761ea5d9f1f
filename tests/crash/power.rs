//! The power goes. A server's changes of its files are recorded while clients work; afterwards the disk is made as it may be
//! after a cut at a random moment, a server is started on it, and what clients were told before that moment must be
//! true: every answered write is there, no revision is used twice, a watch goes on where it was, and the certificates
//! are those that clients know.
//!
//! `ROWPLANE_TEST_CUTS=500 ./test --test crash power` cuts 500 times; the printed seed decides where, and what is left.

#[path = "power/disk.rs"]
mod disk;
#[path = "power/record.rs"]
mod record;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use self::record::Record;
use super::number;
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 6;
const NAMES: usize = 3;
const WRITES: usize = 600;

/// A write as its client knows it. Times are lengths of the record.
#[derive(Debug)]
struct Attempt {
    name: String,
    /// What the object holds afterwards; `None` if it was deleted.
    token: Option<usize>,
    begun: u64,
    /// When it was answered, and the revision of the answer, if that has one.
    answered: Option<(u64, Option<u64>)>,
}

/// A watch's event.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Event {
    revision: u64,
    kind: String,
    name: String,
    token: usize,
}

/// What clients were told, and when.
struct Told {
    /// When the first server had printed where it is.
    ready: u64,
    kubeconfig: PathBuf,
    /// Where the watches begin.
    start: u64,
    attempts: Vec<Attempt>,
    events: Vec<(u64, Event)>,
}

/// The record while it grows.
#[derive(Clone)]
struct Clock(Arc<PathBuf>);

impl Clock {
    fn now(&self) -> u64 {
        std::fs::metadata(&*self.0).expect("the record").len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlasts_a_power_cut() {
    let seed = number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (record, told) = live(directory.path(), seed).await;
    let length = record.length();
    println!("{}, {} writes, {} events", record.summary(), told.attempts.len(), told.events.len());
    let cuts = number("ROWPLANE_TEST_CUTS").unwrap_or(12);
    for _ in 0..cuts {
        let at = record.moment(&mut random);
        let wrong = judge(&record, &told, at, &mut random, "").await;
        assert_eq!(wrong, Vec::<String>::new(), "after a cut at {at}");
    }
    // Who judges so does see a disk that lies.
    for _ in 0..20 {
        let at = random.random_range(length / 2..=length);
        if !judge(&record, &told, at, &mut random, "-wal").await.is_empty() {
            return;
        }
    }
    panic!("nobody noticed that the log was never synced");
}

/// Files of backups, and stores that were restored or migrated, are whole or not there, and there once the command has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backups_and_stores_that_commands_fill_outlast_a_power_cut() {
    const MANY: usize = 120;
    let seed = number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let source = Installation::sqlite();
    let server = source.start().await;
    let client = source.client().await;
    for n in 0..MANY {
        let length = random.random_range(0..40_000);
        let text: String = (0..length).map(|_| random.random_range('a'..='z')).collect();
        let metadata = json!({"name": format!("m-{n}")});
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}});
        client.post(MAPS, &map).await.expect("an answer").ok();
    }
    server.kill().await;

    let scratch = tempfile::tempdir().expect("a temporary directory");
    let [backups, restored, migrated] =
        ["backups", "restored", "migrated"].map(|name| scratch.path().join(name));
    for directory in [&backups, &restored, &migrated] {
        std::fs::create_dir(directory).expect("a directory");
    }
    let file = backups.join("file");
    let store = |directory: &Path| format!("sqlite:{}", directory.join("state.db").display());
    let source_url = format!("sqlite:{}", source.dir().join("state.db").display());
    let backup = recorded(&backups, &["backup", text(&file), "--datastore", &source_url]).await;
    let restore = recorded(&restored, &["restore", text(&file), "--datastore", &store(&restored)]).await;
    let migration = recorded(&migrated, &["migrate", "--from", &source_url, "--to", &store(&migrated)]).await;
    println!("backup: {}", backup.summary());
    println!("restore: {}\nmigrate: {}", restore.summary(), migration.summary());

    let cuts = number("ROWPLANE_TEST_CUTS").unwrap_or(12);
    let moments = |record: &Record, random: &mut StdRng| -> Vec<u64> {
        (0..cuts).map(|_| record.moment(random)).chain([record.length()]).collect()
    };
    for at in moments(&backup, &mut random) {
        let left = tempfile::tempdir().expect("a temporary directory");
        disk::cut(&backup, at, &mut random, "", left.path());
        let (file, store) = (left.path().join("file"), left.path().join("again.db"));
        if !file.exists() {
            assert!(at < backup.length(), "the command has ended, and there is no backup");
            continue;
        }
        let url = format!("sqlite:{}", store.display());
        let ended = command(&["restore", text(&file), "--datastore", &url]).output().await.expect("run");
        assert!(ended.status.success(), "cut at {at}: {}", String::from_utf8_lossy(&ended.stderr));
        assert_eq!(maps_in(&store).await, MANY as i64, "cut at {at}");
    }
    for filled in [restore, migration] {
        for at in moments(&filled, &mut random) {
            let left = tempfile::tempdir().expect("a temporary directory");
            disk::cut(&filled, at, &mut random, "", left.path());
            let installation = Installation::on(left);
            let server = installation.start().await;
            let list = installation.client().await.get(MAPS).await.expect("an answer").ok();
            let found = list["items"].as_array().expect("items").len();
            server.kill().await;
            assert!(found == MANY || found == 0 && at < filled.length(), "cut at {at}: {found} objects");
        }
    }
}

fn command(arguments: &[&str]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_rowplane"));
    command.args(arguments).kill_on_drop(true);
    command
}

/// Runs a command, which must succeed, and records what it does to the files of a directory.
async fn recorded(root: &Path, arguments: &[&str]) -> Record {
    let file = root.with_extension("record");
    let mut command = command(arguments);
    command.env("LD_PRELOAD", compile()).env("ROWPLANE_RECORD", &file).env("ROWPLANE_RECORD_ROOT", root);
    let ended = command.output().await.expect("run");
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    Record::read(&file, root)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

async fn maps_in(store: &Path) -> i64 {
    let mut connection = SqliteConnectOptions::new().filename(store).connect().await.expect("it opens");
    let count = sqlx::query_scalar("SELECT COUNT(*) FROM objects WHERE name LIKE 'm-%'");
    let count = count.fetch_one(&mut connection).await.expect("a number");
    connection.close().await.expect("closed");
    count
}

/// A server's life under load, with everything that it did to its files.
async fn live(scratch: &Path, seed: u64) -> (Record, Told) {
    let recorder = compile();
    let file = scratch.join("record");
    let installation = Installation::sqlite().with("--compaction-interval=0");
    let root = installation.dir().to_owned();
    let installation = installation
        .env("LD_PRELOAD", recorder)
        .env("ROWPLANE_RECORD", &file)
        .env("ROWPLANE_RECORD_ROOT", &root);
    let server = installation.start().await;
    let clock = Clock(Arc::new(file.clone()));
    let ready = clock.now();
    // A second life has files of the first one, and makes others anew.
    server.terminate().await;
    server.end().await;
    let server = installation.start().await;
    let kubeconfig = scratch.join("kubeconfig");
    std::fs::copy(installation.kubeconfig(), &kubeconfig).expect("a copy");
    let client = installation.client().await;
    let start = revision(&client.get(MAPS).await.expect("an answer").ok());

    let events = Arc::new(Mutex::new(Vec::new()));
    let watcher = tokio::spawn(watch(client.clone(), clock.clone(), start, events.clone()));
    let left = Arc::new(AtomicUsize::new(WRITES));
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| {
            let random = StdRng::seed_from_u64(seed.wrapping_add(n as u64));
            tokio::spawn(write(client.clone(), clock.clone(), n, left.clone(), random))
        })
        .collect();
    let mut attempts = Vec::new();
    for writer in writers {
        attempts.extend(writer.await.expect("a writer"));
    }
    server.kill().await;
    let _ = watcher.await;
    let events = std::mem::take(&mut *events.lock().unwrap());
    (Record::read(&file, &root), Told { ready, kubeconfig, start, attempts, events })
}

/// The recorder as a library.
fn compile() -> PathBuf {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/crash/power/recorder.c");
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("recorder.so");
    // Tests that run at the same time compile the same.
    let made = library.with_extension(format!("{:08x}", rand::random::<u32>()));
    let mut command = std::process::Command::new("cc");
    command.args(["-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o"]).arg(&made).arg(source);
    assert!(command.status().expect("a C compiler").success());
    std::fs::rename(&made, &library).expect("renamed");
    library
}

/// Creates, updates and deletes objects that nobody else writes.
async fn write(
    client: Client,
    clock: Clock,
    writer: usize,
    left: Arc<AtomicUsize>,
    mut random: StdRng,
) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut there = [false; NAMES];
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let n = random.random_range(0..NAMES);
        let name = format!("w{writer}-{n}");
        let token = attempts.len();
        let size = if random.random_ratio(1, 4) { 60_000 } else { 500 };
        let text: String =
            (0..random.random_range(0..size)).map(|_| random.random_range('a'..='z')).collect();
        let data = json!({"token": token.to_string(), "text": text});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        let begun = clock.now();
        let item = format!("{MAPS}/{name}");
        let (token, answer) = match there[n] {
            false => (Some(token), client.post(MAPS, &object).await),
            true if random.random_ratio(1, 5) => (None, client.delete(&item, None).await),
            true => (Some(token), client.put(&item, &object).await),
        };
        let body = answer.expect("an answer").ok();
        there[n] = token.is_some();
        let revision = token.map(|_| revision(&body));
        attempts.push(Attempt { name, token, begun, answered: Some((clock.now(), revision)) });
    }
    attempts
}

/// Watches until the server is gone.
async fn watch(client: Client, clock: Clock, start: u64, events: Arc<Mutex<Vec<(u64, Event)>>>) {
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await.expect("a watch");
    while let Ok(Some(event)) = watch.next().await {
        let event = event_of(&event);
        events.lock().unwrap().push((clock.now(), event));
    }
}

fn event_of(event: &Value) -> Event {
    let object = &event["object"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    Event {
        revision: revision(object),
        kind: text(&event["type"]),
        name: text(&object["metadata"]["name"]),
        token: token(object),
    }
}

fn token(object: &Value) -> usize {
    object["data"]["token"].as_str().and_then(|token| token.parse().ok()).expect("a token")
}

/// Cuts the power, starts a server on what is left, and says what is wrong there.
async fn judge(record: &Record, told: &Told, at: u64, random: &mut StdRng, lies: &str) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    disk::cut(record, at, random, lies, directory.path());
    let installation = Installation::on(directory).with("--compaction-interval=0");
    // A disk that lies may leave nothing that a server can begin with.
    let server = match lies {
        "" => installation.start().await,
        _ => match installation.try_start().await {
            Some(server) => server,
            None => return vec!["the server does not start".to_owned()],
        },
    };
    let mut wrong = Vec::new();
    // The server's certificate is signed by the authority that clients know, and theirs are by the one that it knows.
    let client = match at >= told.ready {
        true => Client::at(&told.kubeconfig, &format!("https://127.0.0.1:{}", installation.port())).await,
        false => installation.client().await,
    };
    match look(&client, told, at).await {
        Ok(found) => wrong.extend(found),
        Err(broken) => wrong.push(format!("no answer: {broken}")),
    }
    server.kill().await;
    let options = SqliteConnectOptions::new().filename(installation.dir().join("state.db"));
    let mut connection = options.connect().await.expect("the database opens");
    let verdict: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.expect("a verdict");
    if verdict != "ok" {
        wrong.push(verdict);
    }
    connection.close().await.expect("closed");
    wrong
}

/// What is not as clients were told before the cut.
async fn look(client: &Client, told: &Told, at: u64) -> Result<Vec<String>, String> {
    let list = client.get(MAPS).await.map_err(|broken| broken.0)?.ok();
    let now = revision(&list);
    let mut wrong = Vec::new();
    let mut there: BTreeMap<&str, &Value> = BTreeMap::new();
    for object in list["items"].as_array().expect("items") {
        there.insert(object["metadata"]["name"].as_str().expect("a name"), object);
    }
    let mut names: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in &told.attempts {
        names.entry(&attempt.name).or_default().push(attempt);
    }
    for (name, attempts) in &names {
        let answered =
            attempts.iter().rposition(|attempt| attempt.answered.is_some_and(|(when, _)| when <= at));
        let begun = attempts.iter().rposition(|attempt| attempt.begun <= at);
        let found = there.remove(name);
        let possible = match (answered, begun) {
            (Some(first), Some(last)) => &attempts[first..=last],
            (None, Some(last)) => &attempts[..=last],
            (_, None) => &[],
        };
        let is = |attempt: &&Attempt| {
            let revision_of = |object| Some(revision(object));
            let told = attempt.answered.and_then(|(_, revision)| revision);
            attempt.token == found.map(token) && (found.is_none() || told == found.and_then(revision_of))
        };
        let may_be_absent = answered.is_none() && found.is_none();
        if !may_be_absent && !possible.iter().any(is) {
            let found = found.map(|object| (token(object), revision(object)));
            wrong.push(format!("{name}: {found:?} is none of {possible:?}"));
        }
    }
    wrong.extend(there.keys().map(|name| format!("{name}: nobody has made it")));

    if at < told.ready {
        return Ok(wrong);
    }
    let shown: Vec<&Event> =
        told.events.iter().filter(|(when, _)| *when <= at).map(|(_, event)| event).collect();
    let newest = shown.last().map_or(told.start, |event| event.revision);
    let answers = told.attempts.iter().filter_map(|attempt| attempt.answered);
    let answers = answers.filter(|(when, _)| *when <= at).filter_map(|(_, revision)| revision);
    let newest = answers.max().unwrap_or_default().max(newest);
    if now < newest {
        wrong.push(format!("the list is at {now}, and clients have seen {newest}"));
    }
    let new =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"token": "0"}});
    let made = revision(&client.post(MAPS, &new).await.map_err(|broken| broken.0)?.ok());
    if made <= newest {
        wrong.push(format!("revision {made} is used again, after {newest}"));
    }
    let mut watch = client
        .watch(&format!("{MAPS}?watch=1&resourceVersion={}", told.start))
        .await
        .map_err(|broken| broken.0)?;
    let mut again = Vec::new();
    loop {
        let Ok(Some(event)) = watch.next().await else { return Err("the watch ends".to_owned()) };
        if event["type"] == "ERROR" {
            wrong.push(format!("the watch from {}: {event}", told.start));
            return Ok(wrong);
        }
        let event = event_of(&event);
        if event.name == "new" {
            break;
        }
        again.push(event);
    }
    for (index, event) in shown.iter().enumerate() {
        if again.get(index) != Some(*event) {
            wrong.push(format!("shown before: {event:?}, now: {:?}", again.get(index)));
            break;
        }
    }
    Ok(wrong)
}
