//! The background tasks of a server: each has an owner, a name and an end.
//!
//! A task that panics, or that ends while the server still needs it, is a [`Failure`] of the whole server. The first
//! failure is kept; the owner of the server waits for it ([`Tasks::failed`]) and ends the process.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{Instrument as _, Span};

/// Why a server cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("its task {task:?} panicked: {message}")]
    Panicked { task: &'static str, message: Arc<str> },
    #[error("its task {task:?} has ended")]
    Ended { task: &'static str },
    /// The contents of the database cannot be relied on any more.
    #[error("{0}")]
    Store(Arc<str>),
    /// Another server has taken this server's name among the replicas.
    #[error("{0}")]
    Identity(Arc<str>),
}

/// A group of tasks that are stopped and waited for together. Clones are the same group.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    running: TaskTracker,
    stop: CancellationToken,
    failure: Arc<watch::Sender<Option<Failure>>>,
    /// Names the cluster in the lines of the log, if there are several.
    span: Option<Span>,
}

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// A new group of the same server. It is stopped and waited for by itself; its failures are failures of the server.
    pub fn group(&self) -> Self {
        Self { failure: self.failure.clone(), span: self.span.clone(), ..Self::default() }
    }

    /// The group of tasks whose lines in the log are within this span.
    pub fn within(self, span: Span) -> Self {
        Self { span: Some(span), ..self }
    }

    /// Runs a task that the server needs as long as it lives. Once the group is stopped, the task is dropped at its
    /// next await.
    pub fn run(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (stop, task) = (self.stop.clone(), task.boxed());
        self.run_to_end(name, async move {
            let _ = stop.run_until_cancelled(task).await;
        });
    }

    /// Runs a task that the server needs as long as it lives. After the group is stopped, the task must end by itself.
    pub fn run_to_end(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let (this, task) = (self.clone(), task.boxed());
        self.spawn(name, async move {
            task.await;
            if !this.stop.is_cancelled() {
                this.fail(Failure::Ended { task: name });
            }
        });
    }

    /// Runs work that ends by itself. When the group is stopped, the work is waited for.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<Option<T>> {
        self.start(name, work.boxed())
    }

    /// Starts a task. Its future is boxed, so that all that surrounds it is compiled once, and not for each task of the
    /// server.
    fn start<T: Send + 'static>(
        &self,
        name: &'static str,
        work: BoxFuture<'static, T>,
    ) -> JoinHandle<Option<T>> {
        let failure = self.failure.clone();
        let work = match &self.span {
            Some(span) => work.instrument(span.clone()).boxed(),
            None => work,
        };
        self.running.spawn(async move {
            let ended = AssertUnwindSafe(work).catch_unwind().await;
            ended.map_err(|panic| fail(&failure, Failure::panicked(name, &*panic))).ok()
        })
    }

    /// Reports that the server cannot continue. Only the first report counts.
    pub fn fail(&self, why: Failure) {
        fail(&self.failure, why);
    }

    /// Returns once the server cannot continue.
    pub async fn failed(&self) -> Failure {
        let mut failure = self.failure.subscribe();
        match failure.wait_for(Option::is_some).await.map(|failure| failure.clone()) {
            Ok(Some(why)) => why,
            // `self` holds the sender, so it cannot have been dropped.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Asks the tasks of this group to end.
    pub fn stop(&self) {
        self.stop.cancel();
        self.running.close();
    }

    /// Returns once the group has been asked to end.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Returns once the group has been asked to end and all of its tasks have ended.
    pub async fn ended(&self) {
        self.running.wait().await;
    }
}

impl Failure {
    fn panicked(task: &'static str, panic: &(dyn Any + Send)) -> Self {
        Failure::Panicked { task, message: panic_message(panic).into() }
    }
}

fn fail(failure: &watch::Sender<Option<Failure>>, why: Failure) {
    failure.send_if_modified(|first| {
        let fresh = first.is_none();
        if fresh {
            // Recorded first: the line may panic, and where nobody listens its values are not even computed.
            let why = &*first.insert(why);
            tracing::error!(%why, "the server cannot go on");
        }
        fresh
    });
}

/// The message of a panic, if it is a text, as most are.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_failure_counts() {
        let tasks = Tasks::new();
        tasks.fail(Failure::Store("first".into()));
        tasks.fail(Failure::Ended { task: "second" });
        assert_eq!(tasks.failed().await.to_string(), "first");
    }
}
