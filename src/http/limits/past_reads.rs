//! How many reads of the past run at the same time: each is a query of the database, which others need, too.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::api::error::Error;

/// The reads of the past that may run at the same time.
#[derive(Clone, Debug)]
pub struct PastReads(Arc<Semaphore>);

/// A read that runs, until this is dropped.
pub struct PastRead {
    _permit: OwnedSemaphorePermit,
}

impl PastReads {
    pub fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for its turn; 429 if that does not come in time.
    pub async fn turn(&self, until: Instant) -> Result<PastRead, Error> {
        match timeout_at(until, self.0.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(PastRead { _permit: permit }),
            Ok(Err(_)) => Err(Error::shutting_down()),
            Err(_) => {
                let message = "too many reads of the past at a time, please try again later".to_owned();
                Err(Error::TooManyRequests { message, retry_after: 1 })
            }
        }
    }
}
