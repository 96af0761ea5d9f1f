//! The writing connection, and whose turn it is.

use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use tokio::sync::{Mutex, MutexGuard};

use super::error::unavailable;
use super::lock::FileLock;
use super::log::{Log, Mark, Progress};
use super::{reads, upkeep};
use crate::revision::Revision;
use crate::storage::Error;

/// What the one who writes needs.
pub struct Desk {
    path: PathBuf,
    options: SqliteConnectOptions,
    progress: Progress,
    seat: Mutex<Seat>,
}

struct Seat {
    /// `None` after an error; the next turn opens a new connection.
    connection: Option<SqliteConnection>,
    /// Of the connection, or of the last one.
    log: Log,
    /// Held as long as the store is open; without it nobody may write.
    lock: Option<FileLock>,
}

impl Desk {
    /// `connection` was opened with `options`, and the schema is up to date.
    pub async fn open(
        path: &Path,
        options: SqliteConnectOptions,
        mut connection: SqliteConnection,
        lock: FileLock,
    ) -> Result<Self, Error> {
        let progress = Progress::default();
        let revision = reads::clock(&mut connection).await?.revision;
        let log = open_log(path)?;
        // A process that was killed leaves commits that were answered to nobody and may be on no disk yet.
        sync(&log).await?;
        progress.whole(revision);
        let seat = Seat { connection: Some(connection), log, lock: Some(lock) };
        Ok(Self { path: path.to_owned(), options, progress, seat: Mutex::new(seat) })
    }

    /// Takes the writing connection. Unless it is given back with [`Turn::done`] it is closed, so that the next
    /// turn never meets a transaction that an error or a cancelled call has left open.
    pub async fn turn(&self) -> Result<Turn<'_>, Error> {
        let mut seat = self.seat.lock().await;
        if seat.lock.is_none() {
            return Err(Error::Closed);
        }
        let connection = match seat.connection.take() {
            Some(connection) if !seat.log.has_failed() => connection,
            broken => {
                drop(broken);
                self.reconnect(&mut seat).await?
            }
        };
        Ok(Turn { desk: self, seat, connection })
    }

    /// Closes the writing connection and keeps everybody from another one, for whoever writes the file in a way of its
    /// own.
    pub async fn alone(&self) -> Result<Alone<'_>, Error> {
        let Turn { seat, connection, .. } = self.turn().await?;
        connection.close().await.map_err(unavailable)?;
        Ok(Alone { options: self.options.clone(), _seat: seat })
    }

    /// The newest revision that is on the disk; what is newer must not be shown.
    pub fn durable(&self) -> Revision {
        self.progress.durable()
    }

    /// Returns when everything is on the disk that was committed before the call.
    pub async fn flush(&self) -> Result<(), Error> {
        let log = self.seat.lock().await.log.clone();
        self.progress.flush(&log, self.progress.newest()).await
    }

    pub async fn close(&self) {
        let mut seat = self.seat.lock().await;
        if let Some(connection) = seat.connection.take() {
            let _ = connection.close().await;
        }
        seat.lock = None;
    }

    /// As if the connection wrote its log to this file.
    #[cfg(test)]
    pub async fn replace_log(&self, file: Box<dyn super::log::Flush>) {
        self.seat.lock().await.log = Log::new(file);
    }

    async fn reconnect(&self, seat: &mut Seat) -> Result<SqliteConnection, Error> {
        // Or a sync of the old log that fails just now would go unnoticed.
        let _paused = self.progress.pause().await;
        let mut connection = self.options.connect().await.map_err(unavailable)?;
        let revision = reads::clock(&mut connection).await?.revision;
        let log = open_log(&self.path)?;
        if seat.log.has_failed() {
            // The log may lack what the kernel could not write. Its pages are still in memory: into the file with them.
            upkeep::fold(&mut connection).await?;
        } else {
            sync(&log).await?;
        }
        seat.log = log;
        self.progress.whole(revision);
        Ok(connection)
    }
}

/// The right to write while there is no writing connection. The next turn opens one as usual.
pub struct Alone<'a> {
    /// Of a connection that writes.
    pub options: SqliteConnectOptions,
    _seat: MutexGuard<'a, Seat>,
}

/// The writing connection while somebody uses it.
pub struct Turn<'a> {
    desk: &'a Desk,
    seat: MutexGuard<'a, Seat>,
    pub connection: SqliteConnection,
}

impl<'a> Turn<'a> {
    /// Gives the connection back after a commit, which moved the clock to `revision` if it moved it. What was committed
    /// is durable, and may be shown, when [`Committed::flush`] returns.
    pub fn done(self, revision: Option<Revision>) -> Committed<'a> {
        let Self { desk, mut seat, connection } = self;
        seat.connection = Some(connection);
        Committed { progress: &desk.progress, log: seat.log.clone(), mark: desk.progress.committed(revision) }
    }

    /// Gives the connection back after nothing was written.
    pub fn unused(mut self) {
        self.seat.connection = Some(self.connection);
    }

    /// What became of a batch up to `last` whose COMMIT failed. Nobody else has written since, for the turn was not
    /// given up, so the clock tells.
    pub async fn settle(self, last: Revision, error: Error) -> Result<(), Error> {
        let unknown = |_| Error::Unknown(error.to_string().into());
        let Self { desk, mut seat, connection } = self;
        drop(connection);
        let mut connection = desk.reconnect(&mut seat).await.map_err(unknown)?;
        let clock = reads::clock(&mut connection).await.map_err(unknown)?;
        seat.connection = Some(connection);
        if clock.revision >= last { Ok(()) } else { Err(error) }
    }
}

/// A commit on its way to the disk.
#[must_use]
pub struct Committed<'a> {
    progress: &'a Progress,
    log: Log,
    mark: Mark,
}

impl Committed<'_> {
    pub async fn flush(self) -> Result<(), Error> {
        self.progress.flush(&self.log, self.mark).await
    }
}

fn open_log(path: &Path) -> Result<Log, Error> {
    Log::open(path).map_err(|error| Error::Unavailable(format!("cannot open the log: {error}").into()))
}

async fn sync(log: &Log) -> Result<(), Error> {
    let synced = log.flush().await;
    synced.map_err(|error| Error::Unavailable(format!("cannot sync the log: {error}").into()))
}
