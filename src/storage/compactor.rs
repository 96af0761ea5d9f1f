//! Compaction by the clock on the wall: history older than it has to be kept is given up, then its rows go in slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use metrics::Gauge;
use tokio::time::Instant;

use super::commit::LARGEST_BATCH;
use super::{Backend, Clock, Error, Swept};
use crate::metrics::Metrics;
use crate::revision::Revision;

/// A slice takes about this long, so that no writer waits noticeably.
const AIM: Duration = Duration::from_millis(5);
/// Between two slices the batches in flight may be committed: a slice takes away more than they can add, so that
/// compaction keeps up with whatever is written.
const LEAST: u32 = 4 * LARGEST_BATCH as u32;
/// Enough to make what a slice costs by itself small.
const MOST: u32 = 8 * LEAST;

/// How long history is kept, and how often the rest is given up.
#[derive(Clone, Copy, Debug)]
pub struct Compaction {
    pub interval: Duration,
    pub history: Duration,
}

/// Compacts until cancelled. Every replica may run this: the later call finds nothing to do.
pub async fn compact_regularly(backend: Arc<dyn Backend>, config: Compaction, metrics: Arc<Metrics>) {
    let (lag, backlog) = (metrics.compaction_lag(), metrics.compaction_backlog());
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    // The clock is noted more often than it is acted upon, so that history is cut near its length.
    let note = config.interval.min(config.history).max(Duration::from_millis(50)) / 5;
    let mut due = Instant::now() + config.interval;
    loop {
        match backend.clock().await {
            Ok(clock) => {
                seen.push_back((Instant::now(), clock.revision));
                let kept = clock.revision.0 - clock.compacted.0;
                lag.set(kept as f64);
                // Also when the last pass has failed, or another server's is at work.
                if let Ok(oldest) = backend.oldest_change().await {
                    backlog.set(behind(clock, oldest));
                }
            }
            Err(error) => tracing::warn!(%error, "compaction: cannot read the clock"),
        }
        if Instant::now() >= due {
            due = Instant::now() + config.interval;
            if let Some(to) = oldest_to_keep(&mut seen, config.history)
                && let Err(error) = compact_once(&*backend, to, &backlog).await
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
pub async fn compact_once(backend: &dyn Backend, to: Revision, backlog: &Gauge) -> Result<(), Error> {
    let clock = backend.compact(to).await?;
    let (mut slice, mut swept) = (LEAST, 0);
    loop {
        backlog.set(behind(clock, backend.oldest_change().await?));
        let Swept { changes, took } = backend.sweep(slice).await?;
        swept += changes;
        if changes < u64::from(slice) {
            break;
        }
        slice = next_slice(slice, took);
        tokio::task::yield_now().await;
    }
    backlog.set(behind(clock, backend.oldest_change().await?));
    backend.reclaim().await?;
    tracing::debug!(compacted = %clock.compacted, changes = swept, "compacted");
    Ok(())
}

/// As many changes as should take [`AIM`], from what these have taken.
fn next_slice(slice: u32, took: Duration) -> u32 {
    let wanted = u128::from(slice) * AIM.as_nanos() / took.as_nanos().max(1);
    // Not at once: the first slice of a pass finds no page in memory.
    let wanted = wanted.min(u128::from(slice) * 2).max(u128::from(slice) / 2) as u32;
    wanted.clamp(LEAST, MOST)
}

/// Compacted revisions whose rows have not been removed yet.
fn behind(clock: Clock, oldest: Option<Revision>) -> f64 {
    oldest.map_or(0, |oldest| (clock.compacted.0 + 1).saturating_sub(oldest.0)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_grow_while_they_are_quick_and_never_fall_behind() {
        let quick = next_slice(LEAST, AIM / 100);
        assert_eq!(quick, 2 * LEAST);
        assert_eq!(next_slice(quick, AIM), quick);
        assert_eq!(next_slice(quick, AIM * 100), LEAST);
        assert_eq!(next_slice(LEAST, AIM * 100), LEAST);
        assert_eq!(next_slice(MOST, Duration::ZERO), MOST);
    }
}
