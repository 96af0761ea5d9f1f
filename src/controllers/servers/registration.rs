//! Registers this server's storage versions: once it has its lease, and again when entries are missing or the served
//! resources change.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::identity_lease_gc::{is_held, leases};
use crate::api::Api;
use crate::api::error::Error;
use crate::api::storage_version::gate::Gate;
use crate::api::storage_version::registration::{Extent, OwnRegistration};

/// How long the server waits for more changes of what is served before it registers them: many definitions that come
/// one after the other are registered together.
const TOGETHER: Duration = Duration::from_millis(100);
/// How often entries that were edited or deleted are repaired.
const PASS: Duration = Duration::from_secs(600);
/// The pause between the attempts of a round.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);
/// How many attempts must fail before clients are told, as upstream does.
const ATTEMPTS: u32 = 3;
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// `holder` identifies this process in its lease.
pub async fn run(api: Arc<Api>, own: Arc<OwnRegistration>, holder: String, gate: Gate) -> Result<(), Error> {
    let mut extent = Extent::Whole;
    let mut failures = Failures::default();
    let mut served = api.catalog.subscribe();
    loop {
        // Without a lease, the entries would be collected as those of a dead server. And the server must not register
        // under a name that another server has taken.
        lease(&api, own.server(), &holder).await?;
        served.mark_unchanged();
        let started = Instant::now();
        match api.register(&own, &extent).await {
            Ok(registered) => {
                let (server, took) = (own.server(), started.elapsed());
                match extent {
                    Extent::Since(_) => tracing::debug!(server, ?took, "registered what has changed"),
                    _ => tracing::info!(server, ?took, "registered storage versions"),
                }
                gate.registered();
                failures = Failures::default();
                extent = tokio::select! {
                    () = tokio::time::sleep(PASS) => Extent::Repair,
                    Ok(()) = served.changed() => {
                        tokio::time::sleep(TOGETHER).await;
                        Extent::Since(registered)
                    }
                    () = api.store.fenced() => {
                        tracing::warn!("this server has lost its registration, and registers again");
                        Extent::Whole
                    }
                };
            }
            Err(error) => {
                tracing::warn!(%error, "cannot register the storage versions of this server");
                // The registration itself may be gone.
                extent = Extent::Whole;
                let next = failures.add();
                gate.failed(next.told.then(|| error.for_clients()));
                tokio::time::sleep(next.pause).await;
            }
        }
    }
}

/// The number of attempts that have failed in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Failures(u32);

/// How to proceed after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Next {
    /// Whether clients are told why they wait.
    told: bool,
    pause: Duration,
}

impl Failures {
    /// Notes a failure. Upstream gives up on a resource for ten minutes after a round; here the pauses between attempts
    /// grow.
    fn add(&mut self) -> Next {
        self.0 += 1;
        let beyond = self.0.saturating_sub(ATTEMPTS).min(10);
        let pause = (BETWEEN_ATTEMPTS * 2u32.pow(beyond)).min(LONGEST_BACKOFF);
        Next { told: self.0 >= ATTEMPTS, pause }
    }
}

/// Waits until the server has its lease.
async fn lease(api: &Api, server: &str, holder: &str) -> Result<(), Error> {
    let Some(resource) = leases(api) else { return Ok(()) };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    while !is_held(api, &*api.cache.fresh().await?, server, holder) {
        watcher.changed().await;
        while !watcher.next().await?.is_empty() {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_version_27_the_third_failure_is_told() {
        let mut failures = Failures::default();
        let found: Vec<_> =
            (0..9).map(|_| failures.add()).map(|next| (next.told, next.pause.as_secs())).collect();
        let (quiet, told) = (|pause| (false, pause), |pause| (true, pause));
        let expected = [quiet(1), quiet(1), told(1), told(2), told(4), told(8), told(16), told(30), told(30)];
        assert_eq!(found, expected);
    }
}
