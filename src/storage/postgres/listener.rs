//! Hints from other replicas: a connection that LISTENs, and a slow poll that stands in when it is lost.

use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPool};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// A hint comes at least this often, so a lost connection costs latency and nothing else.
const POLL: Duration = Duration::from_millis(500);
const RECONNECT: Duration = Duration::from_millis(250);

pub struct Listener {
    notified: Arc<Notify>,
    task: AbortHandle,
}

impl Listener {
    pub fn spawn(pool: PgPool, channel: String) -> Self {
        let notified = Arc::new(Notify::new());
        let task = tokio::spawn(listen(pool, channel, notified.clone())).abort_handle();
        Self { notified, task }
    }

    /// Returns when there may be something new: a notification, or the time of a poll.
    pub async fn hint(&self) {
        let _ = tokio::time::timeout(POLL, self.notified.notified()).await;
    }

    pub fn stop(&self) {
        self.task.abort();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(pool: PgPool, channel: String, notified: Arc<Notify>) {
    loop {
        if let Err(error) = listen_once(&pool, &channel, &notified).await {
            tracing::debug!(%error, "LISTEN connection lost, polling until it is back");
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

async fn listen_once(pool: &PgPool, channel: &str, notified: &Notify) -> Result<(), sqlx::Error> {
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(channel).await?;
    // Something may have been committed before LISTEN took effect.
    notified.notify_one();
    while listener.try_recv().await?.is_some() {
        notified.notify_one();
    }
    Ok(())
}
