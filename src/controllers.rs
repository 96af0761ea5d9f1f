//! Loops that use the API as any client would: they empty namespaces, collect garbage, and expire events.
//!
//! Every replica runs all of them. What they do is idempotent and guarded by preconditions, so two at a time cost
//! work and nothing else.

mod bootstrap;
mod events;
mod garbage;
mod namespaces;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api::Api;
use crate::api::error::Error;

pub use bootstrap::create_system_namespaces;

/// A controller that failed is started again after this.
const RESTART: Duration = Duration::from_secs(1);

/// Settings of the controllers.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long an event is kept after it was last seen.
    pub event_ttl: Duration,
}

/// Starts all controllers; they end when `stop` is cancelled.
pub fn spawn(api: &Arc<Api>, config: Config, stop: &CancellationToken, tasks: &TaskTracker) {
    let run = |name, start: fn(Arc<Api>, Config) -> BoxFuture<'static, Result<(), Error>>| {
        let (api, stop) = (api.clone(), stop.clone());
        tasks.spawn(async move {
            let supervised = supervise(name, || start(api.clone(), config));
            let _ = stop.run_until_cancelled(supervised).await;
        });
    };
    run("namespaces", |api, _| Box::pin(namespaces::run(api)));
    run("garbage-collector", |api, _| Box::pin(garbage::run(api)));
    run("event-expiry", |api, config| Box::pin(events::run(api, config.event_ttl)));
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
