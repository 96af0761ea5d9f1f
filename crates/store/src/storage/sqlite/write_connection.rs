//! The writing connection, which one caller at a time may use.

use std::fs::File;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::anchor::Anchor;
use super::checkpoint::{self, Extent, Filling};
use super::error::unavailable;
use super::failure::Failure;
use super::files::{Files, Id};
use super::log::{Log, Mark, Progress, SyncThread};
use super::reads;
use crate::revision::Revision;
use crate::scheduling::{self, Scheduling, StoreWork};
use crate::storage::Error;

/// The time between two looks at whether the files are where they were.
const LOOKS: Duration = Duration::from_secs(1);

/// The writing connection with everything that belongs to it. A caller takes a [`WriteTurn`] to write.
pub struct WriteConnection {
    options: SqliteConnectOptions,
    progress: Progress,
    failure: Failure,
    scheduling: Scheduling,
    slot: Arc<Mutex<Slot>>,
}

struct Slot {
    /// `None` after an error; the next turn then opens a new connection.
    connection: Option<SqliteConnection>,
    /// The log file, open for as long as the store is.
    log: Log,
    log_id: Id,
    filling: Filling,
    /// `None` once the store is closed; nobody can write any more then. Dropped after the other fields.
    ours: Option<Ours>,
}

/// The open files and locks that make the database this process's own.
struct Ours {
    anchor: Anchor,
    database: Log,
    files: Files,
}

/// A database that has been opened: the log of the process that had it before has been moved into the file, and the
/// schema is up to date.
pub struct Opened {
    pub connection: SqliteConnection,
    pub anchor: Anchor,
    pub files: Files,
    pub log: Arc<File>,
    pub failure: Failure,
    pub scheduling: Scheduling,
}

impl Slot {
    /// Closes everything, so that nobody can write any more.
    async fn let_go(&mut self) -> Option<Files> {
        let (connection, ours) = (self.connection.take(), self.ours.take());
        let Ours { anchor, files, .. } = ours?;
        anchor.release().await;
        if let Some(connection) = connection {
            let _ = connection.close().await;
        }
        Some(files)
    }
}

impl WriteConnection {
    /// Takes over a connection that was made with `options`. Returns once everything that the connection reads
    /// is on the disk.
    pub async fn open(opened: Opened, options: SqliteConnectOptions) -> Result<Self, Error> {
        let Opened { mut connection, anchor, files, log, failure, scheduling } = opened;
        let progress = Progress::default();
        on_its_thread(&mut connection, scheduling::run_soon).await?;
        let revision = reads::clock(&mut connection).await?.revision;
        let unreadable = |error: std::io::Error| Error::Unavailable(error.to_string().into());
        let log_id = Id::of(&log.metadata().map_err(unreadable)?);
        let syncs = SyncThread::start().map_err(unreadable)?;
        let log = Log::new("the log", log, &syncs, failure.clone());
        log.flush().await?;
        progress.whole(revision);
        let database = Log::new("the database", files.database(), &syncs, failure.clone());
        let ours = Some(Ours { anchor, database, files });
        let slot = Slot { connection: Some(connection), log, log_id, filling: Filling::default(), ours };
        Ok(Self { options, progress, failure, scheduling, slot: Arc::new(Mutex::new(slot)) })
    }

