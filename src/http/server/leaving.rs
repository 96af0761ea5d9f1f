//! How a connection ends when its server drains, without breaking a request that is on its way.
//!
//! A peer that has just asked may be about to ask again, and one that has just connected is about to ask. In HTTP/1.1 nothing
//! can be said to it but in an answer, so its connection is kept for one more request, whose answer says `Connection: close`.
//! In HTTP/2 it is sent GOAWAY, and whatever it sends until it has read that is served; only clients that have not asked yet
//! are waited for, since some of them take GOAWAY on a fresh connection for a failure. Watches end after the peer was told, so
//! that it asks for the next one elsewhere.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::connection_state::{Connection, Stage};
use super::connections::Connections;

/// For how long after a request, or after it was accepted, a connection counts as one in use.
const IN_USE: Duration = Duration::from_secs(5);
/// How long it is kept for the next request.
pub const PATIENCE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    Http2,
}

/// Serves until the peer closes the connection or the connection is dropped. After it was told to close, it ends as
/// soon as no request is running.
pub async fn run_protocol<P>(
    mut served: Pin<&mut P>,
    protocol: Protocol,
    connection: &Connection,
    connections: &Connections,
    go_away: impl Fn(Pin<&mut P>),
) -> hyper::Result<()>
where
    P: Future<Output = hyper::Result<()>>,
{
    let mut stage = Stage::Serving;
    let mut farewell = None;
    let mut told = false;
    poll_fn(|context| {
        loop {
            if let Poll::Ready(next) = connection.poll_stage(context, stage) {
                stage = next;
                match stage {
                    Stage::Leaving => farewell = Some(Farewell::new(protocol, connection, connections)),
                    Stage::Going => {
                        go_away(served.as_mut());
                        told = true;
                    }
                    Stage::Serving | Stage::Dropped => {}
                }
                // Registers the waker for the next stage.
                continue;
            }
            if stage == Stage::Dropped || connection.is_stopped() {
                return Poll::Ready(Ok(()));
            }
            let ended = served.as_mut().poll(context);
            // GOAWAY stands before the ends of watches now.
            if std::mem::take(&mut told) && connection.is_leaving() {
                connection.draining.cancel();
            }
            if ended.is_ready() {
                return ended;
            }
            match &mut farewell {
                Some(farewell) if stage == Stage::Leaving => ready!(farewell.poll_due(context, connection)),
                _ => return Poll::Pending,
            }
            connection.advance(Stage::Going);
        }
    })
    .await
}

/// Returns when a connection whose handshake goes on is not waited for any more.
pub async fn given_up(connection: &Connection, connections: &Connections) {
    let after = |known| poll_fn(move |context| connection.poll_stage(context, known));
    if after(Stage::Serving).await == Stage::Leaving && connections.is_in_use(connection, IN_USE) {
        let _ = tokio::time::timeout(connections.limits().patience, after(Stage::Leaving)).await;
    }
}

/// When a connection whose server drains is told so.
struct Farewell {
    protocol: Protocol,
    patience: Duration,
    due: Pin<Box<Sleep>>,
}

impl Farewell {
    fn new(protocol: Protocol, connection: &Connection, connections: &Connections) -> Self {
        if protocol == Protocol::Http1 {
            connection.draining.cancel();
        }
        let is_awaited = connection.active() > 0 || connections.is_in_use(connection, IN_USE);
        let patience = connections.limits().patience;
        let due = sleep(if is_awaited { patience } else { Duration::ZERO });
        Self { protocol, patience, due: Box::pin(due) }
    }

