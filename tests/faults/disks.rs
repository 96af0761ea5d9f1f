//! Disks that are full, fail or are slow, under a server on SQLite or under PostgreSQL.

use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::process::pause;
use super::run::works;
use super::server::Server;
use crate::support::disk::{Disk, Trouble};

/// What is wrong with a disk, as runs print it.
#[derive(Clone, Copy, Debug)]
pub enum DiskFault {
    Full,
    Failing,
    Slow,
}

impl DiskFault {
    /// The amount decides how often a call is struck, and how slow it then is.
    async fn last(self, disk: &Disk, lasts: Duration, amount: u64) {
        let trouble = match self {
            Self::Full => Trouble::Full,
            Self::Failing => Trouble::Failing,
            Self::Slow => Trouble::Slow(Duration::from_millis(amount * 3)),
        };
        disk.strike(trouble, [1, 3, 10, 100][amount as usize % 4]);
        tokio::time::sleep(lasts).await;
        disk.heal();
    }
}

/// A server that cannot vouch for its store any more finishes its requests, ends, and is started again, as a supervisor
/// would do. One that writes has not lost its store.
pub async fn disturb_server(server: &Server, fault: DiskFault, lasts: Duration, amount: u64) {
    fault.last(&server.installation.disk, lasts, amount).await;
    let began = Instant::now();
    while !server.revive().await && !works(&server.client, began.elapsed()).await {
        pause().await;
    }
}

/// PostgreSQL restarts itself after a failed sync or write of its log. If it cannot start, it ends, and is started again.
pub async fn disturb_cluster(cluster: &Cluster, fault: DiskFault, lasts: Duration, amount: u64) {
    let Some(disk) = cluster.disk() else { return };
    fault.last(disk, lasts, amount).await;
    cluster.revive().await;
}
