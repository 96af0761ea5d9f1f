//! The window of recent events, which watches and reads of older revisions share.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError, RwLock};

use bytes::Bytes;

use super::keys::{Keys, Kv};
use super::lags::Sequence;

/// The most events in memory. Watches that are further behind read the table of changes.
const MOST_EVENTS: usize = 64 * 1024;
/// The most bytes that events keep in memory.
const MOST_BYTES: usize = 64 << 20;
/// The bytes that an event takes beside its keys and values.
const EVENT_BYTES: usize = 256;

/// The change of one key.
#[derive(Clone, Debug)]
pub struct Event {
    pub sequence: Sequence,
    pub revision: i64,
    pub key: Bytes,
    /// `None` for a deletion.
    pub kv: Option<Arc<Kv>>,
    /// The version that the change replaced.
    pub prev: Option<Arc<Kv>>,
}

/// A part of the events.
#[derive(Debug, Default)]
pub struct Page {
    pub events: Vec<Arc<Event>>,
    /// There are no other events up to here.
    pub through: Sequence,
}

/// How much a page may have. It is exceeded where a revision would be cut.
#[derive(Clone, Copy, Debug)]
pub struct PageSize {
    pub events: usize,
    pub bytes: usize,
}

/// All events after `floor`, in their order.
pub struct Events {
    window: RwLock<Window>,
}

struct Window {
    floor: Sequence,
    events: VecDeque<Arc<Event>>,
    bytes: usize,
}

impl Event {
    /// The bytes that the event keeps in memory, or sends.
    pub fn bytes(&self) -> usize {
        let value = |kv: &Option<Arc<Kv>>| kv.as_ref().map_or(0, |kv| kv.value.len());
        EVENT_BYTES + self.key.len() + value(&self.kv) + value(&self.prev)
    }
}

impl Events {
    pub fn new(floor: Sequence) -> Self {
        Self { window: RwLock::new(Window { floor, events: VecDeque::new(), bytes: 0 }) }
    }

    /// Forgets everything: events up to `floor` may be missing.
    pub fn reset(&self, floor: Sequence) {
        *self.window.write().unwrap_or_else(PoisonError::into_inner) =
            Window { floor, events: VecDeque::new(), bytes: 0 };
    }

    pub fn append(&self, events: impl IntoIterator<Item = Event>) {
        let mut window = self.window.write().unwrap_or_else(PoisonError::into_inner);
        for event in events {
            window.bytes += event.bytes();
            window.events.push_back(Arc::new(event));
        }
        while window.events.len() > MOST_EVENTS || window.bytes > MOST_BYTES {
            let Some(gone) = window.events.pop_front() else { break };
            window.bytes -= gone.bytes();
            window.floor = gone.sequence;
        }
    }

    /// The events after a place and up to another one, at which no revision is cut; `None` if they are not here any
    /// more.
    pub fn page(&self, after: Sequence, to: Sequence, size: PageSize) -> Option<Page> {
        let window = self.window.read().unwrap_or_else(PoisonError::into_inner);
        if after < window.floor {
            return None;
        }
        let start = window.events.partition_point(|event| event.sequence <= after);
        let (mut page, mut bytes) = (Page { events: Vec::new(), through: to }, 0);
        for event in window.events.range(start..).take_while(|event| event.sequence <= to) {
            let is_full = page.events.len() >= size.events || bytes >= size.bytes;
            if let Some(last) = page.events.last().filter(|last| is_full && last.revision < event.revision) {
                page.through = last.sequence;
                break;
            }
            bytes += event.bytes();
            page.events.push(event.clone());
        }
        Some(page)
    }

    /// The keys at an older place, made from those at `now` by taking the events in between back; `None` if they are
    /// not all here.
    pub fn rewind(&self, mut keys: Keys, now: Sequence, to: Sequence) -> Option<Keys> {
        let window = self.window.read().unwrap_or_else(PoisonError::into_inner);
        if to < window.floor {
            return None;
        }
        let end = window.events.partition_point(|event| event.sequence <= now);
        for event in window.events.range(..end).rev().take_while(|event| event.sequence > to) {
            match &event.prev {
                Some(prev) => keys.insert(prev.clone()),
                None => keys.remove(&event.key),
            };
        }
        Some(keys)
    }
}
