//! The keys of a running etcd, or of a kine of any database, by etcd's API: all keys at one revision, and then each
//! change after it until nothing is missing.

mod client;

use std::io;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{BoxStream, StreamExt as _};
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;

use self::client::{Client, Watch};
use crate::wire::messages::{self, Event, EventType, WatchResponse};
use crate::{Error, KeyValue};

pub use self::client::Endpoint;

/// The keys of a page: the first and the largest number, and the size at which the number is doubled or halved. A server
/// counts all keys behind a page for each one, so that few large pages are faster.
const KEYS: (usize, usize) = (500, 10_000);
const PAGE_BYTES: usize = 4 << 20;
/// How many batches may wait for their receiver.
const BATCHES_AHEAD: usize = 2;
/// How often a watch is asked how far it is while the end is near.
const QUESTIONS: Duration = Duration::from_millis(500);

/// A server whose keys can be read.
pub struct Live {
    client: Client,
    revision: u64,
    count: u64,
}

/// A change of a key, or a step of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    Put(KeyValue),
    Delete {
        key: Vec<u8>,
        /// The revision of the deletion.
        revision: u64,
    },
    /// All keys of the first state have come; changes follow from now on.
    Following,
    /// All changes until this revision have come. It is the last item.
    Reached(u64),
}

/// The moment at which changes are not followed any longer.
pub struct CutOver {
    /// Called when following begins. The future completes once nothing writes to the source any more.
    pub asked: Box<dyn FnOnce() -> io::Result<BoxFuture<'static, ()>> + Send>,
    /// How long there has to be no change for the same, if that counts.
    pub quiet: Option<Duration>,
}

impl Live {
    /// Asks for the newest state of the keys with a prefix.
    pub async fn open(endpoints: Vec<Endpoint>, prefix: &str) -> Result<Self, Error> {
        let (first, mut end) = (prefix.as_bytes().to_vec(), prefix.as_bytes().to_vec());
        // The first key behind all of these.
        if let Some(last) = end.last_mut() {
            *last += 1;
        }
        let mut client = Client::new(endpoints, (first, end));
        let (revision, count) = client.extent().await?;
        Ok(Self { client, revision, count })
    }

    /// The newest revision when the server was asked first.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of keys at that revision.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The keys at that revision in their order, and the changes after it until they are cut off. An error ends the stream.
    pub fn changes(self, cut_over: Option<CutOver>) -> BoxStream<'static, Result<Vec<Change>, Error>> {
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD);
        let reading = AbortOnDropHandle::new(tokio::spawn(async move {
            if let Err(error) = self.send(cut_over, &sender).await {
                let _ = sender.send(Err(error)).await;
            }
        }));
        let batches =
            futures_util::stream::unfold((receiver, Some(reading)), async |(mut receiver, reading)| {
                let reading = reading?;
                if let Some(batch) = receiver.recv().await {
                    return Some((batch, (receiver, Some(reading))));
                }
                // What a task has sent before it died is not the whole state.
                let died = reading.await.err()?;
                Some((Err(Error::Call(died.to_string())), (receiver, None)))
            });
        batches.boxed()
    }

    async fn send(mut self, cut_over: Option<CutOver>, batches: &Sender) -> Result<(), Error> {
        self.send_pages(batches).await?;
        match cut_over {
            Some(CutOver { asked, quiet }) => {
                // Whoever is told that changes are followed may end it at once.
                let asked = asked()?;
                send(batches, vec![Change::Following]).await?;
                self.follow((asked, quiet), batches).await
            }
            None => Ok(()),
        }
    }

    async fn send_pages(&mut self, batches: &Sender) -> Result<(), Error> {
        let (mut limit, most) = KEYS;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = self.client.page(after.as_deref(), limit, self.revision).await?;
            let bytes: usize = page.kvs.iter().map(|kv| kv.value.len()).sum();
            limit = if bytes < PAGE_BYTES { (limit * 2).min(most) } else { (limit / 2).max(1) };
            after = page.kvs.last().map(|last| last.key.to_vec());
            let is_last = !page.more || after.is_none();
            send(batches, page.kvs.into_iter().map(|kv| Change::Put(kv.into())).collect()).await?;
            if is_last {
                return Ok(());
            }
        }
    }

    async fn follow(
        mut self,
        (mut asked, quiet): (BoxFuture<'static, ()>, Option<Duration>),
        batches: &Sender,
    ) -> Result<(), Error> {
        let (mut reached, mut goal, mut changed) = (self.revision, None, Instant::now());
        let mut questions = tokio::time::interval(QUESTIONS);
        questions.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut watch: Option<Watch> = None;
        loop {
            if goal.is_some_and(|goal| reached >= goal) {
                return send(batches, vec![Change::Reached(reached)]).await;
            }
            let watching = match &mut watch {
                Some(watching) => watching,
                None => watch.insert(self.client.watch(reached + 1).await?),
            };
            let quiet = until(quiet.map(|quiet| changed + quiet));
            tokio::select! {
                response = watching.next() => match response? {
                    Some(response) => {
                        reached = reached.max(reached_with(&response));
                        if !response.events.is_empty() {
                            changed = Instant::now();
                            send(batches, response.events.into_iter().filter_map(change).collect()).await?;
                        }
                    }
                    None => watch = None,
                },
                () = &mut asked, if goal.is_none() => goal = Some(self.client.extent().await?.0),
                () = quiet, if goal.is_none() => goal = Some(self.client.extent().await?.0),
                _ = questions.tick(), if goal.is_some() => watching.ask_progress(),
            }
        }
    }
}

/// Waits until a time; for ever if there is none.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

type Sender = mpsc::Sender<Result<Vec<Change>, Error>>;

/// Sends a batch. If nobody takes it, the stream has been dropped, and so will be the sender's future.
async fn send(batches: &Sender, batch: Vec<Change>) -> Result<(), Error> {
    let _ = batches.send(Ok(batch)).await;
    Ok(())
}

/// The revision until which nothing is missing after a response. The header of one with events, or of the first one, may
/// be ahead of what has been sent.
fn reached_with(response: &WatchResponse) -> u64 {
    let revision = match response.events.last() {
        _ if response.fragment || response.created => 0,
        Some(event) => event.kv.as_ref().map_or(0, |kv| kv.mod_revision),
        None => response.header.as_ref().map_or(0, |header| header.revision),
    };
    revision.unsigned_abs()
}

fn change(event: Event) -> Option<Change> {
    let kv = event.kv?;
    Some(match event.kind {
        put if put == EventType::Put as i32 => Change::Put(kv.into()),
        _ => Change::Delete { key: kv.key.to_vec(), revision: kv.mod_revision.unsigned_abs() },
    })
}

impl From<messages::KeyValue> for KeyValue {
    fn from(kv: messages::KeyValue) -> Self {
        Self { key: kv.key.to_vec(), mod_revision: kv.mod_revision.unsigned_abs(), value: kv.value.to_vec() }
    }
}

#[cfg(test)]
mod tests;
