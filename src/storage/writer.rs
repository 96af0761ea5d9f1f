//! Group commit: the mutations of all requests share transactions. While one batch is being committed the next one
//! gathers, until it holds the clock's lock.

mod gathering;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use self::gathering::Gathering;
use super::mark::SAFETY_GAP;
use super::{
    Backend, Batch, Change, Commit, CommitSink, Error, Fence, HighWaterMark, Mutation, Outcome, OwnCommit,
    OwnWrite, RegistryChange, Terms,
};
use crate::codec::object::Object;
use crate::metrics::CommitMetrics;
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::tasks::Tasks;

/// Requests that may wait for a place in a batch. Beyond it callers wait to hand in, which is all they would do here.
const QUEUE: usize = 4096;

/// The way to write. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    writer: Arc<Writer>,
    queue: mpsc::Sender<Pending>,
}

/// What became of a mutation.
#[derive(Clone, Debug)]
pub enum Written {
    /// Durable, and visible to every reader of this server's cache.
    Committed { revision: Revision, object: Option<Arc<Object>> },
    /// The precondition failed: at `judged_at` the live version was `found`.
    Conflict { found: Option<Revision>, judged_at: Revision },
    /// A [requirement](super::Requirement) failed: at `judged_at` another version of its row was live.
    Unmet { judged_at: Revision },
}

/// What became of mutations that pass together or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// Durable and visible.
    Committed,
    /// A precondition or a requirement failed, and nothing was written; the state at this revision shows why.
    Conflict { judged_at: Revision },
}

type Reply = oneshot::Sender<Result<Written, Error>>;

struct Pending {
    /// What [joins](Mutation::joins_next) the mutation.
    before: Vec<Mutation>,
    mutation: Mutation,
    reply: Reply,
}

impl Store {
    /// Starts the writer task. It ends when its queue is empty and either the last clone of the store is gone or its
    /// tasks are being stopped, after which nothing is written any more. Without a sink nobody is shown what was
    /// written before the writers are answered.
    pub fn start(
        backend: Arc<dyn Backend>,
        sink: Option<CommitSink>,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
    ) -> Self {
        let (queue, pending) = mpsc::channel(QUEUE);
        let (fence, fenced) = (OnceLock::new(), Notify::new());
        let (tasks, commits) = (runtime.tasks.clone(), runtime.metrics.commits());
        let writer = Arc::new(Writer { backend, sink, mark, tasks, commits, fence, fenced });
        runtime.tasks.run_to_end("writer", writer.clone().run(pending));
        Self { writer, queue }
    }

    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.writer.backend
    }

    /// From now on this server writes only as long as its registration stands. Set once; later calls change nothing.
    pub fn set_fence(&self, fence: Fence) {
        let _ = self.writer.fence.set(fence);
    }

    /// Returns after a batch was refused for want of the registration; also if that was before the call.
    pub async fn fenced(&self) {
        self.writer.fenced.notified().await;
    }

    /// Writes; returns once the write is durable and published, or has certainly failed. A caller that stops waiting
    /// does not stop the write.
    pub async fn write(&self, mutation: Mutation) -> Result<Written, Error> {
        self.write_joined(Vec::new(), mutation).await
    }

    /// As [`Store::write`], together with others that come just before it or not at all. Where one of these has failed,
    /// the mutation is unmet.
    pub async fn write_joined(
        &self,
        mut before: Vec<Mutation>,
        mutation: Mutation,
    ) -> Result<Written, Error> {
        for joined in &mut before {
            joined.joins_next = true;
        }
        let (reply, answer) = oneshot::channel();
        let pending = Pending { before, mutation, reply };
        self.queue.send(pending).await.map_err(|_| Error::Closed)?;
        // The writer died with the batch, or the runtime ended: before or after the commit, nobody can tell.
        answer.await.map_err(|_| Error::Unknown("the writer ended".into()))?
    }

    /// Writes everything or nothing, in a transaction of its own, and changes the registry with it. Does not stop when
    /// the caller stops waiting.
    pub async fn write_together(
        &self,
        mutations: Vec<Mutation>,
        registry: RegistryChange,
    ) -> Result<Together, Error> {
        let writer = self.writer.clone();
        let tasks = writer.tasks.clone();
        let writing =
            tasks.spawn("registration", async move { writer.write_together(mutations, &registry).await });
        writing.await.ok().flatten().unwrap_or_else(|| Err(Error::Unknown("the writer ended".into())))
    }
}

