//! The database sink: what became of requests, in the server's own database, for a time.
//!
//! The event of a write is committed with the write ([`Record::to_commit`](super::Record::to_commit)): both are there or
//! neither. Other events are added in batches. Each request has one event, the last one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use jiff::Timestamp;

use super::bounded::{bounded, shortened};
use super::config::{Batching, DatabaseConfig, Delivery as DeliveryConfig, Mode};
use super::delivery::{Delivery, Entry};
use super::event::{Event, standing_alone};
use super::policy::Stage;
use super::sink::{self, Receipt, Sink};
use crate::metrics::AuditMetrics;
use crate::storage::{self, AuditRemoval, AuditRing, AuditRow};
use crate::tasks::Tasks;
use crate::user::ANONYMOUS;
use crate::wall_clock::WallClock;

/// Events that are not committed with a write.
const BATCHES: Batching = Batching {
    buffer: 10_000,
    largest: 256,
    wait: Duration::from_millis(500),
    throttle: None,
    overlap: false,
};
/// The time between two removals of old events.
const REMOVAL_PERIOD: Duration = Duration::from_secs(60);
/// The same after a removal of more than [`REMOVED_AT_ONCE`]. Of 2,000 events a second, 120,000 would wait for the removal of
/// each minute: the table would be larger by so many, and writers would wait for all of them to go.
const BUSY_REMOVAL_PERIOD: Duration = Duration::from_secs(10);
/// Events removed at once, so that writers do not wait long.
const REMOVED_AT_ONCE: u32 = 500;
/// The bytes that events of writes may have together, for each of the events that are kept: as much as an event has at most that
/// holds no objects ([`bounded`]).
const BYTES_PER_EVENT: u64 = 4 << 10;
/// The share of the events' number that is left to requests that have written nothing, and the most bytes of theirs.
const OTHERS: u64 = 4;
const OTHERS_BYTES: u64 = 64 << 20;

pub struct Database {
    batches: Box<dyn Sink>,
}

/// Adds events in transactions of their own.
struct Additions {
    store: Arc<dyn storage::Backend>,
}

impl Database {
    pub fn start(
        store: Arc<dyn storage::Backend>,
        config: DatabaseConfig,
        clock: &WallClock,
        tasks: &Tasks,
        metrics: &AuditMetrics,
    ) -> Self {
        tasks.run("audit-retention", remove_old(store.clone(), config, clock.clone()));
        let delivery = DeliveryConfig { mode: Mode::Batch, batches: BATCHES, truncation: None };
        Self { batches: sink::of(Additions { store }, &delivery, tasks, metrics) }
    }

    /// The row of an event about an object with this name.
    pub fn row(&self, event: &Event<'_>, name: &str) -> AuditRow {
        row(event, Some(name), event.item())
    }
}

impl Sink for Database {
    fn take(&self, event: &Event<'_>) -> Receipt {
        let is_last = match event.stage {
            Stage::RequestReceived => false,
            Stage::ResponseStarted => event.head.user.is_none(),
            Stage::ResponseComplete | Stage::Panic => true,
        };
        let code = event.growing.status.as_ref().map(|status| status.code);
        let is_there = event.growing.committed.is_some() && event.growing.committed == code;
        if !is_last || is_there {
            return Receipt::Taken;
        }
        self.batches.take(event)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.batches.close()
    }
}

impl Delivery for Additions {
    const PLUGIN: &'static str = "database";
    type Entry = AuditRow;

    fn entry(&self, event: &Event<'_>, item: &[u8]) -> AuditRow {
        AuditRow { ring: ring(event), ..row(event, None, item) }
    }

    async fn deliver(&self, rows: Vec<AuditRow>) -> Result<(), String> {
        self.store.add_audit_rows(rows).await.map_err(|error| error.to_string())
    }
}

impl Entry for AuditRow {
    fn size(&self) -> usize {
        self.event.len()
    }
}

fn row(event: &Event<'_>, name: Option<&str>, item: &[u8]) -> AuditRow {
    let head = event.head;
    let user = head.user.as_deref().map_or("", |user| &user.name);
    let objects = [&event.growing.request_object, &event.growing.response_object];
    let objects: usize = objects.into_iter().flatten().map(|object| object.len()).sum();
    AuditRow {
        ring: AuditRing::Writes,
        at: event.at.as_microsecond(),
        user: (*shortened(user.into())).into(),
        verb: (*shortened(head.verb.clone())).into(),
        object: (*shortened(object(event, name).into())).into(),
        event: standing_alone(&bounded(item, objects)).into(),
    }
}

