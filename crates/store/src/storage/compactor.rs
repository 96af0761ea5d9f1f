//! Compaction on a timer: gives up history that is older than it has to be kept, then removes its rows in slices.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::commit::LARGEST_BATCH;
use super::history::retention::{raise_floors, trim};
use super::{Backend, PastError, Present, Retention, Swept};
use crate::metrics::Metrics;
use crate::revision::Revision;

/// The time that one slice should take: short enough that no writer notices the wait.
const AIM: Duration = Duration::from_millis(5);
/// The smallest slice. The batches in flight may be committed between two slices, so a slice removes more changes than
/// they can add: compaction keeps up with any rate of writes.
const LEAST: u32 = 4 * LARGEST_BATCH as u32;
/// The largest slice. At this size the fixed cost of a slice no longer matters.
const MOST: u32 = 8 * LEAST;

/// How long ago a version was superseded before it goes into a segment: an hour.
const SETTLED_MS: i64 = 3600 * 1000;

/// How long watches can be resumed and states can be read, and how often what is older is given up.
#[derive(Clone, Debug)]
pub struct Compaction {
    pub interval: Duration,
    /// The age of the watch horizon.
    pub history: Duration,
    /// How long states can be read; `None` for as long as watches can be resumed.
    pub retention: Option<Retention>,
}

/// The stamps of commits may be so many seconds ahead of the time of day without a warning.
const CLOCK_AHEAD: f64 = 5.0;

/// Compacts until cancelled. Every replica may run this: the later call finds nothing to do.
pub async fn compact_regularly(backend: Arc<dyn Backend>, config: Compaction, metrics: Arc<Metrics>) {
    let Compaction { interval, history, retention } = config;
    let (lag, backlog) = (metrics.compaction_lag(), metrics.compaction_backlog());
    let mut seen: VecDeque<(Instant, Revision)> = VecDeque::new();
    // The clock is noted five times as often as history is cut, so that the cut falls near the configured length.
    let note = interval.min(history).max(Duration::from_millis(50)) / 5;
    let mut due = Instant::now() + interval;
    loop {
        match backend.clock().await {
            Ok(clock) => {
                seen.push_back((Instant::now(), clock.revision));
                let kept = clock.revision.0 - clock.compacted.0;
                lag.set(kept as f64);
                // The backlog is reported even if this pass has failed or another server is sweeping.
                if let Ok(unswept) = backend.unswept().await {
                    backlog.set(unswept as f64);
                }
                note_stamps(&*backend, &metrics).await;
            }
            Err(error) => tracing::warn!(%error, "compaction: cannot read the clock"),
        }
        if Instant::now() >= due {
            due = Instant::now() + interval;
            let to = oldest_to_keep(&mut seen, history);
            if let Err(error) = compact_once(&*backend, to, retention.as_ref(), &metrics).await {
                tracing::warn!(%error, "compaction failed, will be tried again");
            }
        }
        tokio::time::sleep(note).await;
    }
}

/// Reports how far the stamps of commits are ahead of the time of day: if that has been set back, they stand still until it
/// has caught up.
async fn note_stamps(backend: &dyn Backend, metrics: &Metrics) {
    let Ok(Present { moment, now_ms }) = backend.present().await else { return };
    let ahead = (moment.committed_ms - now_ms).max(0) as f64 / 1000.0;
    metrics.commit_clock_ahead().set(ahead);
    if ahead > CLOCK_AHEAD {
        tracing::warn!(
            seconds = ahead,
            "the clock has been set back; until it has caught up, all commits are given the same time"
        );
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

/// Raises the watch horizon to `to`, if given, and the floors as far as the retention says; then removes rows slice by slice,
/// and returns the disk space.
pub async fn compact_once(
    backend: &dyn Backend,
    to: Option<Revision>,
    retention: Option<&Retention>,
    metrics: &Metrics,
) -> Result<(), PastError> {
    let backlog = metrics.compaction_backlog();
    if let Some(to) = to {
        backend.compact(to).await?;
    }
    raise_floors(backend, retention).await?;
    if let Some(retention) = retention {
        segment(backend).await?;
        trim(backend, retention, metrics).await?;
    }
    let (mut slice, mut swept) = (LEAST, 0);
    loop {
        backlog.set(backend.unswept().await? as f64);
        let Swept { changes, took } = backend.sweep(slice).await?;
        swept += changes;
        if changes < u64::from(slice) {
            break;
        }
        slice = next_slice(slice, took);
        tokio::task::yield_now().await;
    }
    backlog.set(backend.unswept().await? as f64);
    backend.thin().await?;
    backend.reclaim().await?;
    tracing::debug!(changes = swept, "compacted");
    Ok(())
}

/// Moves versions that were superseded some time ago into segments, slice by slice.
async fn segment(backend: &dyn Backend) -> Result<(), PastError> {
    let settled = backend.present().await?.now_ms - SETTLED_MS;
    let until = match backend.moment_at(settled).await {
        Ok(moment) => moment.revision.min(backend.clock().await?.compacted),
        Err(PastError::BeforeFirst) => return Ok(()),
        Err(error) => return Err(error),
    };
    while backend.segment(until).await? {
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The number of changes to sweep in the next slice so that it takes about [`AIM`], estimated from the last slice.
fn next_slice(slice: u32, took: Duration) -> u32 {
    let wanted = u128::from(slice) * AIM.as_nanos() / took.as_nanos().max(1);
    // The size changes by at most a factor of two: the first slice of a pass finds no page in memory and says little.
    let wanted = wanted.min(u128::from(slice) * 2).max(u128::from(slice) / 2) as u32;
    wanted.clamp(LEAST, MOST)
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
