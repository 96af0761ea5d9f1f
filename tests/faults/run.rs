//! One run: servers on a database, clients, faults, and in the end the verdict.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::chaos::{Chaos, Counts};
use super::definitions::{self, Churn, DEFINITIONS};
use super::deleting::{self, Deleting};
use super::deletions::Deleted;
use super::guarded::{self, Guarded};
use super::guards::Judged;
use super::history::{
    Action, Answer, Call, Filter, Freshness, History, Key, Kind, Listing, Promise, Violation,
};
use super::load::{COLOURS, Load, NAMESPACES, PATIENCE, SENTINEL, Shared};
use super::log::Log;
use super::process::pause;
use super::refusals::Marked;
use super::releases::Releases;
use super::replicas::{Database, Replicas};
use super::rights::{self, Rights};
use super::server::Server;
use super::services::Served;
use super::serving::{self, Serving};
use super::verdict::Coverage;
use super::watcher::Mischief;
use super::webhook::Webhook;
use super::{object, watches};
use crate::support::rest::Client;

/// A server that does not work for this long after the last fault is considered dead.
pub const RECOVERY: Duration = Duration::from_secs(120);

/// The unit by which wall clocks differ, in seconds: from minutes to hours.
const SKEW: i64 = 60;

#[derive(Clone, Copy, Debug)]
pub struct Settings {
    pub servers: usize,
    pub clients: usize,
    /// Requests about single objects until the faults end.
    pub calls: usize,
    /// The longest duration of a fault in milliseconds; 0 for no faults.
    pub longest_fault: u64,
    pub mischief: Option<Mischief>,
}

pub struct Report {
    pub seed: u64,
    pub coverage: Coverage,
    pub guards: Judged,
    pub deleted: Deleted,
    pub served: Served,
    /// Writes of other clients than the load's.
    pub marked: Marked,
    pub faults: Counts,
    /// How many calls have met a disk in trouble.
    pub struck: u32,
    /// The time until the last server worked again.
    pub recovery: Duration,
    pub violations: Vec<Violation>,
}

pub async fn run(database: Database, settings: Settings, seed: u64) -> Report {
    let mut random = StdRng::seed_from_u64(seed);
    let history = ["100ms", "1s", "3s"][random.random_range(0..3)];
    let history = format!("--compaction-history={history}");
    let arguments = ["--compaction-interval=100ms", &history, "--shutdown-grace-period=2s"];
    let arguments = arguments.map(str::to_owned).to_vec();
    let releases = Releases::chosen();
    let narrow = releases.are_narrow();
    let mut servers = Vec::new();
    let skewed = random.random_bool(0.5);
    let mut skews = 0;
    for n in 0..settings.servers {
        let program = releases.first(&mut random).clone();
        servers.push(Server::start_as(program, &database, arguments.clone()).await);
        if skewed && n > 0 {
            servers[n].installation.clock.set(-SKEW * 24i64.pow(n as u32));
            skews += 1;
        }
    }
    make_namespaces(&servers[0].client).await;
    let webhook = Webhook::start(seed, settings.longest_fault).await;
    if !narrow {
        rights::prepare(&servers[0].client).await;
        define_widgets(&servers[0].client, &webhook.config).await;
    }
    let replicas = Arc::new(Replicas {
        servers,
        database,
        database_turn: Mutex::default(),
        unfenced: AtomicUsize::new(0),
        releases,
    });
    let start = replicas.install_witness().await;
    if !narrow {
        guarded::prepare(&replicas.servers[0].client).await;
        deleting::prepare(&replicas.servers[0].client).await;
        serving::prepare(&replicas.servers[0].client).await;
    }

    let clients = replicas.servers.iter().map(|server| server.client.clone()).collect();
    let mut load =
        Load::start(clients, replicas.releases.kinds(), seed, start, settings.clients, settings.mischief);
    let chaos = (settings.longest_fault > 0).then(|| Chaos::start(&replicas, seed, settings.longest_fault));
    let more = settings.mischief.is_none() && !narrow;
    let churn = more.then(|| Churn::start(&load.shared, seed));
    let rights = more.then(|| Rights::start(&load.shared, seed));
    let guarded = more.then(|| Guarded::start(&load.shared, seed));
    let deleting = more.then(|| Deleting::start(&load.shared, seed));
    let serving = more.then(|| Serving::start(&load.shared, seed));
    load.reach(settings.calls).await;
    let mut faults = match chaos {
        Some(chaos) => chaos.stop().await,
        None => Counts::new(),
    };
    faults.extend(replicas.releases.turns());
    let (_hook, lies) = webhook.heal().await;
    if lies > 0 {
        faults.insert("WebhookFailed".to_owned(), lies);
    }
    if skews > 0 {
        faults.insert("ClockSkewed".to_owned(), skews);
    }

    let struck = replicas.struck_calls();
    let mut violations = replicas.deaths().await;
    let (recovery, recovered) = recover(&load.shared).await;
    violations.extend(recovered);
    let mut done = load.stop().await;
    if !violations.is_empty() {
        // If a server does not work, watches cannot come to their end.
        let coverage = Coverage { calls: done.calls.len(), ..Coverage::default() };
        return Report {
            seed,
            coverage,
            guards: Judged::default(),
            deleted: Deleted::default(),
            served: Served::default(),
            marked: Marked::default(),
            faults,
            struck,
            recovery,
            violations,
        };
    }
    let end = replicas.clock().await;
    done.calls.extend(write_sentinels(&load.shared).await);
    load.shared.last.store(replicas.clock().await, Ordering::SeqCst);
    for server in &load.shared.servers {
        for &kind in load.shared.kinds {
            done.listings.push(last_list(&load.shared, server, kind).await);
        }
    }
    let shared = load.shared.clone();
    let watches = load.watched().await;
    let (mut guards, mut deleted, mut served) = (Judged::default(), Deleted::default(), Served::default());
    let promotions = std::mem::take(&mut *replicas.database_turn.lock().await);
    if let Some(churn) = churn {
        let (changes, found) = churn.judge(&replicas, !promotions.is_empty()).await;
        faults.insert("DefinitionsChurned".to_owned(), changes);
        violations.extend(found);
    }
    if let Some(rights) = rights {
        let (turned, found) = rights.judge(!promotions.is_empty()).await;
        faults.insert("RightsTurned".to_owned(), turned);
        violations.extend(found);
    }
    if let Some(guarded) = guarded {
        let (judged, found) = guarded.judge(&replicas).await;
        guards = judged;
        violations.extend(found);
    }
    if let Some(deleting) = deleting {
        let (judged, found) = deleting.judge(&replicas, !promotions.is_empty()).await;
        deleted = judged;
        violations.extend(found);
    }
    if let Some(serving) = serving {
        let (judged, found) = serving.judge(&replicas).await;
        served = judged;
        violations.extend(found);
    }
    let unfenced = replicas.unfenced.load(Ordering::Relaxed);
    if unfenced > 0 {
        violations.push(Violation::new(
            Promise::Guarded,
            format!("{unfenced} rows of servers that are not registered"),
        ));
    }
    let failovers = promotions.into_iter().map(|promotion| promotion.failover(&shared)).collect();
    let rows = replicas.witnessed().await;
    let (marked, found) = shared.refusals.judge(&rows);
    violations.extend(found);
    let log = Log::new(start, rows, failovers);
    violations.extend(watches.iter().filter_map(|run| watches::check_complete(&log, run, end)));
    let migrated = faults.contains_key("Migrate");
    let history = History { log, calls: done.calls, listings: done.listings, watches, migrated };
    violations.extend(history.judge());
    violations.extend(replicas.panics());
    Report {
        seed,
        coverage: history.coverage(),
        guards,
        deleted,
        served,
        marked,
        faults,
        struck,
        recovery,
        violations,
    }
}

