//! What all requests together may cost: how many are worked on, how many bytes of bodies are held, how many long answers
//! are printed at once.

use std::sync::Arc;
use std::time::Duration;

use metrics::Counter;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::error::Error;
use crate::metrics::{InFlight, RequestKind};

/// Bodies up to this length are held without asking: the number of requests in flight bounds them well enough.
const SMALL_BODY: u64 = 16 << 10;
/// What bodies are accounted in.
const UNIT: u64 = 1 << 10;
/// A request waits this part of its time for others' bodies, as upstream's wait in line for their turn.
const WAIT: u32 = 4;

/// Requests that are worked on at once, long-running ones apart; 0 is no limit.
///
/// kube-apiserver lets members of `system:masters` pass. Here nobody else may do anything, so they do not pass.
#[derive(Clone, Copy, Debug)]
pub struct InFlightLimits {
    pub reading: usize,
    pub mutating: usize,
}

impl InFlightLimits {
    /// Whether a request is one too many.
    pub fn are_reached(&self, kind: RequestKind, request: &InFlight) -> bool {
        let limit = match kind {
            RequestKind::ReadOnly => self.reading,
            RequestKind::Mutating => self.mutating,
        };
        limit > 0 && request.others >= limit
    }
}

/// Bytes of request bodies that are held at once.
#[derive(Debug)]
pub struct BodyBudget {
    units: Semaphore,
    all: u32,
    /// Of one body.
    largest: u64,
    wait: Duration,
    /// Bodies that waited in vain.
    refused: Counter,
}

impl BodyBudget {
    /// `largest` is the longest body that is read, `request_time` what a request may take.
    pub fn new(bytes: usize, largest: usize, request_time: Duration, refused: Counter) -> Self {
        let all = u32::try_from((bytes as u64).div_ceil(UNIT)).unwrap_or(u32::MAX).max(1);
        let units = Semaphore::new(all as usize);
        Self { units, all, largest: largest as u64, wait: request_time / WAIT, refused }
    }

    /// Reserves room for a body of this length before it is read; held until the request is answered. Whoever does not
    /// get it waits in line.
    pub async fn reserve(&self, length: Option<u64>) -> Result<Option<SemaphorePermit<'_>>, Error> {
        // One that does not say how long it is may become as long as any.
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

/// Runs what would hold a thread of the runtime for long on threads of its own, as many at once as there are processors.
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
            // Also when nobody waits any more.
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
