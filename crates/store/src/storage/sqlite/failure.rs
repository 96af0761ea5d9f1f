//! The note that the disk has lost a write it had confirmed.
//!
//! The kernel reports a page that it could not write once, and then treats it as written. So a failed sync cannot be
//! repaired: it is noted here, the database is not used any more, and the process must end. The next start finds out by
//! the log's checksums what is there, and moves it into the file before it shows anything.

use std::sync::Arc;

use tokio::sync::watch;

use crate::storage::Error;

/// Set once, and seen by all clones.
#[derive(Clone, Debug, Default)]
pub struct Failure(Arc<watch::Sender<Option<Arc<str>>>>);

impl Failure {
    /// Notes the failure; only the first one is kept. Returns the error for the caller.
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

    /// Notes an error that means failure. Returns the result unchanged.
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

    /// Returns once the disk has failed, with the reason.
    pub async fn wait(&self) -> Arc<str> {
        let mut noted = self.0.subscribe();
        match noted.wait_for(Option::is_some).await.map(|reason| reason.clone()) {
            Ok(Some(reason)) => reason,
            // `self` holds the sender, so it cannot have been dropped.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}
