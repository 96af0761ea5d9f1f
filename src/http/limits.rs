//! Limits of all requests together: how many run at the same time, how many bytes of bodies are held, and how many long
//! answers are printed concurrently.

mod bodies;
mod past_reads;
mod statements;

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use crate::api::error::Error;
use crate::metrics::{InFlight, RequestKind};

pub use self::bodies::{BodyBudget, Room};
pub use self::past_reads::{PastRead, PastReads};
pub use self::statements::{SqlConfig, Statements};

/// How many requests may run at the same time, without long-running ones; 0 means no limit.
///
/// With Priority and Fairness these limits are nothing but the seats of its levels together, and what it exempts has none.
/// Without it, they are all there is, and members of `system:masters` are exempt, as in kube-apiserver.
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

/// Runs work that takes long on threads of its own, as many at a time as there are processors. Each cluster of a process has
/// a [part](Printing::part), as of its [lanes](crate::long_work::Lanes).
#[derive(Clone, Debug)]
pub struct Printing {
    own: Arc<Semaphore>,
    /// The threads of the process; `None` for these themselves.
    process: Option<Arc<Semaphore>>,
}

impl Default for Printing {
    fn default() -> Self {
        Self { own: Self::of_processors(), process: None }
    }
}

impl Printing {
    /// The threads of one cluster of the process whose threads these are.
    pub fn part(&self) -> Self {
        Self { own: Self::of_processors(), process: Some(self.own.clone()) }
    }

    fn of_processors() -> Arc<Semaphore> {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Arc::new(Semaphore::new(processors))
    }

    async fn turn(&self) -> Result<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>), AcquireError> {
        let own = self.own.clone().acquire_owned().await?;
        let process = match &self.process {
            Some(process) => Some(process.clone().acquire_owned().await?),
            None => None,
        };
        Ok((own, process))
    }

    pub async fn run<T: Send + 'static>(
        &self,
        print: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let turn = self.turn().await.map_err(|_| Error::shutting_down())?;
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