struct Writer {
    backend: Arc<dyn Backend>,
    sink: Option<CommitSink>,
    mark: Arc<HighWaterMark>,
    tasks: Tasks,
    commits: CommitMetrics,
    fence: OnceLock<Fence>,
    /// A batch has met a fence that does not stand.
    fenced: Notify,
}

/// Where a commit is handed to the cache; `None` where there is no cache.
type Slot = Option<mpsc::OwnedPermit<OwnCommit>>;

/// A batch's place among those in flight.
#[derive(Default)]
struct Place {
    /// Ends when the batch before has been handed on, or has failed.
    before: Option<oneshot::Receiver<()>>,
    /// Dropped when this one has.
    after: Option<oneshot::Sender<()>>,
}

impl Writer {
    async fn run(self: Arc<Self>, mut pending: mpsc::Receiver<Pending>) {
        let in_flight = Arc::new(Semaphore::new(self.backend.pipeline_depth()));
        let mut before = None;
        loop {
            let Ok(permit) = in_flight.clone().acquire_owned().await else { return };
            let Some(first) = self.next(&mut pending).await else { return };
            let (mut batch, queue) = Gathering::new(first, pending);
            let this = self.clone();
            let (place, next) = oneshot::channel();
            let place = Place { before: before.replace(next), after: Some(place) };
            self.tasks.spawn("batch", async move {
                let slot = match this.reserve().await {
                    Ok(slot) => slot,
                    Err(error) => return refuse(batch.into_parts().1, &error),
                };
                let started = Instant::now();
                let result = this.commit(&mut batch, None).await;
                drop(permit);
                let (mutations, replies) = batch.into_parts();
                this.commits.committed(mutations.len(), started.elapsed());
                match result {
                    Ok(commit) => this.publish(commit, mutations, replies, slot, place).await,
                    Err(error) => refuse(replies, &error),
                }
            });
            // Until this batch is closed another one would only take from it.
            let Ok(queue) = queue.await else { return };
            pending = queue;
        }
    }

    /// What was handed in next; `None` once nothing will be.
    async fn next(&self, pending: &mut mpsc::Receiver<Pending>) -> Option<Pending> {
        tokio::select! {
            biased;
            next = pending.recv() => next,
            () = self.tasks.stopping() => {
                pending.close();
                pending.recv().await
            }
        }
    }

    /// Commits a batch; where the database has lost commits, first lifts the clock over them.
    async fn commit(
        &self,
        batch: &mut dyn Batch,
        registry: Option<&RegistryChange>,
    ) -> Result<Commit, Error> {
        // Whoever registers has no registration to lose.
        let registers = matches!(registry, Some(RegistryChange::Put(_)));
        let fence = self.fence.get().filter(|_| !registers);
        let terms = Terms { floor: self.mark.get(), fence, registry };
        match self.backend.commit_under(batch, terms).await {
            Err(Error::Regressed { floor, found }) => {
                tracing::error!(%floor, %found, "the database has lost acknowledged commits; its clock is moved ahead");
                self.backend.advance_clock(Revision(floor.0 + SAFETY_GAP)).await?;
                self.backend.commit_under(batch, Terms { floor, ..terms }).await
            }
            Err(Error::Fenced) => {
                self.fenced.notify_one();
                Err(Error::Fenced)
            }
            other => other,
        }
    }

