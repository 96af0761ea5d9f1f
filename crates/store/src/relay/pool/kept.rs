//! The connections that a pool keeps, by address.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::{Sender1, Sender2};

/// Connections of HTTP/1.1 that are kept while nobody uses them, for each address.
const MOST_IDLE: usize = 25;
/// Requests at once on a connection of HTTP/2: the least that servers are advised to allow.
const MOST_STREAMS: usize = 100;

/// A connection, by the number of requests that it serves at once.
#[derive(Debug)]
pub enum Connection {
    /// HTTP/1.1.
    Single(Sender1),
    /// HTTP/2, with the number that its pool knows it by.
    Shared(Sender2, u64),
}

/// The connections by address. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Kept(Arc<Mutex<Hosts>>);

#[derive(Debug, Default)]
struct Hosts {
    by_address: HashMap<String, Host>,
    /// The number of the last connection of HTTP/2.
    last: u64,
}

#[derive(Debug, Default)]
struct Host {
    idle: Vec<Sender1>,
    multiplexed: Vec<Multiplexed>,
}

#[derive(Debug)]
struct Multiplexed {
    number: u64,
    sender: Sender2,
    streams: usize,
}

/// The use of a connection by one request.
#[derive(Debug)]
pub struct Lease {
    /// `None` once it was given back.
    pub connection: Option<Connection>,
    /// Whether another request may follow on the connection.
    pub is_reusable: bool,
    address: String,
    kept: Kept,
}

impl Kept {
    /// Takes a connection to an address that can take a request at once.
    pub fn take(&self, address: &str) -> Option<Lease> {
        let mut hosts = self.lock();
        let host = hosts.by_address.get_mut(address)?;
        host.multiplexed.retain(|one| !one.sender.is_closed());
        let connection = match host.multiplexed.iter_mut().find(|one| one.streams < MOST_STREAMS) {
            Some(free) => {
                free.streams += 1;
                Connection::Shared(free.sender.clone(), free.number)
            }
            None => {
                let open = std::iter::from_fn(|| host.idle.pop()).find(|sender| !sender.is_closed());
                Connection::Single(open?)
            }
        };
        Some(self.lease(address, connection))
    }

    /// Takes a new connection of HTTP/1.1 for its first request.
    pub fn add_single(&self, address: &str, sender: Sender1) -> Lease {
        self.lease(address, Connection::Single(sender))
    }

    /// Takes a new connection of HTTP/2 for its first request; others may follow at once.
    pub fn add_shared(&self, address: &str, sender: Sender2) -> Lease {
        let mut hosts = self.lock();
        hosts.last += 1;
        let number = hosts.last;
        let one = Multiplexed { number, sender: sender.clone(), streams: 1 };
        hosts.by_address.entry(address.to_owned()).or_default().multiplexed.push(one);
        self.lease(address, Connection::Shared(sender, number))
    }

    /// Gives up connections to other addresses than these.
    pub fn keep_only(&self, addresses: &[String]) {
        let mut hosts = self.lock();
        if hosts.by_address.len() > addresses.len() {
            hosts.by_address.retain(|address, _| addresses.contains(address));
        }
    }

    pub fn clear(&self) {
        self.lock().by_address.clear();
    }

    fn lease(&self, address: &str, connection: Connection) -> Lease {
        // Nobody knows where an answer of HTTP/1.1 ends that was not read.
        let is_reusable = matches!(connection, Connection::Shared(..));
        Lease { connection: Some(connection), is_reusable, address: address.to_owned(), kept: self.clone() }
    }

    fn lock(&self) -> MutexGuard<'_, Hosts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Host {
    /// Takes back a connection of HTTP/2. Beside connections with room for requests, none is kept without any.
    fn finish(&mut self, number: u64, is_reusable: bool) {
        let Some(at) = self.multiplexed.iter().position(|one| one.number == number) else { return };
        self.multiplexed[at].streams -= 1;
        let has_room = |one: &&Multiplexed| one.number != number && one.streams < MOST_STREAMS;
        let is_spare = self.multiplexed[at].streams == 0 && self.multiplexed.iter().any(|one| has_room(&one));
        if !is_reusable || is_spare {
            self.multiplexed.swap_remove(at);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        let mut hosts = self.kept.lock();
        match connection {
            Connection::Shared(sender, number) => {
                if let Some(host) = hosts.by_address.get_mut(&self.address) {
                    host.finish(number, self.is_reusable && !sender.is_closed());
                }
            }
            Connection::Single(sender) if self.is_reusable && !sender.is_closed() => {
                let address = std::mem::take(&mut self.address);
                let host = hosts.by_address.entry(address).or_default();
                if host.idle.len() < MOST_IDLE {
                    host.idle.push(sender);
                }
            }
            Connection::Single(_) => {}
        }
    }
}

/// The body of an answer. Its connection is free for other requests once it was read.
#[derive(Debug)]
pub struct Receiving {
    body: Incoming,
    lease: Option<Lease>,
}

impl Receiving {
    pub(super) fn new(body: Incoming, lease: Lease) -> Self {
        let mut receiving = Self { body, lease: Some(lease) };
        receiving.look();
        receiving
    }

    /// Gives the connection back if nothing more comes.
    fn look(&mut self) {
        if self.body.is_end_stream() {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some(mut lease) = self.lease.take() {
            lease.is_reusable = true;
        }
    }
}

impl Body for Receiving {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match &polled {
            Poll::Ready(None) => self.finish(),
            Poll::Ready(Some(Ok(_))) => self.look(),
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