    /// Takes the writing connection. It is closed unless the caller gives it back with [`WriteTurn::done`], so that the next
    /// turn never meets a transaction that an error or a cancelled call has left open.
    pub async fn turn(self: &Arc<Self>) -> Result<WriteTurn<'_>, Error> {
        let mut slot = self.slot().await?;
        if slot.connection.is_none() {
            self.reconnect(&mut slot).await?;
        }
        if slot.filling.is_due() {
            let extent = slot.filling.extent();
            let (back, folded) = self.fold(slot, extent).await?;
            slot = back;
            match folded {
                Ok(_) => {}
                Err(broken @ Error::Broken(_)) => return Err(broken),
                // A checkpoint may fail for lack of space and the write may succeed all the same.
                Err(error) => tracing::warn!(%error, "will try again"),
            }
        }
        let connection = match slot.connection.take() {
            Some(connection) => connection,
            None => return Err(Error::Unavailable("the log could not be folded".into())),
        };
        Ok(WriteTurn { writer: self, slot, connection, work: self.scheduling.begin_store_work() })
    }

    /// Closes the store and leaves its files to the caller, who writes them in another way. No connection and no log is
    /// left.
    pub async fn hand_over(&self) -> Result<HandedOver, Error> {
        let slot = self.slot().await?;
        let (mut slot, folded) = self.fold(slot, Extent::Truncate).await?;
        if !folded? {
            return Err(Error::Unavailable("somebody reads the database".into()));
        }
        let files = slot.let_go().await.ok_or(Error::Closed)?;
        Ok(HandedOver { options: self.options.clone(), files })
    }

    /// Moves the log into the file and truncates it, as far as readers allow.
    pub async fn cut_log(&self) -> Result<(), Error> {
        let mut slot = self.slot().await?;
        if slot.connection.is_none() {
            self.reconnect(&mut slot).await?;
        }
        self.fold(slot, Extent::Truncate).await?.1.map(drop)
    }

    /// The newest revision that is on the disk. Newer ones must not be shown to readers.
    pub fn durable(&self) -> Revision {
        self.progress.durable()
    }

    /// Notes errors after which the database must not be used any more. Returns the result unchanged.
    pub fn heed<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        self.failure.heed(result)
    }

    /// Returns once the database must not be used any more, with the reason.
    pub async fn failed(&self) -> Arc<str> {
        self.failure.wait().await
    }

    /// Returns once the database must not be used any more since other files stand where its own were: what is written into
    /// these would be found by nobody. Looks once a second.
    pub async fn replaced(&self) -> Arc<str> {
        let mut looks = tokio::time::interval(LOOKS);
        loop {
            looks.tick().await;
            let slot = self.slot.lock().await;
            let Some(ours) = slot.ours.as_ref().filter(|_| !self.failure.is_set()) else {
                return self.failed().await;
            };
            let _ = self.hold(&ours.files, slot.log_id);
        }
    }

    /// Fails, for good, unless the database's files are where they were.
    fn hold(&self, files: &Files, log: Id) -> Result<(), Error> {
        let path = files.path().display();
        match files.still_hold(log) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.failure.set(format!(
                "the files of the database {path} have been replaced while the server used them; what was written since then is lost"
            ))),
            Err(error) if error.kind() == ErrorKind::NotFound => Err(self.failure.set(format!(
                "the files of the database {path} have been removed while the server used them: {error}"
            ))),
            Err(error) => Err(Error::Unavailable(error.to_string().into())),
        }
    }

    /// Moves the log into the file and closes the store. Errors can no longer be reported to a caller; the next start
    /// finds out.
    pub async fn close(&self) {
        let Ok(slot) = self.slot().await else { return };
        let Ok((mut slot, folded)) = self.fold(slot, Extent::Truncate).await else { return };
        if let Err(error) = folded {
            tracing::warn!(%error, "the log stays for the next start");
        }
        drop(slot.let_go().await);
    }

    /// Replaces the file that is synced as the log.
    #[cfg(test)]
    pub async fn replace_log(&self, file: Arc<dyn super::log::Flush>) {
        let syncs = SyncThread::start().expect("a thread");
        self.slot.lock().await.log = Log::new("the log", file, &syncs, self.failure.clone());
    }

    async fn slot(&self) -> Result<OwnedMutexGuard<Slot>, Error> {
        let slot = self.slot.clone().lock_owned().await;
        self.check(&slot).map(|()| slot)
    }

    /// Whether the store may still be written to.
    fn check(&self, slot: &Slot) -> Result<(), Error> {
        self.failure.check()?;
        if slot.ours.is_none() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Makes a checkpoint in a task of its own: the caller may be cancelled, and an error of the checkpoint must not be
    /// lost.
    async fn fold(&self, mut slot: OwnedMutexGuard<Slot>, extent: Extent) -> Result<Folded, Error> {
        let (failure, work) = (self.failure.clone(), self.scheduling.begin_store_work());
        let folding = tokio::spawn(async move {
            let _work = work;
            let Slot { connection: held, filling, .. } = &mut *slot;
            let Some(mut connection) = held.take() else { return (slot, Ok(false)) };
            let folded = checkpoint::run(&mut connection, extent, filling, &failure).await;
            if folded.is_ok() {
                *held = Some(connection);
            }
            (slot, folded)
        });
        let (mut slot, folded) =
            folding.await.map_err(|error| self.failure.set(format!("folding the log: {error}")))?;
        if slot.connection.is_none() && !self.failure.is_set() {
            let filling = std::mem::take(&mut slot.filling);
            self.reconnect(&mut slot).await?;
            slot.filling = filling;
        }
        Ok((slot, folded))
    }

    /// Makes a checkpoint that is due while nobody writes, so that the next writer does not wait for it. Beside others who
    /// write, the next of them makes it.
    fn fold_while_idle(self: &Arc<Self>) {
        let Ok(slot) = self.slot.clone().try_lock_owned() else { return };
        if !slot.filling.is_due() || self.check(&slot).is_err() {
            return;
        }
        let (this, extent) = (self.clone(), slot.filling.extent());
        tokio::spawn(async move {
            match this.fold(slot, extent).await {
                // Whoever waits for a failure learns of it.
                Ok((_, Ok(_))) | Err(Error::Broken(_)) | Ok((_, Err(Error::Broken(_)))) => {}
                Err(error) | Ok((_, Err(error))) => tracing::warn!(%error, "will try again"),
            }
        });
    }

    /// Whether a checkpoint is due. Waits for one that is being made.
    #[cfg(test)]
    pub async fn is_fold_due(&self) -> bool {
        self.slot.lock().await.filling.is_due()
    }

    /// Opens a new connection after an error, and returns the clock's revision. Everything that was committed is then
    /// on the disk, including commits whose outcome nobody knew.
    async fn reconnect(&self, slot: &mut Slot) -> Result<Revision, Error> {
        let _paused = self.progress.pause().await;
        let ours = slot.ours.as_ref().ok_or(Error::Closed)?;
        let mut connection = self.options.connect().await.map_err(unavailable)?;
        on_its_thread(&mut connection, scheduling::run_soon).await?;
        let revision = reads::clock(&mut connection).await?.revision;
        self.hold(&ours.files, slot.log_id)?;
        // The descriptors used here were opened before the error, so that the kernel reports it to them.
        slot.log.flush().await?;
        ours.database.flush().await?;
        self.progress.whole(revision);
        slot.filling = Filling::unknown();
        slot.connection = Some(connection);
        Ok(revision)
    }
}

