//! A disk that has not kept its word.
//!
//! The kernel reports what it could not write once, and then takes it for written. So nothing can be repaired behind a
//! sync that failed: it is noted here, nothing is built upon the database any more, and the process has to end. The next
//! start judges by the log's checksums what is there, and folds it into the file before it shows anything.

use std::sync::Arc;

use tokio::sync::watch;

use crate::storage::Error;

/// Set once, and seen by all clones.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<watch::Sender<Option<Arc<str>>>>);

impl Failure {
    /// Notes the failure; the first one counts. Returns the error for whoever met it.
    pub fn set(&self, reason: String) -> Error {
        let reason: Arc<str> = reason.into();
        self.0.send_if_modified(|noted| {
            let first = noted.is_none();
            if first {
                tracing::error!(%reason, "the database has failed");
                *noted = Some(reason.clone());
            }
            first
        });
        Error::Broken(reason)
    }

    /// Notes an error that means failure, and passes all on.
    pub fn heed<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| match error {
            Error::Broken(reason) => self.set(reason.to_string()),
            other => other,
        })
    }

    pub fn is_set(&self) -> bool {
        self.0.borrow().is_some()
    }

    pub fn check(&self) -> Result<(), Error> {
        self.0.borrow().clone().map_or(Ok(()), |reason| Err(Error::Broken(reason)))
    }

    /// Returns once the disk has failed, and how.
    pub async fn wait(&self) -> Arc<str> {
        let mut noted = self.0.subscribe();
        match noted.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            // The sender is here, so it cannot be gone.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
