//! Syncing the write-ahead log.
//!
//! SQLite itself syncs the log only around checkpoints (`synchronous = NORMAL`). That keeps the file consistent in
//! every case, but a crash may lose the latest commits. So commits are synced here, while the next transaction already
//! runs; neither the writer nor a reader learns of a commit before it is synced.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use tokio::sync::oneshot;

use super::failure::Failure;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;
use crate::scheduling;
use crate::storage::Error;

/// A file that can be synced.
pub trait Flush: Send + Sync {
    fn flush(&self) -> io::Result<()>;
}

impl Flush for File {
    fn flush(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file that is synced through one descriptor for as long as the store is open: the kernel reports an error once to
/// each descriptor, and perhaps not at all to one that is opened later.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    name: &'static str,
    file: Arc<dyn Flush>,
    syncs: SyncThread,
    failure: Failure,
}

impl Log {
    /// `name` is what errors call the file.
    pub fn new(name: &'static str, file: Arc<dyn Flush>, syncs: &SyncThread, failure: Failure) -> Self {
        Self(Arc::new(Inner { name, file, syncs: syncs.clone(), failure }))
    }

    /// Syncs the file, unless a sync has failed before: after that, a successful sync proves nothing.
    pub async fn flush(&self) -> Result<(), Error> {
        let (done, outcome) = oneshot::channel();
        let asked = self.0.syncs.0.send(Request { log: self.clone(), done });
        let ended = || self.0.failed(&"the thread for that has ended");
        asked.map_err(|_| ended())?;
        outcome.await.unwrap_or_else(|_| Err(ended()))
    }
}

impl Inner {
    fn flush(&self) -> Result<(), Error> {
        self.failure.check()?;
        self.file.flush().map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &dyn std::fmt::Display) -> Error {
        self.failure.set(format!("{} could not be synced: {error}", self.name))
    }
}

/// The thread that syncs the files of a store. Every commit waits for it twice: until it begins, and until it has noticed that
/// the disk is done; so it is not one of those that compute.
#[derive(Clone)]
pub struct SyncThread(mpsc::Sender<Request>);

struct Request {
    log: Log,
    done: oneshot::Sender<Result<(), Error>>,
}

impl SyncThread {
    /// It ends with the last clone.
    pub fn start() -> io::Result<Self> {
        let (syncs, asked) = mpsc::channel::<Request>();
        let run = move || {
            scheduling::run_soon();
            while let Ok(Request { log: Log(log), done }) = asked.recv() {
                // An error is noted here: whoever has asked may have been cancelled.
                let _ = done.send(log.flush());
            }
        };
        std::thread::Builder::new().name("rowplane-sync".into()).spawn(run)?;
        Ok(Self(syncs))
    }
}

/// The newest commit, and the newest commit that is on the disk.
#[derive(Default)]
pub struct Progress {
    marks: Mutex<Marks>,
    /// Held while syncing. Waiting callers take turns in the order of their commits; usually the sync before theirs has
    /// covered their commit already.
    turns: tokio::sync::Mutex<()>,
}

#[derive(Clone, Copy, Default)]
struct Marks {
    committed: Mark,
    flushed: Mark,
}

/// A point in the order of commits.
#[derive(Clone, Copy, Default)]
pub struct Mark {
    number: u64,
    revision: Revision,
}

impl Progress {
    /// Notes a commit, and the clock's new revision if the commit moved the clock. To be called while no other commit
    /// can happen.
    pub fn committed(&self, revision: Option<Revision>) -> Mark {
        let mut marks = self.marks();
        marks.committed.number += 1;
        marks.committed.revision = revision.unwrap_or_default().max(marks.committed.revision);
        marks.committed
    }

    /// The newest commit, whether it is on the disk or not.
    pub fn newest(&self) -> Mark {
        self.marks().committed
    }

    /// The newest revision that readers may see.
    pub fn durable(&self) -> Revision {
        self.marks().flushed.revision
    }

    /// Notes that the store is on the disk up to this revision.
    pub fn whole(&self, revision: Revision) {
        let mut marks = self.marks();
        marks.committed.revision = revision;
        marks.flushed = marks.committed;
    }

