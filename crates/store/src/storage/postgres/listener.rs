//! Hints from other replicas: a connection that LISTENs for all stores of a database, and slow polls that take its place while
//! it is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Executor;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use uuid::Uuid;

use super::engine::lacks;
use super::hosts::Host;
use super::pool::Sessions;
use super::session::{Purpose, Schema, Ways, prepare};

/// The longest time between two hints while notifications come: the lag of this server if the listening connection has died
/// silently, until that is found out.
const POLL: Duration = Duration::from_secs(5);
/// The same while the listening connection is lost.
const POLL_LOST: Duration = Duration::from_millis(500);
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

/// All stores of a database that listen. Clones share them.
#[derive(Clone)]
pub struct Listeners(Arc<Shared>);

struct Shared {
    ways: Ways,
    /// Told when the listening connection ends: what ended it has probably ended others.
    sessions: Sessions,
    state: Mutex<State>,
    /// The channels are others now.
    changed: Notify,
}

/// Whether notifications come from a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hearing {
    /// The listening connection stands.
    Connected,
    /// There is none at the moment.
    Lost,
    /// The database has no LISTEN.
    Unsupported,
}

struct State {
    /// The stores by the names of their channels, and by numbers, since two stores may have one schema.
    hearers: BTreeMap<(Box<str>, u64), Hearer>,
    last: u64,
    /// The task that listens, while there is a store.
    task: Option<AbortHandle>,
    hearing: watch::Sender<Hearing>,
}

/// A store that listens on a channel.
#[derive(Clone)]
struct Hearer {
    channel: Channel,
    notified: Arc<Notify>,
    hearing: watch::Receiver<Hearing>,
}

/// A store's part of the listening connection, until it is dropped.
pub struct Listener {
    listeners: Listeners,
    number: u64,
    hearer: Hearer,
}

impl Listeners {
    pub fn new(ways: Ways, sessions: Sessions) -> Self {
        let hearing = watch::Sender::new(Hearing::Lost);
        let state = Mutex::new(State { hearers: BTreeMap::new(), last: 0, task: None, hearing });
        Self(Arc::new(Shared { ways, sessions, state, changed: Notify::new() }))
    }

    pub fn add(&self, channel: Channel) -> Listener {
        let mut state = self.state();
        state.last += 1;
        let (number, name) = (state.last, channel.name.clone());
        let hearer = Hearer { channel, notified: Arc::default(), hearing: state.hearing.subscribe() };
        state.hearers.insert((name, number), hearer.clone());
        if state.task.is_none() && *state.hearing.borrow() != Hearing::Unsupported {
            state.task = Some(tokio::spawn(listen(self.clone())).abort_handle());
        }
        self.0.changed.notify_one();
        Listener { listeners: self.clone(), number, hearer }
    }

    fn remove(&self, listener: &Listener) {
        let mut state = self.state();
        state.hearers.remove(&(listener.hearer.channel.name.clone(), listener.number));
        if state.hearers.is_empty()
            && let Some(task) = state.task.take()
        {
            task.abort();
            state.hearing.send_replace(Hearing::Lost);
        }
        self.0.changed.notify_one();
    }

    fn channels(&self) -> BTreeSet<Box<str>> {
        self.state().hearers.keys().map(|(name, _)| name.clone()).collect()
    }

    /// Tells the stores of a channel that there may be something new.
    fn tell(&self, channel: &str, payload: Option<&str>) {
        let state = self.state();
        let hearers = state.hearers.range((channel.into(), 0)..=(channel.into(), u64::MAX));
        for (_, hearer) in hearers {
            if payload.is_none_or(|payload| hearer.channel.is_news(payload)) {
                hearer.notified.notify_one();
            }
        }
    }

