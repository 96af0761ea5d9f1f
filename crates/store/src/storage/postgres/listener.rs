//! Hints from other replicas: a connection that LISTENs, and a slow poll that takes its place while it is lost.

use std::sync::Arc;
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::session::{Connector, Purpose, prepare};

/// The longest time between two hints, so that a lost connection costs latency and nothing else.
const POLL: Duration = Duration::from_millis(500);
/// The pause between attempts to connect: doubles after each failure, from the first value up to the second.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(4));
/// After this time without a notification the connection is probed.
const QUIET: Duration = Duration::from_secs(15);
const ANSWER: Duration = Duration::from_secs(5);

/// The channel on which replicas announce their commits. A notification is "revision sender"; no receiver relies on the
/// revision.
#[derive(Clone)]
pub struct Channel {
    pub name: Box<str>,
    /// Identifies the process that opened this store, which ignores its own notifications.
    pub sender: Box<str>,
}

impl Channel {
    pub fn new(name: &str) -> Self {
        Self { name: name.into(), sender: Uuid::new_v4().simple().to_string().into() }
    }

    /// Whether a notification came from another server. Unknown forms, which other releases may send, count as news.
    fn is_news(&self, payload: &str) -> bool {
        payload.split_once(' ').is_none_or(|(_, sender)| sender != &*self.sender)
    }
}

pub struct Listener {
    notified: Arc<Notify>,
    task: AbortHandle,
}

impl Listener {
    pub fn spawn(connector: Connector, channel: Channel) -> Self {
        let notified = Arc::new(Notify::new());
        let task = tokio::spawn(listen(connector, channel, notified.clone())).abort_handle();
        Self { notified, task }
    }

    /// Returns when there may be something new: after a notification, or when the poll is due.
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

async fn listen(connector: Connector, channel: Channel, notified: Arc<Notify>) {
    let mut pause = RECONNECT.0;
    loop {
        let mut listened = false;
        if let Err(error) = listen_once(&connector, &channel, &notified, &mut listened).await {
            tracing::debug!(%error, "LISTEN connection lost, polling until it is back");
        }
        pause = if listened { RECONNECT.0 } else { RECONNECT.1.min(pause * 2) };
        tokio::time::sleep(pause).await;
    }
}

async fn listen_once(
    connector: &Connector,
    channel: &Channel,
    notified: &Notify,
    listened: &mut bool,
) -> Result<(), sqlx::Error> {
    // A pool for this connection alone: sqlx returns a listener's connection to its pool without a limit of time.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ANSWER)
        .after_connect(|connection, _| Box::pin(prepare(connection, Purpose::Store)))
        .connect_lazy_with(connector.options().clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    timeout(ANSWER, listener.listen(&channel.name)).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
    *listened = true;
    // Another server may have committed before LISTEN took effect.
    notified.notify_one();
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(hint))) if channel.is_news(hint.payload()) => notified.notify_one(),
            Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            // Either no server has written, or the connection has died silently.
            Err(_) => {
                let alive = timeout(ANSWER, listener.execute("SELECT 1")).await;
                alive.map_err(|_| sqlx::Error::PoolTimedOut)??;
            }
        }
    }
}
