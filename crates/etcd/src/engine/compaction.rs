//! Compaction: the revision before which states are gone is kept first, and rows go afterwards.
//!
//! A watch may start at that revision and gets its events, so the store keeps the changes of it: its horizon is the
//! end of the revision before.

use std::collections::VecDeque;
use std::time::Duration;

use rowplane_store::storage::{Counting, compact_once};
use tokio::time::{Instant, sleep_until};

use super::rows::{Stored, expect};
use super::{Error, Etcd, notes};
use crate::wire::messages::{CompactionRequest, CompactionResponse};

/// How often the mode `revision` looks.
const LOOK: Duration = Duration::from_secs(300);
/// The pause before a compaction that failed is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// The history that is compacted without being asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoCompaction {
    Off,
    /// History that is older than this.
    Periodic(Duration),
    /// All but so many revisions.
    Revision(i64),
}

impl Default for AutoCompaction {
    fn default() -> Self {
        Self::Periodic(Duration::from_secs(3600))
    }
}

impl AutoCompaction {
    fn interval(self) -> Duration {
        match self {
            // Nothing is compacted, and nobody has to look often.
            Self::Off => LOOK,
            // The history that is kept is at most a tenth longer than it has to be.
            Self::Periodic(retention) => (retention / 10).max(Duration::from_millis(50)),
            Self::Revision(_) => LOOK,
        }
    }
}

impl Etcd {
    pub async fn compact(&self, request: CompactionRequest) -> Result<CompactionResponse, Error> {
        let CompactionRequest { revision, physical } = request;
        loop {
            let state = self.newest().await?;
            if revision <= state.compacted {
                return Err(Error::Compacted);
            }
            if revision > state.revision() {
                return Err(Error::Future);
            }
            let seen = state.notes.get(notes::COMPACTION).map(|note| note.sequence);
            let row = Stored::Note(notes::of_number(revision as u64));
            let key = self.shared.tables.note(notes::COMPACTION);
            if self.commit_rows(vec![row.put(key, expect(seen), Counting::None)]).await?.is_some() {
                break;
            }
        }
        match physical {
            true => self.sweep().await?,
            false => self.shared.sweep.notify_one(),
        }
        Ok(CompactionResponse { header: Some(self.newest_header()) })
    }

    /// Removes what is compacted.
    async fn sweep(&self) -> Result<(), Error> {
        let state = self.state();
        if state.compacted < 1 {
            return Ok(());
        }
        let horizon = match self.sequence_of(&state, state.compacted - 1).await {
            Ok(horizon) => Some(horizon),
            // It has been raised that far already.
            Err(Error::Compacted) => None,
            Err(error) => return Err(error),
        };
        if let Some(horizon) = horizon {
            self.shared.kept.forget(horizon);
        }
        let swept = compact_once(&**self.backend(), horizon, None, &self.shared.runtime.metrics).await;
        swept.map_err(|error| match error {
            rowplane_store::storage::PastError::Store(error) => error.into(),
            other => Error::Corrupt(other.to_string().into()),
        })
    }
}

/// Sweeps what has been compacted, and compacts what is too old.
pub async fn run(etcd: Etcd) {
    let config = etcd.shared.config.auto_compaction;
    let mut seen: VecDeque<(Instant, i64)> = VecDeque::new();
    let mut due = Instant::now() + config.interval();
    // A server may have been stopped before it had swept.
    let mut sweeps = true;
    loop {
        if sweeps && let Err(error) = etcd.sweep().await {
            tracing::warn!(%error, "compaction failed, will be tried again");
            sleep_until(Instant::now() + PAUSE).await;
            continue;
        }
        sweeps = tokio::select! {
            () = etcd.shared.sweep.notified() => true,
            () = sleep_until(due) => false,
        };
        if !sweeps {
            due = Instant::now() + config.interval();
            seen.push_back((Instant::now(), etcd.state().revision()));
            if let Some(revision) = too_old(config, &mut seen) {
                let request = CompactionRequest { revision, physical: false };
                match etcd.compact(request).await {
                    // Another server or a client may have compacted as far.
                    Ok(_) | Err(Error::Compacted) => {}
                    Err(error) => tracing::warn!(%error, "compaction failed, will be tried again"),
                }
            }
        }
    }
}

/// The newest revision that need not be kept, if there is one.
fn too_old(config: AutoCompaction, seen: &mut VecDeque<(Instant, i64)>) -> Option<i64> {
    match config {
        AutoCompaction::Off => {
            seen.clear();
            None
        }
        AutoCompaction::Revision(kept) => {
            let (_, newest) = seen.drain(..).next_back()?;
            Some(newest - kept).filter(|revision| *revision > 0)
        }
        AutoCompaction::Periodic(retention) => {
            let mut found = None;
            while let Some((at, revision)) = seen.front()
                && at.elapsed() >= retention
            {
                found = Some(*revision);
                seen.pop_front();
            }
            found
        }
    }
}
