//! Servers, databases and networks fail at random while clients read, write, list and watch; what clients were told is
//! compared with what happened. `docs/RELIABILITY.md` tells how to run this for hours.
//!
//! `ROWPLANE_FAULTS_SEED` decides what clients do and which faults occur; their timing depends on the machine.

mod support;

#[path = "faults/chaos.rs"]
mod chaos;
#[path = "faults/clocks.rs"]
mod clocks;
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "faults/definitions.rs"]
mod definitions;
#[path = "faults/deleting.rs"]
mod deleting;
#[path = "faults/deletions.rs"]
mod deletions;
#[path = "faults/disks.rs"]
mod disks;
#[path = "faults/drawn.rs"]
mod drawn;
#[path = "faults/failover.rs"]
mod failover;
#[path = "faults/failovers.rs"]
mod failovers;
#[path = "faults/forms.rs"]
mod forms;
#[path = "faults/guarded.rs"]
mod guarded;
#[path = "faults/guards.rs"]
mod guards;
#[path = "faults/history.rs"]
mod history;
#[path = "api/custom_resources/hook.rs"]
#[allow(dead_code, reason = "the tests of conversions need more of it")]
mod hook;
#[path = "faults/linear.rs"]
mod linear;
#[path = "faults/listing.rs"]
mod listing;
#[path = "faults/load.rs"]
mod load;
#[path = "faults/log.rs"]
mod log;
#[path = "faults/object.rs"]
mod object;
#[path = "faults/planted.rs"]
mod planted;
#[path = "faults/planted_deletions.rs"]
mod planted_deletions;
#[path = "faults/process.rs"]
mod process;
#[path = "faults/records.rs"]
mod records;
#[path = "faults/refusals.rs"]
mod refusals;
#[path = "faults/releases.rs"]
mod releases;
#[path = "faults/replicas.rs"]
mod replicas;
#[path = "faults/requests.rs"]
mod requests;
#[path = "faults/rights.rs"]
mod rights;
#[path = "faults/run.rs"]
mod run;
#[path = "faults/server.rs"]
mod server;
#[path = "faults/services.rs"]
mod services;
#[path = "faults/serving.rs"]
mod serving;
#[path = "faults/settling.rs"]
mod settling;
#[path = "faults/two_primaries.rs"]
mod two_primaries;
#[path = "faults/verdict.rs"]
mod verdict;
#[path = "faults/watcher.rs"]
mod watcher;
#[path = "faults/watches.rs"]
mod watches;
#[path = "faults/webhook.rs"]
mod webhook;
#[path = "faults/written.rs"]
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