    /// Returns when this commit is on the disk. If that fails, the commit may or may not survive a crash of the
    /// machine.
    pub async fn flush(&self, log: &Log, through: Mark) -> Result<(), Error> {
        if self.marks().flushed.number >= through.number || strikes(Bug::AnsweredBeforeSync) {
            return Ok(());
        }
        let _turn = self.turns.lock().await;
        let Marks { committed, flushed } = *self.marks();
        if flushed.number >= through.number {
            return Ok(());
        }
        log.flush().await.map_err(|error| Error::Unknown(error.to_string().into()))?;
        let mut marks = self.marks();
        let committed = if strikes(Bug::SyncCoversTooMuch) { marks.committed } else { committed };
        if committed.number > marks.flushed.number {
            marks.flushed = committed;
        }
        Ok(())
    }

    /// Prevents syncs as long as the guard is held.
    pub async fn pause(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turns.lock().await
    }

    fn marks(&self) -> MutexGuard<'_, Marks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that syncs when the test tells it to, and reports that a sync has begun.
    struct Gate {
        begun: mpsc::Sender<()>,
        verdicts: Mutex<mpsc::Receiver<io::Result<()>>>,
    }

    impl Flush for Gate {
        fn flush(&self) -> io::Result<()> {
            self.begun.send(()).expect("the test listens");
            self.verdicts.lock().expect("one at a time").recv().expect("the test decides")
        }
    }

    fn gated() -> (Log, mpsc::Receiver<()>, mpsc::Sender<io::Result<()>>) {
        let (begun, begins) = mpsc::channel();
        let (decide, verdicts) = mpsc::channel();
        let gate = Gate { begun, verdicts: Mutex::new(verdicts) };
        let syncs = SyncThread::start().expect("a thread");
        (Log::new("the log", Arc::new(gate), &syncs, Failure::default()), begins, decide)
    }

    /// Waits until a sync has begun.
    async fn begun(begins: mpsc::Receiver<()>) -> mpsc::Receiver<()> {
        let begun = tokio::task::spawn_blocking(move || begins.recv().map(|()| begins)).await;
        begun.expect("ran").expect("begun")
    }

    #[tokio::test]
    async fn a_sync_covers_what_was_committed_before_it_began_and_nothing_more() {
        let (log, begins, decide) = gated();
        let progress = Arc::new(Progress::default());
        let flushing = |mark| {
            let (progress, log) = (progress.clone(), log.clone());
            tokio::spawn(async move { progress.flush(&log, mark).await })
        };
        let first = flushing(progress.committed(Some(Revision(1))));
        let begins = begun(begins).await;
        let second = flushing(progress.committed(Some(Revision(2))));
        let third = flushing(progress.committed(Some(Revision(3))));
        assert_eq!(progress.durable(), Revision(0));
        decide.send(Ok(())).expect("waited for");
        first.await.expect("ran").expect("synced");
        let begins = begun(begins).await;
        assert_eq!(progress.durable(), Revision(1));
        decide.send(Ok(())).expect("waited for");
        second.await.expect("ran").expect("synced");
        third.await.expect("ran").expect("synced");
        assert_eq!(progress.durable(), Revision(3));
        assert!(begins.try_recv().is_err(), "the third was covered by the second's");
    }

    #[tokio::test]
    async fn after_a_failed_sync_nothing_is_known_of_later_commits_either() {
        let (log, begins, decide) = gated();
        let progress = Progress::default();
        decide.send(Err(io::Error::other("bad block"))).expect("open");
        decide.send(Ok(())).expect("open");
        let first = progress.committed(Some(Revision(1)));
        assert!(matches!(progress.flush(&log, first).await, Err(Error::Unknown(_))));
        let second = progress.committed(Some(Revision(2)));
        assert!(matches!(progress.flush(&log, second).await, Err(Error::Unknown(_))));
        assert_eq!(begins.try_iter().count(), 1, "the disk is not asked again");
        assert_eq!(&*log.0.failure.wait().await, "the log could not be synced: bad block");
        assert_eq!(progress.durable(), Revision(0));
    }

    #[tokio::test]
    async fn an_error_that_nobody_waits_for_is_noted() {
        let (log, begins, decide) = gated();
        let asked = {
            let log = log.clone();
            tokio::spawn(async move { log.flush().await })
        };
        let begins = begun(begins).await;
        asked.abort();
        assert!(asked.await.expect_err("it waits for the disk").is_cancelled());
        decide.send(Err(io::Error::other("bad block"))).expect("waited for");
        log.0.failure.wait().await;
        assert!(log.flush().await.is_err() && begins.try_recv().is_err(), "the disk is not asked again");
    }
}
