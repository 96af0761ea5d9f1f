//! The memory of answers that wait to be sent, counted by connection and in all.
//!
//! An answer counts from when it is made until the protocol has let go of its last byte: a reader may open no window, or one of
//! a single byte. So its bytes carry their count with them. What answers share, such as frames of watches and documents, does
//! not count.

mod held;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use http_body::{Body as _, Frame, SizeHint};

pub use self::held::Unsent;
use super::connection_state::{Connection, Stage};

/// The length of pieces that count: to count shorter ones would cost more than it bounds.
const COUNTED: usize = 1 << 10;
/// The part of the limit that connections may hold when some have been dropped, in eighths.
const RELIEVED: usize = 7;

/// A mark in the extensions of an answer: its bytes are shared with others and do not count.
#[derive(Clone, Copy, Debug)]
pub struct SharedBody;

/// Bytes that count until the last reference to them is dropped.
struct Counted {
    bytes: Bytes,
    connection: Arc<Connection>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connection.unsent.release(self.bytes.len(), self.connection.is_exempt());
    }
}

/// The bytes as they count for this connection, unless somebody else has them, too.
pub fn counted(bytes: Bytes, connection: &Arc<Connection>) -> Bytes {
    if bytes.len() < COUNTED || !bytes.is_unique() {
        return bytes;
    }
    connection.unsent.add(bytes.len(), connection.is_exempt());
    Bytes::from_owner(Counted { bytes, connection: connection.clone() })
}

/// Drops connections until the total is clearly below the limit, the largest of the user whose connections hold most first.
/// Connections of members of `system:masters` stay.
pub fn relieve<'a>(
    connections: impl Iterator<Item = &'a Arc<Connection>> + Clone,
    total: &AtomicUsize,
    limit: usize,
) -> usize {
    let mut dropped = 0;
    while total.load(Ordering::Relaxed) > limit / 8 * RELIEVED {
        let mut users: HashMap<u16, (usize, usize, &Arc<Connection>)> = HashMap::new();
        for connection in connections.clone().filter(|connection| !connection.is_exempt()) {
            let held = connection.unsent.known();
            let (sum, most, largest) = users.entry(connection.user()).or_insert((0, 0, connection));
            *sum += held;
            if held > *most {
                (*most, *largest) = (held, connection);
            }
        }
        let largest = users.into_values().max_by_key(|(sum, ..)| *sum);
        let Some((_, _, connection)) = largest.filter(|(_, most, _)| *most > 0) else { break };
        connection.unsent.give_up();
        connection.advance(Stage::Dropped);
        dropped += 1;
    }
    dropped
}

/// The body of an answer as the protocol gets it.
pub struct Outgoing {
    first: Option<Bytes>,
    /// The pieces after the first.
    rest: Option<Body>,
}

impl Outgoing {
    /// A body that is asked for its first piece at once, if its length is known: most have no other, and then `count` sees it.
    pub fn of(mut body: Body, count: impl FnOnce(Bytes) -> Bytes) -> Self {
        let Some(length) = body.size_hint().exact().filter(|length| *length > 0) else {
            return Self { first: None, rest: Some(body) };
        };
        // Whoever polls the rest is woken by it.
        let mut context = Context::from_waker(std::task::Waker::noop());
        let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut context) else {
            return Self { first: None, rest: Some(body) };
        };
        let first = frame.into_data().unwrap_or_default();
        match first.len() as u64 == length {
            true => Self { first: Some(count(first)), rest: None },
            false => Self { first: Some(first), rest: Some(body) },
        }
    }

    /// Whether all of it is there.
    pub fn is_whole(&self) -> bool {
        self.rest.is_none()
    }
}

impl From<Body> for Outgoing {
    fn from(body: Body) -> Self {
        Self { first: None, rest: Some(body) }
    }
}

impl http_body::Body for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &mut self.rest {
            Some(rest) => Pin::new(rest).poll_frame(context),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.as_ref().is_none_or(|rest| rest.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().map_or(0, |first| first.len() as u64);
        let rest = self.rest.as_ref().map_or(SizeHint::with_exact(0), |rest| rest.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(first + rest.lower());
        if let Some(upper) = rest.upper() {
            hint.set_upper(first + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use super::super::turns::Turns;
    use super::held::UNIT;
    use super::*;

    fn connections(users: &[&str]) -> (Vec<Arc<Connection>>, Arc<AtomicUsize>) {
        let (turns, total) = (Arc::new(Turns::new(Default::default())), Arc::new(AtomicUsize::new(0)));
        let connection = |user: &&str| {
            let connection = Arc::new(Connection::accepted_at(1, turns.clone(), total.clone()));
            connection.count_to(None, user, *user == "root");
            connection
        };
        (users.iter().map(connection).collect(), total)
    }

    fn bytes(length: usize) -> Bytes {
        vec![0; length].into()
    }

    #[test]
    fn bytes_count_until_nobody_has_them() {
        let (connections, total) = connections(&["alice"]);
        let connection = &connections[0];
        let held = || (connection.unsent.bytes(), total.load(Ordering::Relaxed));
        let mut answer = counted(bytes(100_000), connection);
        let part = answer.split_to(10);
        drop(answer);
        assert_eq!(held(), (100_000, 100_000 / UNIT * UNIT));
        drop(part);
        assert_eq!(held(), (0, 0));
        let frame = bytes(100_000);
        let shared = counted(frame.clone(), connection);
        assert_eq!(held(), (0, 0), "it is somebody else's, too");
        drop((frame, shared));
        let rest = counted(bytes(50_000), connection);
        connection.unsent.give_up();
        assert_eq!(held(), (50_000, 0));
        drop(rest);
        assert_eq!(held(), (0, 0));
    }

    #[test]
    fn the_user_who_holds_most_loses_his_largest_connection() {
        let (connections, total) = connections(&["alice", "bob", "bob", "bob", "root"]);
        let held: Vec<Bytes> = connections
            .iter()
            .zip([50, 20, 30, 20, 1000])
            .map(|(connection, units)| counted(bytes(units * UNIT), connection))
            .collect();
        // 120 units count, and 105 are seven eighths of the limit. A master's connection is not looked at.
        assert_eq!(relieve(connections.iter(), &total, 120 * UNIT), 1);
        let stages = || connections.iter().map(|connection| connection.stage()).collect::<Vec<_>>();
        let mut want = [Stage::Serving; 5];
        want[2] = Stage::Dropped;
        assert_eq!(stages(), want);
        // Alice is the one who holds most now.
        assert_eq!(relieve(connections.iter(), &total, 80 * UNIT), 1);
        want[0] = Stage::Dropped;
        assert_eq!(stages(), want);
        assert_eq!(relieve(connections.iter(), &total, 0), 2);
        assert_eq!(stages()[4], Stage::Serving);
        drop(held);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_body_of_one_piece_is_taken_out() {
        let whole = Outgoing::of(Body::from("abc"), |piece| piece);
        assert!(whole.is_whole() && whole.size_hint().exact() == Some(3) && !whole.is_end_stream());
        let empty = Outgoing::of(Body::empty(), |piece| piece);
        assert!(empty.is_end_stream() && empty.size_hint().exact() == Some(0));
    }
}
