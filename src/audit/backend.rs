//! What is common to all backends: how they get events, and what becomes of those that are too large or get lost.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::batch::Batches;
use super::config::{self, Mode, Truncation};
use super::event::Event;
use super::policy::{Level, Stage};
use crate::metrics::AuditMetrics;
use crate::tasks::Tasks;

/// What became of an event that a backend got.
pub enum Receipt {
    /// It is kept, or nobody has to know.
    Taken,
    /// The request waits for the answer: whether the event is kept.
    Waiting(BoxFuture<'static, bool>),
}

impl Receipt {
    pub async fn kept(self) -> bool {
        match self {
            Self::Taken => true,
            Self::Waiting(delivery) => delivery.await,
        }
    }
}

/// Where events go.
pub trait Backend: Send + Sync {
    fn take(&self, event: &Event<'_>) -> Receipt;

    /// Delivers what was deferred: see [`Delivery::defer`].
    fn hurry(&self) {}

    /// Delivers what is buffered.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The way of events out of the process.
pub trait Delivery: Send + Sync + 'static {
    /// The name in metrics and logs.
    const PLUGIN: &'static str;
    type Entry: Entry;

    /// What is delivered of an event. `item` is its JSON text, see [`Event::item`].
    fn entry(&self, event: &Event<'_>, item: Bytes) -> Self::Entry;

    /// Takes an event that is delivered before the next one that somebody waits for, or after [`Delivery::hurry`];
    /// gives it back if that cannot be done.
    fn defer(&self, entry: Self::Entry) -> Result<(), Self::Entry> {
        Err(entry)
    }

    /// Delivers what was deferred without waiting for more.
    fn hurry(&self) {}

    /// Delivers events, in order. An error means that they are lost.
    fn deliver(&self, entries: Vec<Self::Entry>) -> impl Future<Output = Result<(), String>> + Send;

    /// The server ends: what fails from now on is not tried again.
    fn end(&self) {}

    /// Ends what the delivery has started.
    fn close(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// What is delivered of an event.
pub trait Entry: Send + 'static {
    /// In bytes.
    fn size(&self) -> usize;
}

impl Entry for Bytes {
    fn size(&self) -> usize {
        self.len()
    }
}

/// A backend with this delivery.
pub fn of<D: Delivery>(
    delivery: D,
    config: &config::Delivery,
    tasks: &Tasks,
    metrics: &AuditMetrics,
) -> Box<dyn Backend> {
    let outlet = Arc::new(Outlet { delivery, metrics: metrics.clone() });
    let batches = (config.mode == Mode::Batch)
        .then(|| Batches::start(outlet.clone(), config.batches, config.truncation, tasks));
    Box::new(Delivering { outlet, mode: config.mode, truncation: config.truncation, batches })
}

/// A delivery whose losses are counted.
pub struct Outlet<D> {
    pub delivery: D,
    metrics: AuditMetrics,
}

impl<D: Delivery> Outlet<D> {
    /// Whether all entries were delivered.
    pub async fn deliver(&self, entries: Vec<D::Entry>) -> bool {
        let count = entries.len();
        let delivered = self.delivery.deliver(entries).await;
        self.is_delivered(count, delivered)
    }

    fn is_delivered(&self, events: usize, delivered: Result<(), String>) -> bool {
        if let Err(why) = &delivered {
            self.lost(D::PLUGIN, events, why);
        }
        delivered.is_ok()
    }

    pub fn lost(&self, plugin: &'static str, events: usize, why: &str) {
        tracing::error!(plugin, events, why, "audit events are lost");
        self.metrics.lost(plugin, events);
    }
}

struct Delivering<D: Delivery> {
    outlet: Arc<Outlet<D>>,
    mode: Mode,
    truncation: Option<Truncation>,
    /// Of the mode `batch`.
    batches: Option<Batches<D>>,
}

impl<D: Delivery> Delivering<D> {
    /// The text of the event, cut if it is too large; `None` if it is too large all the same.
    fn item(&self, event: &Event<'_>) -> Option<Bytes> {
        let item = event.item();
        let Some(Truncation { event_size, .. }) = self.truncation else { return Some(item) };
        let fits = |item: &Bytes| super::event::size_standing_alone(item) <= event_size;
        if fits(&item) {
            return Some(item);
        }
        Some(event).filter(|event| event.head.level >= Level::Request).map(Event::truncated).filter(fits)
    }
}

/// Whether an event is early enough where it is delivered with the next one of its request. That a read has begun is told
/// when it is over, or when it has to wait for something: until then nothing is done that anybody could ask about. What
/// writes, is in the log before it is done.
fn may_be_deferred(event: &Event<'_>, mode: Mode) -> bool {
    mode == Mode::Blocking
        && event.stage == Stage::RequestReceived
        && matches!(&*event.head.verb, "get" | "list")
}

impl<D: Delivery> Backend for Delivering<D> {
    fn take(&self, event: &Event<'_>) -> Receipt {
        let Some(item) = self.item(event) else {
            self.outlet.lost("truncate", 1, "event is too large even after truncating");
            return Receipt::Taken;
        };
        let entry = self.outlet.delivery.entry(event, item);
        if let Some(batches) = &self.batches {
            batches.add(entry);
            return Receipt::Taken;
        }
        let is_strict = self.mode == Mode::BlockingStrict;
        let entry = match may_be_deferred(event, self.mode) {
            true => match self.outlet.delivery.defer(entry) {
                Ok(()) => return Receipt::Taken,
                Err(entry) => entry,
            },
            false => entry,
        };
        let outlet = self.outlet.clone();
        Receipt::Waiting(async move { outlet.deliver(vec![entry]).await || !is_strict }.boxed())
    }

    fn hurry(&self) {
        self.outlet.delivery.hurry();
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        async move {
            self.outlet.delivery.end();
            if let Some(batches) = &self.batches {
                batches.close().await;
            }
            self.outlet.delivery.close().await;
        }
        .boxed()
    }
}
