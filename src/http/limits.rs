//! Limits of all requests together: how many run at the same time, how many bytes of bodies are held, and how many long
//! answers are printed concurrently.

use std::sync::Arc;
use std::time::Duration;

use metrics::Counter;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::error::Error;
use crate::metrics::{InFlight, RequestKind};

/// Bodies up to this length are not counted; the number of requests in flight is limit enough for them.
const SMALL_BODY: u64 = 16 << 10;
/// The unit in which bodies are counted.
const UNIT: u64 = 1 << 10;
/// The part of its time for which a request waits for room for its body, as upstream's requests wait in a queue.
const WAIT: u32 = 4;

/// How many requests may run at the same time, without long-running ones; 0 means no limit.
///
/// With Priority and Fairness these limits stand beneath it, for those that it exempts. Without it, they are all there is,
/// and members of `system:masters` are exempt, as in kube-apiserver.
#[derive(Clone, Copy, Debug)]
pub struct InFlightLimits {
    pub reading: usize,
    pub mutating: usize,
}

impl InFlightLimits {
    /// Whether the request exceeds the limit.
    pub fn are_reached(&self, kind: RequestKind, request: &InFlight) -> bool {
        let limit = match kind {
            RequestKind::ReadOnly => self.reading,
            RequestKind::Mutating => self.mutating,
        };
        limit > 0 && request.others >= limit
    }
}

/// How many bytes of request bodies may be held at the same time.
#[derive(Debug)]
pub struct BodyBudget {
    units: Semaphore,
    all: u32,
    /// The largest size of one body.
    largest: u64,
    wait: Duration,
    /// Counts bodies that waited in vain.
    refused: Counter,
}

impl BodyBudget {
    /// `largest` is the longest body that is read, `request_time` the longest duration of a request.
    pub fn new(bytes: usize, largest: usize, request_time: Duration, refused: Counter) -> Self {
        let all = u32::try_from((bytes as u64).div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
        let units = Semaphore::new(all as usize);
        Self { units, all, largest: largest as u64, wait: request_time / WAIT, refused }
    }

    /// Reserves room for a body of this length before it is read, until the request is answered. If there is not enough
    /// room, waits for it.
    pub async fn reserve(&self, length: Option<u64>) -> Result<Option<SemaphorePermit<'_>>, Error> {
        // A body of unknown length may have any length.
        let length = length.unwrap_or(self.largest).min(self.largest);
        if length <= SMALL_BODY {
            return Ok(None);
        }
        let units = u32::try_from(length.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.all);
        let waited = tokio::time::timeout(self.wait, self.units.acquire_many(units)).await;
        match waited {
            Ok(permit) => permit.map(Some).map_err(|_| Error::shutting_down()),
            Err(_) => {
                self.refused.increment(1);
                Err(Error::too_many("bytes of request bodies"))
            }
        }
    }
}

/// Runs work that takes long on threads of its own, as many at a time as there are processors.
#[derive(Clone, Debug)]
pub struct Printing(Arc<Semaphore>);

impl Default for Printing {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self(Arc::new(Semaphore::new(processors)))
    }
}

impl Printing {
    pub async fn run<T: Send + 'static>(
        &self,
        print: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.0.clone().acquire_owned().await.map_err(|_| Error::shutting_down())?;
        let printed = tokio::task::spawn_blocking(move || {
            // The permit is held until the work ends, even if nobody waits for it any more.
            let _turn = turn;
            print()
        });
        printed.await.map_err(|error| match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Error::shutting_down(),
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn bodies_wait_in_line_for_room() {
        let budget = BodyBudget::new(64 << 10, 64 << 10, Duration::from_secs(60), Counter::noop());
        let (small, large) = (Some(16 << 10), Some(40 << 10));
        let held = budget.reserve(large).await.expect("room");
        assert!(held.is_some());
        assert!(budget.reserve(small).await.expect("asks for none").is_none());
        let mut waiting = Box::pin(budget.reserve(large));
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(held);
        assert!(waiting.await.expect("room").is_some());
    }

    #[tokio::test]
    async fn who_waits_too_long_is_told_to_come_again() {
        let budget = BodyBudget::new(64 << 10, 64 << 10, Duration::from_millis(4), Counter::noop());
        let unknown = None;
        let _held = budget.reserve(unknown).await.expect("room");
        let refused = budget.reserve(Some(17 << 10)).await.map(drop);
        assert_eq!(refused, Err(Error::too_many("bytes of request bodies")));
    }

    #[tokio::test]
    async fn a_body_beyond_the_whole_budget_passes_alone() {
        let budget = BodyBudget::new(1 << 10, 1 << 20, Duration::from_secs(60), Counter::noop());
        let held = budget.reserve(Some(1 << 20)).await.expect("all there is");
        assert!(budget.reserve(Some(1 << 20)).now_or_never().is_none());
        drop(held);
        assert!(budget.reserve(Some(1 << 20)).await.expect("room").is_some());
    }
}
