//! Loops that use the API as any client would: they empty namespaces, collect garbage, expire events, sweep up what
//! Services had been given, and keep the leases by which servers know of each other.
//!
//! Every replica runs all of them. What they do is idempotent and guarded by preconditions, so two at a time cost
//! work and nothing else.

mod bootstrap;
mod events;
mod garbage;
mod identity_lease;
pub mod identity_lease_gc;
mod namespaces;
mod service_claims;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::api::error::Error;
use crate::identity::ServerIdentity;

pub use bootstrap::create_system_namespaces;

/// A controller that failed is started again after this.
const RESTART: Duration = Duration::from_secs(1);

/// Settings of the controllers.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long an event is kept after it was last seen.
    pub event_ttl: Duration,
}

/// How servers tell each other that they are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityLeases {
    /// How long after its last heartbeat a server counts as alive.
    pub duration_seconds: u32,
    /// Between heartbeats; each waits up to 4 % longer.
    pub renew_interval: Duration,
    /// Between two looks for leases that have expired.
    pub gc_period: Duration,
}

/// Starts all controllers but those of the identity; they end when `stop` is cancelled.
pub fn spawn(api: &Arc<Api>, config: Config, stop: &CancellationToken, tasks: &TaskTracker) {
    let runner = Runner { api, stop, tasks };
    runner.run("namespaces", |api| Box::pin(namespaces::run(api)));
    runner.run("garbage-collector", |api| Box::pin(garbage::run(api)));
    runner.run("service-claims", |api| Box::pin(service_claims::run(api)));
    runner.run("event-expiry", move |api| Box::pin(events::run(api, config.event_ttl)));
}

/// Starts the heartbeat of this server and the collection of those that have none any more.
pub fn spawn_identity(
    api: &Arc<Api>,
    identity: ServerIdentity,
    leases: IdentityLeases,
    stop: &CancellationToken,
    tasks: &TaskTracker,
) {
    let runner = Runner { api, stop, tasks };
    runner.run("identity-lease", move |api| Box::pin(identity_lease::run(api, identity.clone(), leases)));
    runner.run("identity-lease-gc", move |api| Box::pin(identity_lease_gc::run(api, leases.gc_period)));
}

struct Runner<'a> {
    api: &'a Arc<Api>,
    stop: &'a CancellationToken,
    tasks: &'a TaskTracker,
}

impl Runner<'_> {
    /// Keeps a controller running until it is stopped.
    fn run(
        &self,
        name: &'static str,
        start: impl Fn(Arc<Api>) -> BoxFuture<'static, Result<(), Error>> + Send + Sync + 'static,
    ) {
        let (api, stop) = (self.api.clone(), self.stop.clone());
        self.tasks.spawn(async move {
            let supervised = supervise(name, || start(api.clone()));
            let _ = stop.run_until_cancelled(supervised).await;
        });
    }
}

/// Runs a controller for ever.
async fn supervise(name: &str, start: impl Fn() -> BoxFuture<'static, Result<(), Error>>) {
    loop {
        match start().await {
            Ok(()) => tracing::warn!(controller = name, "ended, will be started again"),
            Err(error) => tracing::warn!(controller = name, %error, "failed, will be started again"),
        }
        tokio::time::sleep(RESTART).await;
    }
}
