//! Compaction on a timer: gives up history that is older than it has to be kept, then removes its rows in slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use metrics::Gauge;
use tokio::time::Instant;

use super::commit::LARGEST_BATCH;
use super::{Backend, Clock, Error, Swept};
use crate::metrics::Metrics;
use crate::revision::Revision;

/// The time that one slice should take: short enough that no writer notices the wait.
const AIM: Duration = Duration::from_millis(5);
/// The smallest slice. The batches in flight may be committed between two slices, so a slice removes more changes than
/// they can add: compaction keeps up with any rate of writes.
const LEAST: u32 = 4 * LARGEST_BATCH as u32;
/// The largest slice. At this size the fixed cost of a slice no longer matters.
const MOST: u32 = 8 * LEAST;

/// How long history is kept, and how often older history is given up.
#[derive(Clone, Copy, Debug)]
pub struct Compaction {
    pub interval: Duration,
    pub history: Duration,
}

/// Compacts until cancelled. Every replica may run this: the later call finds nothing to do.
pub async fn compact_regularly(backend: Arc<dyn Backend>, config: Compaction, metrics: Arc<Metrics>) {
    let (lag, backlog) = (metrics.compaction_lag(), metrics.compaction_backlog());
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    // The clock is noted five times as often as history is cut, so that the cut falls near the configured length.
    let note = config.interval.min(config.history).max(Duration::from_millis(50)) / 5;
    let mut due = Instant::now() + config.interval;
    loop {
        match backend.clock().await {
            Ok(clock) => {
                seen.push_back((Instant::now(), clock.revision));
                let kept = clock.revision.0 - clock.compacted.0;
                lag.set(kept as f64);
                // The backlog is reported even if this pass has failed or another server is sweeping.
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

/// The newest revision that was noted at least `history` ago.
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

/// Gives up history before `to`, then removes its rows slice by slice and returns the disk space.
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

/// The number of changes to sweep in the next slice so that it takes about [`AIM`], estimated from the last slice.
fn next_slice(slice: u32, took: Duration) -> u32 {
    let wanted = u128::from(slice) * AIM.as_nanos() / took.as_nanos().max(1);
    // The size changes by at most a factor of two: the first slice of a pass finds no page in memory and says little.
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
