//! The power goes. A server's changes of its files are recorded while clients work; afterwards the disk is made as it may be
//! after a cut at a random moment, a server is started on it, and what clients were told before that moment must be
//! true: every answered write is there, no revision is used twice, a watch goes on where it was, and the certificates
//! are those that clients know.
//!
//! `ROWPLANE_TEST_CUTS=500 ./test --test crash power` cuts 500 times; the printed seed decides where, and what is left.

mod disk;
mod postgres;
mod record;
mod told;

use std::path::{Path, PathBuf};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use self::disk::Loss;
use self::record::{Record, recorder};
use self::told::{Clock, Load, MAPS, Told};
use super::number;
use crate::support::process::Installation;
use crate::support::rest::Client;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlasts_a_power_cut() {
    let seed = number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = Place::draw(&mut random);
    let (record, told) = live(directory.path(), place, seed).await;
    let length = record.length();
    println!("{}, {} writes, {} events", record.summary(), told.attempts.len(), told.events.len());
    let cuts = number("ROWPLANE_TEST_CUTS").unwrap_or(12);
    for _ in 0..cuts {
        let at = record.moment(&mut random);
        let wrong = judge(&record, &told, place, at, &mut random, Loss::default()).await;
        assert_eq!(wrong, Vec::<String>::new(), "after a cut at {at}");
    }
    // Who judges so does see a disk that lies.
    for _ in 0..20 {
        let at = random.random_range(length / 2..=length);
        let lies = Loss { lies: Some("-wal"), ..Loss::default() };
        if !judge(&record, &told, place, at, &mut random, lies).await.is_empty() {
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
        disk::cut(&backup, at, &mut random, Loss::default(), left.path());
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
            disk::cut(&filled, at, &mut random, Loss::default(), left.path());
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
    command.env("LD_PRELOAD", recorder()).env("ROWPLANE_RECORD", &file).env("ROWPLANE_RECORD_ROOT", root);
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

/// Where a server has its database: beside its other files, or in a directory of its own, in which nothing else is ever synced.
#[derive(Clone, Copy, Debug)]
enum Place {
    Beside,
    Apart,
}

impl Place {
    fn draw(random: &mut StdRng) -> Self {
        let place = if random.random_bool(0.5) { Self::Beside } else { Self::Apart };
        println!("the database is {place:?}");
        place
    }

    /// The database's file. Makes its directory.
    fn file(self, root: &Path) -> PathBuf {
        let directory = match self {
            Self::Beside => root.to_owned(),
            Self::Apart => root.join("store"),
        };
        std::fs::create_dir_all(&directory).expect("a directory");
        directory.join("state.db")
    }

    fn server(self, installation: Installation) -> Installation {
        let file = self.file(installation.dir());
        let installation = installation.with("--compaction-interval=0");
        match self {
            Self::Beside => installation,
            Self::Apart => installation.with(&format!("--datastore=sqlite:{}", file.display())),
        }
    }
}

/// A server's life under load, with everything that it did to its files.
async fn live(scratch: &Path, place: Place, seed: u64) -> (Record, Told) {
    let file = scratch.join("record");
    let installation = place.server(Installation::sqlite());
    let root = installation.dir().to_owned();
    let installation = installation
        .env("LD_PRELOAD", recorder())
        .env("ROWPLANE_RECORD", &file)
        .env("ROWPLANE_RECORD_ROOT", &root);
    let server = installation.start().await;
    let clock = Clock::of(&file);
    let ready = clock.now();
    // A second life has files of the first one, and makes others anew.
    server.terminate().await;
    server.end().await;
    let server = installation.start().await;
    let kubeconfig = scratch.join("kubeconfig");
    std::fs::copy(installation.kubeconfig(), &kubeconfig).expect("a copy");
    let mut load = Load::start(&installation.client().await, &clock, seed).await;
    load.written().await;
    server.kill().await;
    (Record::read(&file, &root), load.told(ready, kubeconfig).await)
}

/// Cuts the power, starts a server on what is left, and says what is wrong there.
async fn judge(
    record: &Record,
    told: &Told,
    place: Place,
    at: u64,
    random: &mut StdRng,
    loss: Loss<'_>,
) -> Vec<String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let database = place.file(directory.path());
    disk::cut(record, at, random, loss, directory.path());
    let installation = place.server(Installation::on(directory));
    // A disk that lies may leave nothing that a server can begin with.
    let server = match loss.lies {
        None => installation.start().await,
        Some(_) => match installation.try_start().await {
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
    match told.look(&client, at).await {
        Ok(found) => wrong.extend(found),
        Err(broken) => wrong.push(format!("no answer: {broken}")),
    }
    server.kill().await;
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = options.connect().await.expect("the database opens");
    let verdict: String =
        sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut connection).await.expect("a verdict");
    if verdict != "ok" {
        wrong.push(verdict);
    }
    connection.close().await.expect("closed");
    wrong
}
