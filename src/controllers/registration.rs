//! Registers this server's storage versions: after its lease is there, and again when they are found missing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::identity_lease_gc::{is_server, leases};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::gate::Gate;
use crate::api::registration::{Extent, OwnRegistration};

/// Entries that somebody has edited or deleted are repaired this often.
const PASS: Duration = Duration::from_secs(600);
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

pub async fn run(api: Arc<Api>, own: Arc<OwnRegistration>, gate: Gate) -> Result<(), Error> {
    let mut extent = Extent::Whole;
    let mut backoff = FIRST_BACKOFF;
    loop {
        // Without a lease the collector would take the entries for those of a server that is gone.
        lease(&api, own.server()).await?;
        let started = Instant::now();
        match api.register(&own, extent).await {
            Ok(()) => {
                tracing::info!(server = own.server(), took = ?started.elapsed(), "registered storage versions");
                gate.registered();
                backoff = FIRST_BACKOFF;
                extent = tokio::select! {
                    () = tokio::time::sleep(PASS) => Extent::Repair,
                    () = api.store.fenced() => {
                        tracing::warn!("this server has lost its registration, and registers again");
                        Extent::Whole
                    }
                };
            }
            Err(error) => {
                tracing::warn!(%error, "cannot register the storage versions of this server");
                gate.failed(Some(error.to_string()));
                tokio::time::sleep(backoff).await;
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
            }
        }
    }
}

/// Waits until the server has its lease.
async fn lease(api: &Api, server: &str) -> Result<(), Error> {
    let Some(resource) = leases(api) else { return Ok(()) };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    while !is_server(api, &*api.cache.fresh().await?, server) {
        watcher.changed().await;
        while !watcher.next().await?.is_empty() {}
    }
    Ok(())
}
