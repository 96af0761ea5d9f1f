//! Failovers during a run: a standby is created, the primary is killed, and the standby takes over. Commits that the
//! standby had not received are read from the dead primary, so that the checkers know them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::load::Shared;
use super::log::{Failover, Row};
use super::process::pause;
use super::replicas::{Database, Replicas};

/// How much of the primary's commits a standby has when they are acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replication {
    /// All of them: no acknowledged commit may be missing afterwards.
    Synchronous,
    /// None any more, as long as the fault lasts.
    Stalled,
}

/// A failover as it was made.
pub struct Promotion {
    survived: u64,
    lost: Vec<Row>,
    began: Instant,
    ended: Instant,
}

impl Promotion {
    /// The failover in the time of the load.
    pub fn failover(self, shared: &Shared) -> Failover {
        let Self { survived, lost, began, ended } = self;
        Failover { survived, lost, began: shared.time(began), ended: shared.time(ended) }
    }
}

/// Nothing else may disturb the database meanwhile.
pub async fn fail_over(replicas: &Replicas, replication: Replication, lasts: Duration) -> Option<Promotion> {
    let Database::Postgres(primary) = &replicas.database else { return None };
    let old = primary.get();
    let standby = old.standby().await;
    match replication {
        Replication::Synchronous => old.wait_for_standbys().await,
        Replication::Stalled => standby.stop_receiving().await,
    }
    tokio::time::sleep(lasts).await;
    if replication == Replication::Synchronous {
        // The commits from before commits started to wait for the standby.
        let position = old.text("SELECT pg_current_wal_lsn()::text").await;
        let received = format!("SELECT COUNT(*) FROM pg_stat_replication WHERE flush_lsn >= '{position}'");
        while old.number(&received).await == 0 {
            pause().await;
        }
    }

    let began = Instant::now();
    // A machine dies at once, a cluster does not: backends that wait for the standby stop waiting when the postmaster
    // is gone, and the others show commits until they notice. So the servers' connections are cut first.
    for back in replicas.servers.iter().filter_map(|server| server.back.as_ref()) {
        back.lose();
    }
    old.kill().await;
    standby.promote().await;
    let survived = standby.number("SELECT revision FROM clock").await as u64;
    let standby = Arc::new(standby);
    primary.replace(standby.clone());
    for server in &replicas.servers {
        if let Some(back) = &server.back {
            back.retarget(standby.target());
        }
    }
    let ended = Instant::now();
    let lost = match replication {
        // Further commits of the old primary were not acknowledged.
        Replication::Synchronous => Vec::new(),
        Replication::Stalled => left_behind(&old, survived).await,
    };
    Some(Promotion { survived, lost, began, ended })
}

/// What the dead primary had committed after a revision. Servers cannot reach it any more.
async fn left_behind(old: &Cluster, survived: u64) -> Vec<Row> {
    old.start().await;
    let rows = old.witnessed().await;
    old.stop_immediately().await;
    rows.into_iter().filter(|row| row.revision > survived).collect()
}