async fn make_namespaces(client: &Client) {
    for name in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        client.post("/api/v1/namespaces", &namespace).await.expect("an answer").ok();
    }
}

async fn define_widgets(client: &Client, webhook: &Value) {
    client.post(DEFINITIONS, &definitions::widgets(webhook)).await.expect("an answer").ok();
}

/// Waits until every server has read and written without any help.
async fn recover(shared: &Shared) -> (Duration, Vec<Violation>) {
    let began = Instant::now();
    let mut violations = Vec::new();
    for (number, server) in shared.servers.iter().enumerate() {
        while !works(server, began.elapsed()).await {
            if began.elapsed() > RECOVERY {
                violations.push(Violation::new(Promise::Recovered, format!("server {number} does not work")));
                break;
            }
            pause().await;
        }
    }
    (began.elapsed(), violations)
}

/// Whether a server reads and writes. The mark differs from that of every other attempt, so that there is something to write.
pub async fn works(server: &Client, mark: Duration) -> bool {
    let labels = json!({"probe": mark.as_nanos().to_string()});
    let metadata = json!({"name": "default", "labels": labels});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata});
    let write = tokio::time::timeout(PATIENCE, server.put("/api/v1/namespaces/default", &namespace));
    let Ok(Ok(written)) = write.await else { return false };
    let read = tokio::time::timeout(PATIENCE, server.get("/api/v1/namespaces"));
    let Ok(Ok(read)) = read.await else { return false };
    written.status == 200 && read.status == 200
}

/// Creates the last objects, one for every filter, however often that fails.
async fn write_sentinels(shared: &Shared) -> Vec<Call> {
    let mut calls = Vec::new();
    for namespace in NAMESPACES {
        for colour in COLOURS {
            for &kind in shared.kinds {
                let key = (namespace.to_owned(), format!("{}-{SENTINEL}-{colour}", kind.prefix()));
                calls.extend(write_sentinel(shared, key, colour).await);
            }
        }
    }
    calls
}

async fn write_sentinel(shared: &Shared, key: Key, colour: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    loop {
        let token = shared.token(0, colour);
        let call = shared.call(&shared.servers[0], key.clone(), Action::Create { token }).await;
        let there = matches!(call.answer, Answer::Written { .. } | Answer::Exists);
        calls.push(call);
        if there {
            return calls;
        }
    }
}

/// This server's state at the end.
async fn last_list(shared: &Shared, server: &Client, kind: Kind) -> Listing {
    let called = shared.now();
    let body = server.get(&object::collection(kind, None)).await.expect("an answer").ok();
    let (returned, revision) = (shared.now(), crate::support::rest::revision(&body));
    Listing {
        freshness: Freshness::Latest,
        filter: Filter { kind, ..Filter::default() },
        called,
        returned,
        revision,
        page_revisions: vec![revision],
        items: object::items(&body, kind),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let faults: BTreeMap<_, _> = self.faults.iter().collect();
        let total: usize = self.faults.values().sum();
        writeln!(f, "ROWPLANE_FAULTS_SEED={}: {}", self.seed, self.coverage)?;
        writeln!(f, "  {total} faults: {faults:?}; all servers worked {:?} after the last", self.recovery)?;
        writeln!(f, "  {} calls met a disk in trouble", self.struck)?;
        writeln!(f, "  {}", self.guards)?;
        writeln!(f, "  {}", self.deleted)?;
        writeln!(f, "  {}", self.served)?;
        writeln!(f, "  {}", self.marked)?;
        write!(f, "  {} violations", self.violations.len())?;
        for violation in self.violations.iter().take(10) {
            write!(f, "\n  {violation:?}")?;
        }
        Ok(())
    }
}
