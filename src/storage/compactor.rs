//! Compaction by the clock on the wall: history older than it has to be kept is given up, then its rows go in slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backend, Error};
use crate::revision::Revision;

/// Changes swept in one transaction: small enough that no writer waits noticeably.
const SLICE: u32 = 500;

/// How long history is kept, and how often the rest is given up.
#[derive(Clone, Copy, Debug)]
pub struct Compaction {
    pub interval: Duration,
    pub history: Duration,
}

/// Compacts until cancelled. Every replica may run this: the later call finds nothing to do.
pub async fn compact_regularly(backend: Arc<dyn Backend>, config: Compaction) {
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    // The clock is noted more often than it is acted upon, so that history is cut near its length.
    let note = config.interval.min(config.history).max(Duration::from_millis(50)) / 5;
    let mut due = Instant::now() + config.interval;
    loop {
        match backend.clock().await {
            Ok(clock) => {
                seen.push_back((Instant::now(), clock.revision));
                let kept = clock.revision.0 - clock.compacted.0;
                metrics::gauge!("rowplane_compaction_lag_revisions").set(kept as f64);
            }
            Err(error) => tracing::warn!(%error, "compaction: cannot read the clock"),
        }
        if Instant::now() >= due {
            due = Instant::now() + config.interval;
            if let Some(to) = oldest_to_keep(&mut seen, config.history)
                && let Err(error) = compact_once(&*backend, to).await
            {
                tracing::warn!(%error, revision = %to, "compaction failed, will be tried again");
            }
        }
        tokio::time::sleep(note).await;
    }
}

/// The newest revision noted at least `history` ago.
fn oldest_to_keep(seen: &mut VecDeque<(Instant, Revision)>, history: Duration) -> Option<Revision> {
    let mut found = None;
    while let Some((at, revision)) = seen.front() {
        if at.elapsed() < history {
            break;
        }
        found = Some(*revision);
        seen.pop_front();
    }
    found
}

/// Gives up history before `to`, then removes its rows slice by slice and gives the space back.
pub async fn compact_once(backend: &dyn Backend, to: Revision) -> Result<(), Error> {
    let clock = backend.compact(to).await?;
    let mut swept = 0;
    loop {
        let slice = backend.sweep(SLICE).await?;
        swept += slice;
        if slice < u64::from(SLICE) {
            break;
        }
        tokio::task::yield_now().await;
    }
    backend.reclaim().await?;
    tracing::debug!(compacted = %clock.compacted, changes = swept, "compacted");
    Ok(())
}
