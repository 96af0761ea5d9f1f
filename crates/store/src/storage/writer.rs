//! Group commit: the mutations of all requests share transactions. While one batch is being committed, the next one
//! gathers mutations, until the database has room for it.

mod gathering;

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use self::gathering::Gathering;
use super::mark::SAFETY_GAP;
use super::{
    Backend, Batch, Change, Commit, CommitSink, Decoded, Error, Fence, HighWaterMark, MAX_OBJECT_BYTES,
    Mutation, Outcome, OwnCommit, OwnWrite, RegistryChange, Terms, Unit, Units,
};
use crate::failpoints::{Bug, strikes};
use crate::metrics::CommitMetrics;
use crate::revision::Revision;
use crate::runtime::Runtime;
use crate::tasks::Tasks;

/// How many mutations may wait for a batch. When the queue is full, callers wait until there is room in it.
const QUEUE: usize = 4096;

/// A handle for writing. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    writer: Arc<Writer>,
    queue: mpsc::Sender<Pending>,
}

/// The outcome of a mutation.
#[derive(Debug)]
pub enum Written<O: ?Sized = Decoded> {
    /// The write is durable, and visible to every reader of this server's cache. A value that was put comes back as its
    /// owner has [decoded](super::Decode) it.
    Committed { revision: Revision, object: Option<Arc<O>> },
    /// The precondition failed: at the revision `judged_at` the live version was `found`.
    Conflict { found: Option<Revision>, judged_at: Revision },
    /// A [requirement](super::Requirement) failed: at the revision `judged_at` another version of its row was live, or a
    /// row of a range had changed.
    Unmet { judged_at: Revision },
}

impl Written {
    /// The outcome with its value as a `T`, or without it if its owner has made something else of it.
    pub fn of<T: Send + Sync + 'static>(self) -> Written<T> {
        match self {
            Self::Committed { revision, object } => {
                Written::Committed { revision, object: object.and_then(|object| object.downcast().ok()) }
            }
            Self::Conflict { found, judged_at } => Written::Conflict { found, judged_at },
            Self::Unmet { judged_at } => Written::Unmet { judged_at },
        }
    }
}

/// The outcome of mutations that pass together or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// The writes are durable, and visible to every reader of this server's cache.
    Committed,
    /// A precondition or a requirement failed, and nothing was written. The state at `judged_at` shows why.
    Conflict { judged_at: Revision },
}

type Reply = oneshot::Sender<Result<Written, Error>>;

struct Pending {
    unit: Unit,
    reply: Reply,
}

impl Store {
    /// Starts the writer task. The task ends when its queue is empty and either the last clone of the store is gone or
    /// its tasks are being stopped; nothing is written afterwards. With a sink, a write is answered after the cache has
    /// made it visible; without one, after its commit. Values of more than [`MAX_OBJECT_BYTES`] are refused.
    pub fn start(
        backend: Arc<dyn Backend>,
        sink: Option<CommitSink>,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
    ) -> Self {
        Self::start_limited(backend, sink, mark, runtime, MAX_OBJECT_BYTES)
    }

    /// Like [`Store::start`], with another limit for the [length](super::Value::length) of a value.
    pub fn start_limited(
        backend: Arc<dyn Backend>,
        sink: Option<CommitSink>,
        mark: Arc<HighWaterMark>,
        runtime: &Runtime,
        max_object_bytes: usize,
    ) -> Self {
        let (queue, pending) = mpsc::channel(QUEUE);
        let (fence, fenced) = (OnceLock::new(), Notify::new());
        let (tasks, commits) = (runtime.tasks.clone(), runtime.metrics.commits());
        let writer =
            Arc::new(Writer { backend, sink, mark, tasks, commits, fence, fenced, max_object_bytes });
        runtime.tasks.run_to_end("writer", writer.clone().run(pending));
        Self { writer, queue }
    }

    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.writer.backend
    }

    /// From now on this server writes only while its registration exists. The fence is set once; later calls change
    /// nothing.
    pub fn set_fence(&self, fence: Fence) {
        let _ = self.writer.fence.set(fence);
    }

    /// Returns once a batch has been refused because the registration was gone, even if that was before this call.
    pub async fn fenced(&self) {
        self.writer.fenced.notified().await;
    }

    /// Writes one mutation. Returns once the write is durable and visible, or has certainly failed. If the caller stops
    /// waiting, the write goes on.
    pub async fn write(&self, mutation: Mutation) -> Result<Written, Error> {
        self.write_unit(mutation.into()).await
    }

    /// The variant of [`Store::write`] that commits a mutation together with others just before it, or not at all. If
    /// one of these has failed, the mutation is unmet.
    pub async fn write_joined(&self, before: Vec<Mutation>, mutation: Mutation) -> Result<Written, Error> {
        self.write_unit(Unit::of(before, mutation)).await
    }

    /// Writes a unit. The answer is that of its last operation: if another one has failed, it is unmet.
    pub async fn write_unit(&self, unit: Unit) -> Result<Written, Error> {
        self.check_length(unit.operations())?;
        let (reply, answer) = oneshot::channel();
        self.queue.send(Pending { unit, reply }).await.map_err(|_| Error::Closed)?;
        // The writer has died, or the runtime has ended, with this batch: it is unknown whether it was committed.
        answer.await.map_err(|_| Error::Unknown("the writer ended".into()))?
    }

    /// [`Error::TooLarge`] if one of these mutations would store a value that is longer than the limit. All writes of a
    /// server pass here.
    pub fn check_length<'m>(&self, mutations: impl IntoIterator<Item = &'m Mutation>) -> Result<(), Error> {
        let limit = self.max_object_bytes();
        let is_too_long =
            |change: &Change| matches!(change, Change::Put { value, .. } if value.length() > limit);
        match mutations.into_iter().any(|mutation| is_too_long(&mutation.change)) {
            true => Err(Error::TooLarge),
            false => Ok(()),
        }
    }

    /// The greatest [length](super::Value::length) of a value.
    pub fn max_object_bytes(&self) -> usize {
        self.writer.max_object_bytes
    }

    /// Writes all mutations or none, in a transaction of their own, together with a change of the registry. If the
    /// caller stops waiting, the write goes on.
    pub async fn write_together(
        &self,
        mutations: Vec<Mutation>,
        registry: RegistryChange,
    ) -> Result<Together, Error> {
        self.check_length(&mutations)?;
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
    /// Notified when a batch was refused because the registration was gone.
    fenced: Notify,
    max_object_bytes: usize,
}

