//! The parts that all sinks share: how events reach them, and what becomes of events that are too large or get lost.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::batch::Batches;
use super::config::{self, Mode, Truncation};
use super::delivery::{Delivery, Losses, Outlet};
use super::event::Event;
use super::policy::Level;
use crate::metrics::AuditMetrics;
use crate::tasks::Tasks;

/// A sink's receipt for an event.
pub enum Receipt {
    /// It is kept, or nobody has to know.
    Taken,
    /// It is lost, and the request minds.
    Lost,
    /// The request waits for the answer: whether the event is kept.
    Waiting(BoxFuture<'static, bool>),
}

impl Receipt {
    pub async fn kept(self) -> bool {
        match self {
            Self::Taken => true,
            Self::Lost => false,
            Self::Waiting(delivery) => delivery.await,
        }
    }
}

/// A destination of events.
pub trait Sink: Send + Sync {
    fn take(&self, event: &Event<'_>) -> Receipt;

    /// Delivers events that the sink would deliver with the next one.
    fn hurry(&self) {}

    /// Delivers what is buffered.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A sink with this delivery.
pub fn of<D: Delivery>(
    delivery: D,
    config: &config::Delivery,
    tasks: &Tasks,
    metrics: &AuditMetrics,
) -> Box<dyn Sink> {
    let outlet = Arc::new(Outlet { delivery, losses: Losses(metrics.clone()) });
    let batches = (config.mode == Mode::Batch)
        .then(|| Batches::start(outlet.clone(), config.batches, config.truncation, tasks));
    Box::new(Delivering { outlet, mode: config.mode, truncation: config.truncation, batches })
}

/// The text of the event, cut if it is too large. One that is too large all the same is lost.
pub fn fitting<'e>(
    event: &'e Event<'_>,
    truncation: Option<Truncation>,
    losses: &Losses,
) -> Option<Cow<'e, [u8]>> {
    let item = event.item();
    let Some(Truncation { event_size, .. }) = truncation else { return Some(item.into()) };
    let fits = |item: &[u8]| super::event::size_standing_alone(item) <= event_size;
    if fits(item) {
        return Some(item.into());
    }
    let has_objects = event.head.level >= Level::Request;
    let cut = has_objects.then(|| event.truncated()).filter(|item| fits(item));
    if cut.is_none() {
        losses.lost("truncate", 1, "event is too large even after truncating");
    }
    cut.map(Cow::Owned)
}

struct Delivering<D: Delivery> {
    outlet: Arc<Outlet<D>>,
    mode: Mode,
    truncation: Option<Truncation>,
    /// The batches of the mode `batch`; `None` in the other modes.
    batches: Option<Batches<D>>,
}

impl<D: Delivery> Sink for Delivering<D> {
    fn take(&self, event: &Event<'_>) -> Receipt {
        let Some(item) = fitting(event, self.truncation, &self.outlet.losses) else { return Receipt::Taken };
        let entry = self.outlet.delivery.entry(event, &item);
        if let Some(batches) = &self.batches {
            batches.add(entry);
            return Receipt::Taken;
        }
        let is_strict = self.mode == Mode::BlockingStrict;
        let outlet = self.outlet.clone();
        Receipt::Waiting(async move { outlet.deliver(vec![entry]).await || !is_strict }.boxed())
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
