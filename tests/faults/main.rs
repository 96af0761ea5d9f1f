//! Servers, databases and networks fail at random while clients read, write, list and watch; what clients were told is
//! compared with what happened. `docs/RELIABILITY.md` tells how to run this for hours.
//!
//! `ROWPLANE_FAULTS_SEED` decides what clients do and which faults occur; their timing depends on the machine.

#[path = "../support/mod.rs"]
mod support;

mod chaos;
mod clocks;
mod cluster;
mod definitions;
mod deleting;
mod deletions;
mod disks;
mod drawn;
mod failover;
mod failovers;
mod forms;
mod guarded;
mod guards;
mod history;
mod linear;
mod listing;
mod load;
mod log;
mod object;
mod planted;
mod planted_deletions;
mod process;
mod records;
mod refusals;
mod releases;
mod replicas;
mod requests;
mod rights;
mod run;
mod server;
mod services;
mod serving;
mod settling;
mod two_primaries;
mod verdict;
mod watcher;
mod watches;
mod webhook;
mod written;

use crate::history::Promise;
use crate::replicas::Database;
use crate::run::{Report, Settings, run};
use crate::support::proxy;
use crate::watcher::Mischief;

const CLIENTS: usize = 6;
/// The longest fault of most runs, in milliseconds, and that of a tenth of all: it is longer than the timeouts of servers and databases.
const LONG: u64 = 1000;
const LONGEST: u64 = 40_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    keep_running(Database::postgres, 3).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    keep_running(async || Database::Sqlite, 1).await;
}

/// Runs with new seeds until `ROWPLANE_FAULTS_SECONDS` are over, at least once.
async fn keep_running(database: impl AsyncFn() -> Database, servers: usize) {
    let began = std::time::Instant::now();
    let seconds = number("ROWPLANE_FAULTS_SECONDS").unwrap_or(0);
    let calls = number("ROWPLANE_FAULTS_CALLS").unwrap_or(500) as usize;
    let longest = number("ROWPLANE_FAULTS_LONGEST");
    loop {
        let seed = number("ROWPLANE_FAULTS_SEED").unwrap_or_else(|| u64::from(rand::random::<u32>()));
        let longest_fault = longest.unwrap_or(if seed.is_multiple_of(10) { LONGEST } else { LONG });
        println!("ROWPLANE_FAULTS_SEED={seed}");
        let settings = Settings { servers, clients: CLIENTS, calls, longest_fault, mischief: None };
        let report = run(database().await, settings, seed).await;
        println!("{report}");
        assert!(report.violations.is_empty(), "{} violations", report.violations.len());
        if began.elapsed().as_secs() >= seconds {
            return;
        }
    }
}

/// The checkers find a bug that is planted between server and client. It strikes early, since a watcher that misses the
/// sentinel would never end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn planted_bugs_are_found() {
    for (mischief, promise) in [
        (Mischief::Skip(5), Promise::Reliable),
        (Mischief::Double(5), Promise::Unique),
        (Mischief::ResumeTooLate(5), Promise::Resumable),
    ] {
        let settings =
            Settings { servers: 1, clients: CLIENTS, calls: 400, longest_fault: 0, mischief: Some(mischief) };
        let Report { violations, .. } = run(Database::Sqlite, settings, 1).await;
        assert!(
            violations.iter().any(|violation| violation.promise == promise),
            "{mischief:?}: {violations:?}"
        );
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is not a number")))
}