/// Calls a function on the thread on which SQLite works for this connection. sqlx has no means for that, but SQLite calls a
/// progress handler there.
pub async fn on_its_thread(
    connection: &mut SqliteConnection,
    mut call: impl FnMut() + Send + 'static,
) -> Result<(), Error> {
    let and_go_on = move || {
        call();
        true
    };
    connection.lock_handle().await.map_err(unavailable)?.set_progress_handler(1, and_go_on);
    let called = sqlx::query("SELECT 1").execute(&mut *connection).await;
    connection.lock_handle().await.map_err(unavailable)?.remove_progress_handler();
    called.map(drop).map_err(unavailable)
}

/// The slot again, and whether the whole log is in the file.
type Folded = (OwnedMutexGuard<Slot>, Result<bool, Error>);

/// A store without connections, and the locks that keep other processes out.
pub struct HandedOver {
    /// The options of a writing connection.
    pub options: SqliteConnectOptions,
    /// Must be dropped after the last connection.
    pub files: Files,
}

/// The writing connection while a caller uses it.
pub struct WriteTurn<'a> {
    writer: &'a Arc<WriteConnection>,
    slot: OwnedMutexGuard<Slot>,
    pub connection: SqliteConnection,
    work: StoreWork,
}

impl<'a> WriteTurn<'a> {
    /// Gives the connection back after a commit. `revision` is the clock's new revision, if the commit moved the clock;
    /// `frames` is the number of frames in the log. The commit is durable, and may be shown to readers, when
    /// [`Committed::flush`] returns.
    pub fn done(self, revision: Option<Revision>, frames: u32) -> Committed<'a> {
        let Self { writer, mut slot, connection, work } = self;
        slot.connection = Some(connection);
        slot.filling.reached(frames);
        let mark = writer.progress.committed(revision);
        Committed { writer, log: slot.log.clone(), mark, _work: work }
    }

    /// Like [`WriteTurn::done`], but asks SQLite for the number of frames.
    pub async fn finish(mut self, revision: Option<Revision>) -> Result<Committed<'a>, Error> {
        let frames = checkpoint::frames(&mut self.connection).await?;
        Ok(self.done(revision, frames))
    }

    /// Gives the connection back after a commit that need not be durable at once: it reaches the disk together with the
    /// next one.
    pub async fn leave(mut self) -> Result<(), Error> {
        let frames = checkpoint::frames(&mut self.connection).await?;
        let Self { mut slot, connection, .. } = self;
        slot.connection = Some(connection);
        slot.filling.reached(frames);
        Ok(())
    }

    /// Gives the connection back after nothing was written. What was read may not be on the disk yet.
    pub fn unused(self) -> Committed<'a> {
        let Self { writer, mut slot, connection, work } = self;
        slot.connection = Some(connection);
        Committed { writer, log: slot.log.clone(), mark: writer.progress.newest(), _work: work }
    }

    /// Finds out whether a batch up to revision `last` was committed whose COMMIT failed. This turn has not ended, so
    /// no other write can have moved the clock, and the clock tells.
    pub async fn settle(self, last: Revision, error: Error) -> Result<(), Error> {
        let unknown = |cause| Error::Unknown(format!("{error}; {cause}").into());
        let Self { writer, mut slot, connection, .. } = self;
        drop(connection);
        writer.failure.check().map_err(unknown)?;
        let revision = writer.reconnect(&mut slot).await.map_err(unknown)?;
        if revision >= last { Ok(()) } else { Err(error) }
    }
}

/// A commit that may not be on the disk yet.
#[must_use]
pub struct Committed<'a> {
    writer: &'a Arc<WriteConnection>,
    log: Log,
    mark: Mark,
    _work: StoreWork,
}

impl Committed<'_> {
    pub async fn flush(self) -> Result<(), Error> {
        self.writer.progress.flush(&self.log, self.mark).await?;
        self.writer.fold_while_idle();
        Ok(())
    }
}
