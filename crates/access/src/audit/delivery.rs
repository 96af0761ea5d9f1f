//! Delivery of events out of the process, whose losses are logged and counted.

use bytes::Bytes;

use super::event::Event;
use crate::metrics::AuditMetrics;

/// The way of events out of the process.
pub trait Delivery: Send + Sync + 'static {
    /// The name in metrics and logs.
    const PLUGIN: &'static str;
    type Entry: Entry;

    /// The entry to deliver for an event. `item` is its JSON text, see [`Event::item`].
    fn entry(&self, event: &Event<'_>, item: &[u8]) -> Self::Entry;

    /// Delivers events, in order. An error means that they are lost.
    fn deliver(&self, entries: Vec<Self::Entry>) -> impl Future<Output = Result<(), String>> + Send;

    /// The server ends: what fails from now on is not tried again.
    fn end(&self) {}

    /// Ends what the delivery has started.
    fn close(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// The form in which a sink delivers an event.
pub trait Entry: Send + 'static {
    /// In bytes.
    fn size(&self) -> usize;
}

impl Entry for Bytes {
    fn size(&self) -> usize {
        self.len()
    }
}

/// Tells of events that are lost, and counts them.
#[derive(Clone)]
pub struct Losses(pub AuditMetrics);

impl Losses {
    pub fn lost(&self, plugin: &'static str, events: usize, why: &str) {
        tracing::error!(plugin, events, why, "audit events are lost");
        self.0.lost(plugin, events);
    }
}

/// A delivery whose losses are counted.
pub struct Outlet<D> {
    pub delivery: D,
    pub losses: Losses,
}

impl<D: Delivery> Outlet<D> {
    /// Whether all entries were delivered.
    pub async fn deliver(&self, entries: Vec<D::Entry>) -> bool {
        let count = entries.len();
        let delivered = self.delivery.deliver(entries).await;
        if let Err(why) = &delivered {
            self.losses.lost(D::PLUGIN, count, why);
        }
        delivered.is_ok()
    }
}
