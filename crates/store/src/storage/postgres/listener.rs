//! Hints from other replicas: a connection that LISTENs, and a slow poll that takes its place while it is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::engine::lacks;
use super::hosts::{Host, Hosts};
use super::pool::Pool;
use super::session::{Connector, Purpose, prepare};

/// The longest time between two hints, so that a lost connection costs latency and nothing else.
const POLL: Duration = Duration::from_millis(500);
/// The same where nobody announces anything.
const POLL_ALONE: Duration = Duration::from_millis(100);
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
    /// Whether the database can announce anything.
    notifies: bool,
}

impl Channel {
    #[expect(clippy::disallowed_methods, reason = "sessions of other processes share these names")]
    pub fn new(name: &str, notifies: bool) -> Self {
        Self { name: name.into(), sender: Uuid::new_v4().simple().to_string().into(), notifies }
    }

    /// The channel on which commits are to be announced, if that is possible.
    pub fn announced(&self) -> Option<&str> {
        self.notifies.then_some(&*self.name)
    }

    /// Whether a notification came from another server. Unknown forms, which other releases may send, count as news.
    fn is_news(&self, payload: &str) -> bool {
        payload.split_once(' ').is_none_or(|(_, sender)| sender != &*self.sender)
    }
}

pub struct Listener {
    notified: Arc<Notify>,
    /// Whether notifications come, or may come again after a pause.
    hears: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Listener {
    /// `pool` is told when this connection ends: what ended it has probably ended others.
    pub fn spawn(connector: Connector, channel: Channel, pool: Pool) -> Self {
        let notified = Arc::new(Notify::new());
        let hears = Arc::new(AtomicBool::new(channel.notifies));
        let listening = listen(connector, channel, pool, notified.clone(), hears.clone());
        let task = tokio::spawn(listening).abort_handle();
        Self { notified, hears, task }
    }

    /// Returns when there may be something new: after a notification, or when the poll is due.
    pub async fn hint(&self) {
        let poll = if self.hears.load(Ordering::Relaxed) { POLL } else { POLL_ALONE };
        let _ = tokio::time::timeout(poll, self.notified.notified()).await;
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

async fn listen(
    connector: Connector,
    channel: Channel,
    pool: Pool,
    notified: Arc<Notify>,
    hears: Arc<AtomicBool>,
) {
    let mut pause = RECONNECT.0;
    loop {
        let mut listened = false;
        for (host, _) in connector.hosts().in_order() {
            let ended = listen_at(&host, connector.hosts(), &channel, &notified, &mut listened).await;
            if listened {
                pool.doubt();
            }
            match ended {
                Ok(()) => {}
                Err(error) if lacks(&error) => {
                    tracing::warn!(
                        %error,
                        "the database has no LISTEN: this server finds the others' changes by asking for them"
                    );
                    hears.store(false, Ordering::Relaxed);
                    return;
                }
                Err(error) => {
                    tracing::debug!(host = host.name, %error, "LISTEN connection lost, polling until it is back");
                }
            }
            if listened {
                break;
            }
        }
        pause = if listened { RECONNECT.0 } else { RECONNECT.1.min(pause * 2) };
        tokio::time::sleep(pause).await;
    }
}

/// Listens at a host, as long as it is the one that serves. A standby refuses LISTEN.
async fn listen_at(
    host: &Arc<Host>,
    hosts: &Hosts,
    channel: &Channel,
    notified: &Notify,
    listened: &mut bool,
) -> Result<(), sqlx::Error> {
    // A pool for this connection alone: sqlx returns a listener's connection to its pool without a limit of time.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ANSWER)
        .after_connect(|connection, _| Box::pin(prepare(connection, Purpose::Store)))
        .connect_lazy_with(host.options().clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    // Its end is to be told at once.
    listener.eager_reconnect(false);
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
                if !hosts.is_latest(host) {
                    return Ok(());
                }
            }
        }
    }
}
