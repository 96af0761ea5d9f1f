//! Statements of SQL at a time: each has a thread, and few may wait for one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout_at;

use crate::api::error::Error;
use crate::metrics::SqlMetrics;

/// Statements that may wait for a thread.
const MOST_WAITING: usize = 16;

/// The settings of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlConfig {
    pub is_on: bool,
    /// The longest time of a statement, with that of sending its rows.
    pub timeout: Duration,
    /// The most statements at a time.
    pub concurrent: usize,
}

impl Default for SqlConfig {
    fn default() -> Self {
        Self { is_on: true, timeout: Duration::from_secs(30), concurrent: 2 }
    }
}

/// The statements of a server: how many there may be.
pub struct Statements {
    pub config: SqlConfig,
    threads: Arc<Semaphore>,
    waiting: AtomicUsize,
    pub metrics: SqlMetrics,
}

impl Statements {
    pub fn new(config: SqlConfig, metrics: SqlMetrics) -> Self {
        let threads = Arc::new(Semaphore::new(config.concurrent));
        Self { config, threads, waiting: AtomicUsize::new(0), metrics }
    }

    /// Waits for a thread, as long as the statement's time lasts and not too many wait.
    pub async fn thread(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Error> {
        if let Ok(permit) = self.threads.clone().try_acquire_owned() {
            return Ok(permit);
        }
        let _place = Place::take(&self.waiting)?;
        let waiting = self.threads.clone().acquire_owned();
        match timeout_at(deadline.into(), waiting).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(Error::shutting_down()),
            Err(_) => Err(busy()),
        }
    }
}

/// A statement's place among those that wait.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize) -> Result<Self, Error> {
        let place = Self(waiting);
        match waiting.fetch_add(1, Ordering::SeqCst) < MOST_WAITING {
            true => Ok(place),
            false => Err(busy()),
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn busy() -> Error {
    Error::TooManyRequests { message: "too many statements run at this time".to_owned(), retry_after: 1 }
}
