//! A connection that keeps SQLite from acting by itself.

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;

use super::failure::Failure;

/// Open for as long as the store: when the last connection of a database is closed, SQLite folds the log into the file,
/// says nothing of errors, and removes the log. This one only reads, so closing it does nothing of that kind; after a
/// failure it stays open until the process ends.
pub struct Anchor {
    connection: Option<SqliteConnection>,
    failure: Failure,
}

impl Anchor {
    /// The connection has to have read something, for until then SQLite does not know that it is there.
    pub fn new(connection: SqliteConnection, failure: Failure) -> Self {
        Self { connection: Some(connection), failure }
    }

    /// The log has been folded; the last connection may remove it.
    pub async fn release(mut self) {
        if !self.failure.is_set()
            && let Some(connection) = self.connection.take()
        {
            let _ = connection.close().await;
        }
    }
}

impl Drop for Anchor {
    fn drop(&mut self) {
        if self.failure.is_set() {
            std::mem::forget(self.connection.take());
        }
    }
}