    async fn write_together(
        &self,
        mutations: Vec<Mutation>,
        registry: &RegistryChange,
    ) -> Result<Together, Error> {
        let slot = self.reserve().await?;
        let commit = self.commit(&mut &mutations[..], Some(registry)).await?;
        let mut writes = Vec::with_capacity(mutations.len());
        for (mutation, outcome) in mutations.into_iter().zip(commit.outcomes) {
            match written(mutation, outcome, commit.base, &mut writes)? {
                Written::Committed { .. } => {}
                Written::Conflict { .. } | Written::Unmet { .. } => {
                    return Ok(Together::Conflict { judged_at: commit.base });
                }
            }
        }
        self.announce(commit.base, writes, slot, Place::default()).await?;
        Ok(Together::Committed)
    }

    /// Waits until another commit can be handed to the cache, so that no more are made than can be shown to readers:
    /// none at all once the cache has ended.
    async fn reserve(&self) -> Result<Slot, Error> {
        let Some(sink) = self.sink.clone() else { return Ok(None) };
        sink.reserve_owned().await.map(Some).map_err(|_| Error::Closed)
    }

    /// Makes what was written visible to this server's readers. Fails if the cache has ended before it did that: the
    /// writes are there, but who was told so would not find them here.
    async fn announce(
        &self,
        base: Revision,
        writes: Vec<OwnWrite>,
        slot: Slot,
        place: Place,
    ) -> Result<(), Error> {
        let Some(last) = writes.last() else { return Ok(()) };
        self.mark.raise(last.revision);
        let (published, done) = oneshot::channel();
        let commit = OwnCommit { base, writes, published };
        // Commits in their order spare the cache a look into the database. With other servers in between it has to look
        // anyway, and nobody waits for a batch whose fate is being found out.
        let Place { before, after } = place;
        if let Some(before) = before.filter(|_| !self.backend.shared()) {
            let _ = before.await;
        }
        let Some(slot) = slot else { return Ok(()) };
        slot.send(commit);
        drop(after);
        done.await.map_err(|_| Error::Unknown("the watch cache ended before it held the write".into()))
    }

    async fn publish(
        &self,
        commit: Commit,
        mutations: Vec<Mutation>,
        replies: Vec<Option<Reply>>,
        slot: Slot,
        place: Place,
    ) {
        let mut writes = Vec::with_capacity(mutations.len());
        let mut answers = Vec::with_capacity(mutations.len());
        for ((mutation, outcome), reply) in mutations.into_iter().zip(commit.outcomes).zip(replies) {
            answers.push((written(mutation, outcome, commit.base, &mut writes), reply));
        }
        if answers.iter().any(|(answer, _)| matches!(answer, Err(Error::Fenced))) {
            self.fenced.notify_one();
        }
        let announced = self.announce(commit.base, writes, slot, place).await;
        for (answer, reply) in answers {
            let answer = match (&announced, answer) {
                (Err(unseen), Ok(Written::Committed { .. })) => Err(unseen.clone()),
                (_, answer) => answer,
            };
            if let Some(reply) = reply {
                let _ = reply.send(answer);
            }
        }
    }
}

fn written(
    mutation: Mutation,
    outcome: Outcome,
    base: Revision,
    writes: &mut Vec<OwnWrite>,
) -> Result<Written, Error> {
    let judged_at = writes.last().map_or(base, |write| write.revision);
    Ok(match outcome {
        Outcome::Fenced => return Err(Error::Fenced),
        Outcome::Conflict { found } => Written::Conflict { found, judged_at },
        Outcome::Unmet { .. } | Outcome::Apart => Written::Unmet { judged_at },
        Outcome::Committed(revision) => {
            let Mutation { key, change, .. } = mutation;
            let object = match change {
                Change::Put { draft, .. } => Some(Arc::new(draft.into_object(revision))),
                Change::Delete => None,
            };
            writes.push(OwnWrite { revision, key, object: object.clone() });
            Written::Committed { revision, object }
        }
    })
}

fn refuse(replies: Vec<Option<Reply>>, error: &Error) {
    for reply in replies.into_iter().flatten() {
        let _ = reply.send(Err(error.clone()));
    }
}