    fn poll_due(&mut self, context: &mut Context<'_>, connection: &Connection) -> Poll<()> {
        loop {
            if self.protocol == Protocol::Http2 && connection.last_request() > 0 {
                return Poll::Ready(());
            }
            ready!(self.due.as_mut().poll(context));
            let now = Instant::now();
            // An answer that had begun before does not say that it is the last one.
            let since = if connection.active() > 0 { Some(now) } else { connection.resting_since() };
            match since.map(|since| since + self.patience) {
                Some(until) if until > now => self.due.as_mut().reset(until),
                _ => return Poll::Ready(()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::super::Limits;
    use super::super::connections::ConnectionEntry;
    use super::super::requests::Requests;
    use super::*;

    /// Who waits for so long does not end.
    const EVER: Duration = Duration::from_secs(60 * 60);
    const SHORT: Duration = Duration::from_millis(30);

    /// A connection of a client from which nothing comes by itself. Its protocol ends when it is told to go away.
    struct Peer {
        connections: Arc<Connections>,
        entry: ConnectionEntry,
        requests: Arc<Requests>,
    }

    impl Peer {
        fn new(patience: Duration) -> Self {
            let connections = Connections::new(
                Limits { patience, ..Limits::default() },
                Arc::default(),
                Default::default(),
            );
            let entry = connections.admit([127, 0, 0, 1].into());
            let requests = Requests::of(entry.connection().clone(), connections.clone());
            Self { connections, entry, requests }
        }

        fn connection(&self) -> &Connection {
            self.entry.connection()
        }

        fn asks(&self) -> Arc<Requests> {
            self.connection().note_request(self.connections.now());
            self.requests.clone()
        }

        fn rests(&self, seconds: u64) {
            (0..seconds).for_each(|_| self.connections.sweep());
        }

        /// Drains, and tells how long it takes until the peer is told. `meanwhile` goes on within the protocol.
        async fn told_after(&self, protocol: Protocol, meanwhile: impl Future<Output = ()>) -> Duration {
            let (began, told) = (Instant::now(), Cell::new(None));
            let mut meanwhile = pin!(meanwhile.fuse());
            let mut served = pin!(poll_fn(|context| {
                let _ = meanwhile.as_mut().poll(context);
                told.get().map_or(Poll::Pending, |_| Poll::Ready(Ok(())))
            }));
            let go_away = |_: Pin<&mut _>| told.set(Some(began.elapsed()));
            self.connections.leave();
            let (connection, connections) = (self.connection(), &self.connections);
            run_protocol(served.as_mut(), protocol, connection, connections, go_away).await.unwrap();
            assert!(connection.draining.is_cancelled(), "watches end");
            told.get().unwrap()
        }
    }

    #[tokio::test]
    async fn what_is_in_use_waits_for_one_more_request() {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            assert!(Peer::new(SHORT).told_after(protocol, async {}).await >= SHORT, "{protocol:?}");
        }
        let used = Peer::new(SHORT);
        used.rests(6);
        drop(used.asks());
        used.rests(5);
        assert!(used.told_after(Protocol::Http1, async {}).await >= SHORT);
    }

    #[tokio::test]
    async fn what_is_not_in_use_is_told_at_once() {
        for protocol in [Protocol::Http1, Protocol::Http2] {
            let idle = Peer::new(EVER);
            drop(idle.asks());
            idle.rests(6);
            idle.told_after(protocol, async {}).await;
        }
    }

    /// An answer whose head was sent before does not say that the connection closes.
    #[tokio::test]
    async fn who_reads_a_long_answer_may_ask_after_it() {
        let peer = Peer::new(SHORT);
        let reading = peer.asks();
        peer.rests(100);
        let told = peer.told_after(Protocol::Http1, async {
            tokio::time::sleep(3 * SHORT).await;
            peer.connection().rest();
            drop(reading);
        });
        assert!(told.await >= 4 * SHORT);
    }

    /// Requests that are on their way are served after GOAWAY, too, but some clients take it for a failure where they have
    /// not sent any yet.
    #[tokio::test]
    async fn goaway_waits_for_the_first_request_and_no_other() {
        let peer = Peer::new(EVER);
        drop(peer.asks());
        peer.told_after(Protocol::Http2, async {}).await;
        let peer = Peer::new(EVER);
        let told = peer.told_after(Protocol::Http2, async {
            tokio::time::sleep(SHORT).await;
            drop(peer.asks());
        });
        assert!(told.await >= SHORT);
    }

    #[tokio::test]
    async fn a_handshake_has_as_long() {
        for (seconds, patience) in [(0, SHORT), (6, EVER)] {
            let (peer, began) = (Peer::new(patience), Instant::now());
            peer.rests(seconds);
            peer.connections.leave();
            given_up(peer.connection(), &peer.connections).await;
            assert!(seconds > 0 || began.elapsed() >= SHORT);
        }
    }
}
