//! The only task that changes the state: it applies the commits of this server as they complete, and reads the table of
//! changes for those of others, as the watch cache does (`rowplane_store::cache`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rowplane_store::storage::{ChangeRow, Error, OwnCommit, OwnWrite, SAFETY_GAP};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::lags::Sequence;
use super::rows::{Stored, Tables};
use super::state::{Applied, State};
use super::{Etcd, load};

/// Changes read from the table at a time.
const PAGE: u32 = 1000;
/// The pause after an error before the table is read again.
const PAUSE: Duration = Duration::from_millis(200);

/// The row that follows the state is missing.
struct Gap;

/// Runs until the writer is gone, or until its tasks are being stopped and its commits are published.
pub async fn run(etcd: Etcd, mut commits: mpsc::Receiver<OwnCommit>) {
    let mut feed = Feed { etcd, in_touch: true };
    let shared = feed.etcd.shared.clone();
    loop {
        let outcome = tokio::select! {
            biased;
            // Own commits come first: clients wait for them, and they make most reads of the table unnecessary.
            commit = commits.recv() => match commit {
                Some(commit) => {
                    feed.publish(commit).await;
                    Ok(())
                }
                None => return,
            },
            () = shared.runtime.tasks.stopping(), if !commits.is_closed() => {
                commits.close();
                Ok(())
            }
            () = shared.behind.notified() => feed.catch_up().await,
            () = feed.etcd.backend().hint() => feed.catch_up().await,
        };
        if let Err(error) = outcome {
            feed.warn(&error);
            sleep(PAUSE).await;
            shared.behind.notify_one();
        }
    }
}

struct Feed {
    etcd: Etcd,
    /// Whether the table could be read when it was tried last.
    in_touch: bool,
}

impl Feed {
    /// Applies a batch of this server and lets its writer go. What others have committed before it is read first,
    /// again and again until that succeeds.
    async fn publish(&mut self, commit: OwnCommit) {
        let OwnCommit { base, writes, published } = commit;
        let last = writes.last().map_or(base, |write| write.revision);
        let own: Option<Vec<Applied>> = writes.into_iter().map(own).collect();
        let known = if own.is_some() { base } else { last };
        while let Err(error) = self.reach(known).await {
            self.warn(&error);
            tokio::select! {
                () = sleep(PAUSE) => {}
                () = self.etcd.shared.runtime.tasks.stopping() => return,
            }
        }
        if self.take(own.unwrap_or_default()).await.is_ok() {
            let _ = published.send(());
        }
    }

    async fn reach(&mut self, base: Sequence) -> Result<(), Error> {
        let current = self.etcd.state().sequence;
        if current >= base {
            return Ok(());
        }
        self.catch_up().await?;
        let current = self.etcd.state().sequence;
        if current < base {
            return Err(Error::Future { requested: base, current });
        }
        Ok(())
    }

    /// Reads the table to its end.
    async fn catch_up(&mut self) -> Result<(), Error> {
        let shared = self.etcd.shared.clone();
        let backend = self.etcd.backend().clone();
        loop {
            let at = self.etcd.state().sequence;
            let changes = match backend.changes(at, None, PAGE).await {
                Ok(changes) => changes,
                Err(Error::Compacted { .. }) => return self.reload().await,
                Err(Error::Regressed { floor, found }) => {
                    tracing::error!(%floor, %found, "the database has lost commits; its clock is moved ahead");
                    backend.advance_clock(Sequence(floor.0 + SAFETY_GAP)).await?;
                    return self.reload().await;
                }
                Err(error) => return Err(error),
            };
            if !self.in_touch {
                // Other servers may have renewed leases meanwhile, or clients may have tried to.
                self.in_touch = true;
                shared.deadlines.begin(&self.etcd.state());
            }
            let read = |row| read(&shared.tables, row);
            self.take(changes.rows.into_iter().map(read).collect::<Result<_, _>>()?).await?;
            if !changes.cut {
                return match self.etcd.state().sequence < changes.through {
                    true => self.heal().await,
                    false => Ok(()),
                };
            }
        }
    }