fn ended() -> Error {
    Error::Unknown("the watch cache ended before it held the write".into())
}

/// The permit to hand a commit to the cache; `None` if there is no cache.
type Slot = Option<mpsc::OwnedPermit<OwnCommit>>;

/// A batch's place in the order of the batches in flight.
#[derive(Default)]
struct Place {
    /// Ends when the batch before this one has been handed to the cache, or has failed.
    before: Option<oneshot::Receiver<()>>,
    /// Dropped when this batch has been handed to the cache, or has failed.
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
            // Before this batch is sealed, another one would only take mutations away from it.
            let Ok(queue) = queue.await else { return };
            pending = queue;
        }
    }

    /// The next mutation that was handed in; `None` once there will be no more.
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

    /// Commits a batch. If the database has lost commits, first raises the clock above them.
    async fn commit(
        &self,
        batch: &mut dyn Batch,
        registry: Option<&RegistryChange>,
    ) -> Result<Commit, Error> {
        // A server that registers has no registration yet that could be lost.
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
        let mut units = Units::from(mutations);
        units.count();
        let commit = self.commit(&mut units, Some(registry)).await?;
        let mut writes = Vec::with_capacity(units.len());
        for (mutation, outcome) in units.into_operations().into_iter().zip(commit.outcomes) {
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

    /// Waits until the cache accepts another commit, so that there are never more commits than the cache has room for.
    /// Fails once the cache has ended.
    async fn reserve(&self) -> Result<Slot, Error> {
        let Some(sink) = self.sink.clone() else { return Ok(None) };
        sink.reserve_owned().await.map(Some).map_err(|_| Error::Closed)
    }

    /// Makes committed writes visible to this server's readers. Fails if the cache has ended before: the writes are
    /// durable then, but a client that was told so would not find them on this server.
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
        // Commits in their order spare the cache a read of the database. With other servers in between it has to read
        // anyway, and no batch should wait for another one whose fate is still being found out.
        let Place { before, after } = place;
        if let Some(before) = before.filter(|_| !self.backend.shared()) {
            let _ = before.await;
        }
        let Some(slot) = slot else { return Ok(()) };
        slot.send(commit);
        drop(after);
        if strikes(Bug::AnsweredBeforeVisible) {
            return Ok(());
        }
        // A cache that dies while the place was taken leaves the commit in the channel, where nobody ever takes it out.
        tokio::select! {
            biased;
            published = done => published.map_err(|_| ended()),
            _ = self.tasks.failed() => Err(ended()),
        }
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
                (_, Ok(Written::Committed { .. })) if strikes(Bug::RefusedAfterCommit) => {
                    Err(Error::Unavailable("a bug is planted".into()))
                }
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
        Outcome::Outdated => return Err(Error::Outdated),
        Outcome::Conflict { found } => Written::Conflict { found, judged_at },
        Outcome::Unmet { .. } | Outcome::RangeChanged | Outcome::Unfit { .. } | Outcome::Apart => {
            Written::Unmet { judged_at }
        }
        Outcome::Committed(revision) => {
            let Mutation { key, change, counting, .. } = mutation;
            let object = match change.into_settled() {
                Change::Put { value, .. } => Some(value.decode(revision)),
                Change::Delete | Change::Count(_) => None,
            };
            writes.push(OwnWrite { revision, key, object: object.clone(), counting });
            Written::Committed { revision, object }
        }
    })
}

fn refuse(replies: Vec<Option<Reply>>, error: &Error) {
    for reply in replies.into_iter().flatten() {
        let _ = reply.send(Err(error.clone()));
    }
}
