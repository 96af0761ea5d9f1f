//! The power goes under PostgreSQL, whose disk and the server's are recorded as one: either both machines lose it, or the
//! database's alone, and then the server still knows what it has seen.
//!
//! PostgreSQL keeps what it has synced; what is tested is that a server answers only after such a commit, and that its
//! clock, its mark and the database's identity are then what they were.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tempfile::TempDir;

use super::disk::{self, Loss};
use super::number;
use super::record::{Before, Record, recorder};
use super::told::{Clock, Load, Told};
use crate::support::cluster::Cluster;
use crate::support::postgres_programs::give_all;
use crate::support::process::Installation;
use crate::support::proxy::{Proxy, Target};
use crate::support::rest::Client;

/// Settings under which files change as often as possible, and in every way. Servers do not rely on
/// `synchronous_commit`, which is as careless as can be.
const RESTLESS: [&str; 8] = [
    "fsync=on",
    "wal_sync_method=fdatasync",
    "synchronous_commit=off",
    "wal_writer_delay=10s",
    "shared_buffers=2MB",
    "min_wal_size=2MB",
    "max_wal_size=4MB",
    "checkpoint_timeout=30s",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_answered_outlasts_a_power_cut_under_postgres() {
    let seed = number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let machine = Machine::new().await;
    let (record, told) = machine.live(seed).await;
    let length = record.length();
    println!("{}, {} writes, {} events", record.summary(), told.attempts.len(), told.events.len());
    for _ in 0..number("ROWPLANE_TEST_CUTS").unwrap_or(6) {
        let at = record.moment(&mut random);
        let wrong = machine.judge(&record, &told, at, &mut random, None).await;
        assert_eq!(wrong, Vec::<String>::new(), "after a cut at {at}");
    }
    // Who judges so does see a disk that lies.
    for _ in 0..20 {
        let at = random.random_range(length / 2..=length);
        if !machine.judge(&record, &told, at, &mut random, Some("/pg_wal/")).await.is_empty() {
            return;
        }
    }
    panic!("nobody noticed that the log was never synced");
}

/// A PostgreSQL and a server with their files in one place, `data` and `server` below a root.
struct Machine {
    scratch: TempDir,
    /// Between the server and PostgreSQL, so that the database has the same address in every life.
    way: Proxy,
}

impl Machine {
    async fn new() -> Self {
        let scratch = tempfile::tempdir().expect("a temporary directory");
        set_mode(scratch.path(), 0o711);
        std::fs::create_dir(scratch.path().join("root")).expect("a directory");
        // Both users write to the record; the second file is what its writers share.
        for name in ["record", "record.shared"] {
            std::fs::write(scratch.path().join(name), "").expect("a file");
            set_mode(&scratch.path().join(name), 0o666);
        }
        let nowhere = Target::Unix(scratch.path().join("nowhere"));
        Self { way: Proxy::start(nowhere).await, scratch }
    }

    /// A life under load, with everything that PostgreSQL and the server did to their files.
    async fn live(&self, seed: u64) -> (Record, Told) {
        let [root, copy, file] = ["root", "copy", "record"].map(|name| self.scratch.path().join(name));
        let mut cluster = Cluster::make_at(&root.join("data")).await;
        let mut installation = self.server(&root);
        let copied = std::process::Command::new("cp").arg("-a").arg(&root).arg(&copy).status();
        assert!(copied.expect("run cp").success());
        let before = Before::read(&root, &copy);

        for option in RESTLESS {
            cluster = cluster.with(option);
        }
        let recorder = recorder();
        for (variable, value) in
            [("LD_PRELOAD", &recorder), ("ROWPLANE_RECORD", &file), ("ROWPLANE_RECORD_ROOT", &root)]
        {
            cluster = cluster.env(variable, value);
            installation = installation.env(variable, value);
        }
        cluster.start().await;
        self.way.retarget(cluster.target());
        let server = installation.start().await;
        let clock = Clock::of(&file);
        let ready = clock.now();
        // Second lives have files of the first ones, and make others anew.
        server.terminate().await;
        server.end().await;
        cluster.stop().await;
        cluster.start().await;
        let server = installation.start().await;
        let kubeconfig = self.scratch.path().join("kubeconfig");
        std::fs::copy(installation.kubeconfig(), &kubeconfig).expect("a copy");
        let mut load = Load::start(&installation.client().await, &clock, seed).await;
        load.written().await;
        server.kill().await;
        cluster.stop_immediately().await;
        (Record::read(&file, &root).after(before), load.told(ready, kubeconfig).await)
    }

    /// Cuts the power, starts PostgreSQL and a server on what is left, and says what is wrong there.
    async fn judge(
        &self,
        record: &Record,
        told: &Told,
        at: u64,
        random: &mut StdRng,
        lies: Option<&str>,
    ) -> Vec<String> {
        let left = tempfile::tempdir().expect("a temporary directory");
        set_mode(left.path(), 0o711);
        let installation = self.server(left.path());
        let keeps = random.random_bool(0.5).then_some("server");
        // PostgreSQL 15 relies on the journal: it never syncs the directory of a table's new file, and is damaged without.
        disk::cut(record, at, random, Loss { lies, keeps, journal: true }, left.path());
        let data = left.path().join("data");
        // Whoever starts a machine knows that no process of its last life is left.
        let _ = std::fs::remove_file(data.join("postmaster.pid"));
        set_mode(&data, 0o700);
        give_all(&data);
        let cluster = Cluster::at(&data);
        if !cluster.try_start().await {
            return vec![format!("PostgreSQL does not start: {}", cluster.log())];
        }
        self.way.retarget(cluster.target());
        let Some(server) = installation.try_start().await else {
            let log = std::fs::read_to_string(installation.dir().join("server.log")).unwrap_or_default();
            return vec![format!("the server does not start: {log}{}", cluster.log())];
        };
        // The server's certificate is signed by the authority that clients know, and theirs are by the one that it knows.
        let client = match at >= told.ready {
            true => Client::at(&told.kubeconfig, &format!("https://127.0.0.1:{}", installation.port())).await,
            false => installation.client().await,
        };
        let wrong = match told.look(&client, at).await {
            Ok(found) => found,
            Err(broken) => vec![format!("no answer: {broken}; {}", cluster.log())],
        };
        server.kill().await;
        cluster.stop_immediately().await;
        wrong
    }

    /// A server whose files are in a directory of this root.
    fn server(&self, root: &Path) -> Installation {
        let directory = tempfile::Builder::new().prefix("server").rand_bytes(0).tempdir_in(root);
        let through = Cluster::url_through(self.way.address().port());
        Installation::on(directory.expect("a directory"))
            .with("--compaction-interval=0")
            .with(&format!("--datastore={through}"))
    }
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("a mode");
}