    /// Applies changes in their order. If one is missing, loads the state anew.
    async fn take(&self, changes: Vec<Applied>) -> Result<(), Error> {
        match self.apply(changes)? {
            Ok(()) => Ok(()),
            Err(Gap) => self.heal().await,
        }
    }

    fn apply(&self, changes: Vec<Applied>) -> Result<Result<(), Gap>, Error> {
        let shared = &self.etcd.shared;
        let mut state = (*self.etcd.state()).clone();
        let (mut events, mut rows, mut leases) = (Vec::new(), Vec::new(), BTreeSet::new());
        let mut gap = Ok(());
        for change in changes {
            if change.sequence <= state.sequence {
                continue;
            }
            if change.sequence.0 != state.sequence.0 + 1 {
                gap = Err(Gap);
                break;
            }
            if change.key.resource == shared.tables.leases {
                rows.push(change.key.name.clone());
            }
            let event = state.apply(&shared.tables, change)?;
            let put = event.as_ref().and_then(|event| event.kv.as_ref());
            leases.extend(
                put.map(|kv| kv.lease).filter(|lease| !state.leases.contains_key(lease) && *lease != 0),
            );
            events.extend(event);
        }
        shared.events.append(events);
        self.swap(state);
        shared.deadlines.follow(&self.etcd.state(), &rows, &leases);
        Ok(gap)
    }

    fn swap(&self, state: State) {
        let shared = &self.etcd.shared;
        let sequence = state.sequence;
        shared.mark.raise(sequence);
        shared.state.store(Arc::new(state));
        shared.progress.send_replace(sequence);
    }

    /// Loads the state from the rows themselves, since the table lacks a change that it should have.
    async fn heal(&self) -> Result<(), Error> {
        let at = self.etcd.state().sequence;
        tracing::error!(%at, "the changefeed has a gap; the state of etcd's API is loaded anew");
        self.reload().await
    }

    /// Loads the state anew. Watches that are behind learn from the store that the history in between is gone.
    async fn reload(&self) -> Result<(), Error> {
        let shared = &self.etcd.shared;
        let state = load::load(&**self.etcd.backend(), &shared.tables).await?;
        let (floor, found) = (self.etcd.state().sequence, state.sequence);
        if found < floor {
            return Err(Error::Regressed { floor, found });
        }
        shared.deadlines.begin(&state);
        shared.events.reset(found);
        self.swap(state);
        if found.0 - floor.0 >= SAFETY_GAP {
            // The clock has been moved ahead. The write comes back to this task, which does not wait for it.
            let etcd = self.etcd.clone();
            shared.runtime.tasks.spawn("etcd-term", async move { etcd.raise_term().await });
        }
        Ok(())
    }

    fn warn(&mut self, error: &Error) {
        self.in_touch = false;
        tracing::warn!(%error, "cannot read the changefeed for etcd's API, will try again");
    }
}

/// A write of this server; `None` if its row came as bytes.
fn own(write: OwnWrite) -> Option<Applied> {
    let OwnWrite { revision: sequence, key, object, counting } = write;
    let row = match object {
        Some(object) => Some(Stored::clone(object.downcast_ref()?)),
        None => None,
    };
    Some(Applied { sequence, key, counting, row })
}

/// A write of another server, or of another part of this one.
fn read(tables: &Tables, row: ChangeRow) -> Result<Applied, Error> {
    let ChangeRow { revision: sequence, key, value, counting, .. } = row;
    let value = value.filter(|_| tables.has(key.resource));
    let row = value.map(|value| tables.decode(key.resource, &value)).transpose()?;
    Ok(Applied { sequence, key, counting, row: row.map(|(_, row)| row) })
}