/// The table of an event that no write has committed. What anybody may do, as often as he likes, pushes out nothing but its
/// like.
fn ring(event: &Event<'_>) -> AuditRing {
    let is_done = event.growing.status.as_ref().is_some_and(|status| (1..400).contains(&status.code));
    let is_known = event.head.user.as_deref().is_some_and(|user| user.name != ANONYMOUS);
    let has_done = event.growing.object.as_ref().is_some_and(|object| {
        let is_connection = matches!(&*object.subresource, "attach" | "exec" | "portforward" | "proxy");
        let is_read = matches!(&*event.head.verb, "get" | "list" | "watch");
        let is_about_oneself = object.resource.starts_with("selfsubject");
        (is_connection || !is_read) && !is_about_oneself
    });
    if is_done && is_known && has_done { AuditRing::Writes } else { AuditRing::Others }
}

/// The key by which an event is found: `pods/default/web/log`, `deployments.apps/default/web`, `nodes/n1`, or a path.
/// `name` is that of a new object.
fn object(event: &Event<'_>, name: Option<&str>) -> String {
    let Some(object) = &event.growing.object else {
        return event.head.uri.path().to_owned();
    };
    let mut text = object.resource.to_string();
    if !object.group.is_empty() {
        text.push('.');
        text.push_str(&object.group);
    }
    let is_namespace = object.resource == "namespaces" && object.group.is_empty();
    let namespace = if is_namespace { "" } else { object.namespace.as_str() };
    for part in [namespace, name.unwrap_or(&object.name), object.subresource.as_str()] {
        if !part.is_empty() {
            text.push('/');
            text.push_str(part);
        }
    }
    text
}

/// Removes events that are too old, too many or too large, a few at a time, and more often while there are many.
async fn remove_old(store: Arc<dyn storage::Backend>, config: DatabaseConfig, clock: WallClock) {
    let mut period = REMOVAL_PERIOD;
    loop {
        tokio::time::sleep(period).await;
        let before =
            clock.timestamp().checked_sub(config.retention).unwrap_or(Timestamp::MIN).as_microsecond();
        period = REMOVAL_PERIOD;
        for (ring, most, most_bytes) in [
            (AuditRing::Writes, config.most, config.most.saturating_mul(BYTES_PER_EVENT)),
            (AuditRing::Others, config.most.div_ceil(OTHERS), OTHERS_BYTES),
        ] {
            let limit = REMOVED_AT_ONCE;
            let removal = AuditRemoval { ring, before, most, most_bytes, limit };
            if remove(&store, removal).await {
                period = BUSY_REMOVAL_PERIOD;
            }
        }
    }
}

/// Whether more than [`REMOVED_AT_ONCE`] events went.
async fn remove(store: &Arc<dyn storage::Backend>, removal: AuditRemoval) -> bool {
    let mut were_many = false;
    loop {
        match store.remove_audit_rows(removal).await {
            Ok(removed) if removed < u64::from(REMOVED_AT_ONCE) => return were_many,
            Ok(_) => were_many = true,
            Err(error) => {
                tracing::warn!(%error, "cannot remove old audit events, will try again");
                return were_many;
            }
        }
        tokio::task::yield_now().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::AuditQuery;

    const KEPT: u64 = 10;

    async fn add(store: &Arc<dyn storage::Backend>, count: u32) {
        let text = || Arc::from("");
        let ring = AuditRing::Writes;
        let row =
            |_| AuditRow { ring, at: 0, user: text(), verb: text(), object: text(), event: "{}".into() };
        store.add_audit_rows((0..count).map(row).collect()).await.expect("adds");
    }

    async fn count(store: &Arc<dyn storage::Backend>) -> u64 {
        let all = AuditQuery { limit: u32::MAX, ..AuditQuery::default() };
        store.audit_rows(&all).await.expect("finds").len() as u64
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_removed_more_often_while_there_are_many() {
        let store = storage::memory::open();
        let config = DatabaseConfig { retention: Duration::MAX, most: KEPT };
        let clock = WallClock::new(|| std::time::UNIX_EPOCH);
        let removing = tokio::spawn(remove_old(store.clone(), config, clock));
        let a_little_later = |period| tokio::time::sleep(period + Duration::from_millis(1));
        let many = REMOVED_AT_ONCE * 3;
        add(&store, many).await;
        a_little_later(BUSY_REMOVAL_PERIOD).await;
        assert_eq!(count(&store).await, u64::from(many), "nobody knows of them yet");
        a_little_later(REMOVAL_PERIOD - BUSY_REMOVAL_PERIOD).await;
        assert_eq!(count(&store).await, KEPT);
        for added in [many, 5] {
            add(&store, added).await;
            a_little_later(BUSY_REMOVAL_PERIOD).await;
            assert_eq!(count(&store).await, KEPT);
        }
        add(&store, 5).await;
        a_little_later(BUSY_REMOVAL_PERIOD).await;
        assert_eq!(count(&store).await, KEPT + 5, "there were few the last time");
        removing.abort();
    }
}
