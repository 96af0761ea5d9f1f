//! A connection that keeps SQLite from cleaning up by itself.

use sqlx::Connection;
use sqlx::sqlite::SqliteConnection;

use super::failure::Failure;

/// A read-only connection that stays open as long as the store. When the last connection of a database is closed,
/// SQLite moves the log into the file, reports no errors of that, and removes the log; closing a read-only connection
/// does none of it. After a failure the anchor stays open until the process ends.
pub struct Anchor {
    connection: Option<SqliteConnection>,
    failure: Failure,
}

impl Anchor {
    /// The connection must have read something: before its first read SQLite does not count it as a user of the
    /// database.
    pub fn new(connection: SqliteConnection, failure: Failure) -> Self {
        Self { connection: Some(connection), failure }
    }

    /// Closes the anchor after the log has been moved, so that the last connection may remove it.
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
