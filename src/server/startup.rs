//! A server whose listener runs, but whose application is not ready.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::credentials::OwnCertificate;
use crate::cache::LoadProgress;
use crate::http::health::{Endpoint, HealthChecks};
use crate::http::server::Ending;
use crate::tasks::Tasks;

/// Stops a server whose start did not finish, even if the start is cancelled.
pub struct Unfinished(Option<(Tasks, Ending)>);

impl Unfinished {
    pub fn new(tasks: &Tasks, ending: &Ending) -> Self {
        Self(Some((tasks.clone(), ending.clone())))
    }

    pub fn finish(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some((tasks, ending)) = self.0.take() {
            tasks.stop();
            ending.abort();
        }
    }
}

/// The progress of the start.
#[derive(Clone, Default)]
pub struct Startup {
    pub progress: LoadProgress,
    finished: Arc<AtomicBool>,
}

impl Startup {
    pub fn finish(&self) {
        self.finished.store(true, Ordering::Release);
    }

    fn check(&self) -> Result<(), String> {
        if self.finished.load(Ordering::Acquire) { Ok(()) } else { Err(self.progress.to_string()) }
    }
}

/// The health checks that exist from the first request on.
pub fn health(stopping: &CancellationToken, startup: &Startup, own: Option<OwnCertificate>) -> HealthChecks {
    let mut health = HealthChecks::default();
    if let Some(own) = own {
        health.add("loopback-serving-certificate", &[Endpoint::Healthz, Endpoint::Livez], move || {
            let result = own.check();
            async { result }
        });
    }
    let startup = startup.clone();
    health.add("startup", &[Endpoint::Readyz, Endpoint::Healthz], move || {
        let result = startup.check();
        async { result }
    });
    let stopping = stopping.clone();
    health.add("shutdown", &[Endpoint::Readyz], move || {
        let result =
            if stopping.is_cancelled() { Err("process is shutting down".to_owned()) } else { Ok(()) };
        async { result }
    });
    health
}