    fn set(&self, hearing: Hearing) {
        self.state().hearing.send_replace(hearing);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hearer {
    /// Returns after a notification, when the listening connection is lost or back, or when the poll is due.
    async fn hint(&self) {
        let mut hearing = self.hearing.clone();
        let poll = match *hearing.borrow_and_update() {
            Hearing::Connected if self.channel.notifies => POLL,
            Hearing::Lost if self.channel.notifies => POLL_LOST,
            _ => POLL_ALONE,
        };
        let change = async {
            tokio::select! {
                () = self.notified.notified() => {}
                _ = hearing.changed() => {}
            }
        };
        let _ = timeout(poll, change).await;
    }
}

impl Listener {
    /// Returns when there may be something new.
    pub async fn hint(&self) {
        self.hearer.hint().await
    }

    pub fn stop(&self) {
        self.listeners.remove(self);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn listen(listeners: Listeners) {
    let mut pause = RECONNECT.0;
    loop {
        let mut listened = false;
        for (host, _) in listeners.0.ways.hosts.in_order() {
            let ended = listen_at(&host, &listeners, &mut listened).await;
            if listened {
                listeners.set(Hearing::Lost);
                listeners.0.sessions.doubt();
            }
            match ended {
                Ok(()) => {}
                Err(error) if lacks(&error) => {
                    tracing::warn!(
                        %error,
                        "the database has no LISTEN: this server finds the others' changes by asking for them"
                    );
                    return listeners.set(Hearing::Unsupported);
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
async fn listen_at(host: &Arc<Host>, listeners: &Listeners, listened: &mut bool) -> Result<(), sqlx::Error> {
    // A pool for this connection alone: sqlx returns a listener's connection to its pool without a limit of time.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(ANSWER)
        .after_connect(|connection, _| {
            Box::pin(async { prepare(connection, Purpose::Store, &Schema::Default).await })
        })
        .connect_lazy_with(host.options().await?);
    let mut connection = PgListener::connect_with(&pool).await?;
    // Its end is to be told at once.
    connection.eager_reconnect(false);
    let mut heard = BTreeSet::new();
    answered(hear(&mut connection, listeners, &mut heard)).await?;
    *listened = true;
    listeners.set(Hearing::Connected);
    loop {
        tokio::select! {
            () = listeners.0.changed.notified() => answered(hear(&mut connection, listeners, &mut heard)).await?,
            received = timeout(QUIET, connection.try_recv()) => match received {
                Ok(Ok(Some(hint))) => listeners.tell(hint.channel(), Some(hint.payload())),
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(error)) => return Err(error),
                // Either no server has written, or the connection has died silently.
                Err(_) => {
                    answered(async { connection.execute("SELECT 1").await.map(drop) }).await?;
                    if !listeners.0.ways.hosts.is_latest(host) {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// Listens on the channels of all stores, and on no others.
async fn hear(
    connection: &mut PgListener,
    listeners: &Listeners,
    heard: &mut BTreeSet<Box<str>>,
) -> Result<(), sqlx::Error> {
    let wanted = listeners.channels();
    for old in heard.difference(&wanted) {
        connection.unlisten(old).await?;
    }
    let new: Vec<&str> = wanted.difference(heard).map(|name| &**name).collect();
    if !new.is_empty() {
        connection.listen_all(new.iter().copied()).await?;
    }
    // Another server may have committed before LISTEN took effect.
    new.iter().for_each(|name| listeners.tell(name, None));
    *heard = wanted;
    Ok(())
}

async fn answered(work: impl Future<Output = Result<(), sqlx::Error>>) -> Result<(), sqlx::Error> {
    timeout(ANSWER, work).await.map_err(|_| sqlx::Error::PoolTimedOut)?
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// A store that nobody writes to asks the database seldom, but soon once it may have missed a notification.
    #[tokio::test(start_paused = true)]
    async fn polls_are_seldom_while_notifications_come() {
        let (sender, hearing) = watch::channel(Hearing::Lost);
        let hearer = |notifies| Hearer {
            channel: Channel::new("c", notifies),
            notified: Arc::default(),
            hearing: hearing.clone(),
        };
        let waited = async |hearer: &Hearer| {
            let begun = Instant::now();
            hearer.hint().await;
            // The clock of tests goes on by whole milliseconds.
            begun.elapsed().as_millis() / 10 * 10
        };
        let one = hearer(true);
        assert_eq!(waited(&one).await, POLL_LOST.as_millis());
        sender.send_replace(Hearing::Connected);
        assert_eq!(waited(&one).await, POLL.as_millis());
        assert_eq!(waited(&hearer(false)).await, POLL_ALONE.as_millis());
        one.notified.notify_one();
        assert_eq!(waited(&one).await, 0);
        let lost = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            sender.send_replace(Hearing::Lost);
        };
        assert_eq!(tokio::join!(waited(&one), lost).0, 1000);
        sender.send_replace(Hearing::Unsupported);
        assert_eq!(waited(&one).await, POLL_ALONE.as_millis());
    }
}
