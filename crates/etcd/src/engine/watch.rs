//! Watches: many on a stream, each a cursor over the events. A stream is polled by its client, so one that reads
//! nothing holds a few answers and nobody up.

mod create;
mod history;
mod session;

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream};
use tokio::time::Instant;

use self::session::Session;
use super::events::Event;
use super::interval::Interval;
use super::lags::Sequence;
use super::{Error, Etcd};
use crate::wire::messages::{self, EventType, WatchRequest, WatchResponse};

/// The messages of a client, or the reason for which one of its watches is refused.
pub type Requests = BoxStream<'static, Result<WatchRequest, String>>;

/// A watch that is not canceled.
struct Watch {
    interval: Interval,
    /// The revision of its first event, and what the request had for it.
    start: i64,
    wanted: i64,
    puts: bool,
    deletes: bool,
    prev_kv: bool,
    fragment: bool,
    progress: bool,
    /// Its own place while it is behind the stream's.
    behind: Option<Sequence>,
    /// When it was sent something last.
    sent: Instant,
}

/// The watches of a stream, found by the keys that they are about.
#[derive(Default)]
struct Watches {
    all: BTreeMap<i64, Watch>,
    by_key: HashMap<Bytes, Vec<i64>>,
    of_ranges: Vec<i64>,
}

impl Etcd {
    /// Answers a stream of requests for watches. The answer goes on after the last request; it ends when it is dropped.
    pub fn watch(
        &self,
        requests: Requests,
    ) -> impl Stream<Item = Result<WatchResponse, Error>> + Send + use<> {
        let session = Session::new(self.clone(), requests);
        stream::unfold(Some(session), async |session| {
            let mut session = session?;
            match session.next().await {
                Ok(answer) => Some((Ok(answer), Some(session))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Watch {
    /// Whether the watch is told of an event in its interval.
    fn wants(&self, event: &Event) -> bool {
        let is_wanted = if event.kv.is_some() { self.puts } else { self.deletes };
        is_wanted && event.revision >= self.start
    }

    /// The event as the watch gets it.
    fn message(&self, event: &Event) -> messages::Event {
        let kind = if event.kv.is_some() { EventType::Put } else { EventType::Delete };
        let kv = match &event.kv {
            Some(kv) => kv.message(),
            None => messages::KeyValue {
                key: event.key.clone(),
                mod_revision: event.revision,
                ..messages::KeyValue::default()
            },
        };
        let prev_kv = event.prev.as_ref().filter(|_| self.prev_kv).map(|prev| prev.message());
        messages::Event { kind: kind as i32, kv: Some(kv), prev_kv }
    }
}

impl Watches {
    fn insert(&mut self, id: i64, watch: Watch) {
        match watch.interval.as_key() {
            Some(key) => self.by_key.entry(key.clone()).or_default().push(id),
            None => self.of_ranges.push(id),
        }
        self.all.insert(id, watch);
    }

    fn remove(&mut self, id: i64) -> Option<Watch> {
        let watch = self.all.remove(&id)?;
        match watch.interval.as_key() {
            Some(key) => {
                if let Some(ids) = self.by_key.get_mut(key) {
                    ids.retain(|other| *other != id);
                    if ids.is_empty() {
                        self.by_key.remove(key);
                    }
                }
            }
            None => self.of_ranges.retain(|other| *other != id),
        }
        Some(watch)
    }

    /// The watches that are not behind and are told of an event.
    fn of_event<'a>(&'a self, event: &'a Event) -> impl Iterator<Item = (i64, &'a Watch)> {
        let of_key = self.by_key.get(&event.key).into_iter().flatten();
        let found = of_key.chain(&self.of_ranges).filter_map(|id| Some((*id, self.all.get(id)?)));
        found.filter(|(_, watch)| {
            watch.behind.is_none() && watch.interval.contains(&event.key) && watch.wants(event)
        })
    }
}
