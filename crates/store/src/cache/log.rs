//! The window of recent events of one resource.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use tokio::sync::watch;

use super::event::Event;
use crate::failpoints::{Bug, strikes};
use crate::revision::Revision;

/// The most events of one resource that are kept in memory. Watchers that are further behind read the `changes` table.
const MAX_EVENTS: usize = 16 * 1024;
/// The most bytes of objects that a log's events may keep in memory.
const MAX_BYTES: usize = 32 << 20;

/// Events in revision order. All events with a revision above `floor` are here.
pub struct Log {
    window: RwLock<Window>,
    newest: watch::Sender<Revision>,
}

struct Window {
    floor: Revision,
    events: VecDeque<Arc<Event>>,
    /// Whether the log is complete since the resource has been removed.
    closed: bool,
    /// The size of all events in the window. It also grows when watchers make encodings of them.
    bytes: Arc<AtomicUsize>,
}

/// Why a cursor gets no events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoEvents {
    /// The cursor is before the window.
    OutOfWindow,
    /// The cursor has seen every event, and there will be no more.
    Removed,
}

impl Log {
    pub fn new(floor: Revision) -> Self {
        Self { window: RwLock::new(Window::new(floor)), newest: watch::Sender::new(floor) }
    }

    /// The log of a resource that the cache does not hold.
    pub fn of_removed() -> Self {
        let log = Self::new(Revision(0));
        log.close();
        log
    }

    /// Notes that the resource has been removed, and wakes its watchers.
    pub fn close(&self) {
        self.window.write().unwrap_or_else(|e| e.into_inner()).closed = true;
        self.newest.send_modify(|_| {});
    }

    /// Appends events without waking watchers; [`Log::announce`] does that once the state is swapped.
    pub fn append(&self, events: impl Iterator<Item = Arc<Event>>) {
        let mut window = self.window.write().unwrap_or_else(|e| e.into_inner());
        for event in events {
            debug_assert!(window.events.back().is_none_or(|last| last.revision < event.revision));
            event.open_account(&window.bytes);
            window.events.push_back(event);
        }
        while window.is_full() {
            let Some(gone) = window.events.pop_front() else { break };
            gone.close_account();
            window.floor = gone.revision;
        }
    }

    /// Wakes the watchers of this resource.
    pub fn announce(&self, revision: Revision) {
        self.newest.send_replace(revision);
    }

    pub fn subscribe(&self) -> watch::Receiver<Revision> {
        self.newest.subscribe()
    }

    /// Up to `max` events after a revision.
    pub fn after(&self, revision: Revision, max: usize) -> Result<Vec<Arc<Event>>, NoEvents> {
        let window = self.window.read().unwrap_or_else(|e| e.into_inner());
        if revision < window.floor && !strikes(Bug::FloorIgnored) {
            return Err(NoEvents::OutOfWindow);
        }
        let start = window.events.partition_point(|event| event.revision <= revision);
        if window.closed && start == window.events.len() {
            return Err(NoEvents::Removed);
        }
        Ok(window.events.range(start..).take(max).cloned().collect())
    }

    /// Drops all events: the changes up to `floor` were not recorded.
    pub fn reset(&self, floor: Revision) {
        let mut window = self.window.write().unwrap_or_else(|e| e.into_inner());
        *window = Window::new(floor);
        drop(window);
        self.announce(floor);
    }
}

impl Window {
    fn new(floor: Revision) -> Self {
        Self { floor, events: VecDeque::new(), closed: false, bytes: Arc::default() }
    }

    fn is_full(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        self.events.len() > MAX_EVENTS || (bytes > MAX_BYTES && self.events.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::event::{EventType, FrameEncoding};
    use super::*;
    use crate::codec::object::Draft;

    fn event(revision: u64) -> Arc<Event> {
        Arc::new(Event::new(Revision(revision), None, None))
    }

    fn revisions(events: Result<Vec<Arc<Event>>, NoEvents>) -> Option<Vec<u64>> {
        events.ok().map(|events| events.iter().map(|event| event.revision.0).collect())
    }

    #[test]
    fn a_cursor_reads_on_from_any_revision_in_the_window() {
        let log = Log::new(Revision(10));
        log.append([event(12), event(15), event(16)].into_iter());
        assert_eq!(revisions(log.after(Revision(10), 9)), Some(vec![12, 15, 16]));
        assert_eq!(revisions(log.after(Revision(13), 1)), Some(vec![15]));
        assert_eq!(revisions(log.after(Revision(99), 9)), Some(vec![]));
        assert_eq!(revisions(log.after(Revision(9), 9)), None);
    }

    #[test]
    fn a_closed_log_is_read_to_its_end() {
        let log = Log::new(Revision(10));
        log.append([event(12), event(15)].into_iter());
        let mut newest = log.subscribe();
        log.close();
        assert!(newest.has_changed().is_ok_and(|changed| changed), "watchers are woken");
        assert_eq!(revisions(log.after(Revision(10), 1)), Some(vec![12]));
        assert_eq!(revisions(log.after(Revision(12), 9)), Some(vec![15]));
        assert_eq!(log.after(Revision(15), 9).err(), Some(NoEvents::Removed));
        assert_eq!(
            log.after(Revision(9), 9).err(),
            Some(NoEvents::OutOfWindow),
            "the table has those before"
        );
        newest.mark_unchanged();
    }

    /// A log of few large events drops some of them once watchers have had frames and messages made of them.
    #[test]
    fn what_watchers_make_counts() {
        let log = Log::new(Revision(0));
        let object = |revision| {
            let payload = "x".repeat(MAX_BYTES / 16);
            let json = format!(
                r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a"}},"data":{{"a":"{payload}"}}}}"#
            );
            Arc::new(Draft::of_json("", "a", json.into()).into_object(Revision(revision)))
        };
        let events: Vec<_> =
            (1..=6).map(|n| Arc::new(Event::new(Revision(n), Some(object(n)), None))).collect();
        log.append(events.iter().cloned());
        assert_eq!(revisions(log.after(Revision(0), 9)).map(|all| all.len()), Some(6));
        for event in &events {
            let frame = event.frame(EventType::Added, FrameEncoding::Protobuf, |object| {
                object.protobuf().map(|message| Bytes::copy_from_slice(&message))
            });
            assert!(frame.is_some_and(|frame| frame.is_ok()));
        }
        log.append([event(7)].into_iter());
        // Each event is three times as large now.
        assert!(log.after(Revision(0), 9).is_err());
        assert_eq!(revisions(log.after(Revision(6), 9)), Some(vec![7]));
    }

    #[test]
    fn the_floor_follows_what_falls_out() {
        let log = Log::new(Revision(0));
        log.append((1..=MAX_EVENTS as u64 + 2).map(event));
        assert_eq!(revisions(log.after(Revision(1), 1)), None);
        assert_eq!(revisions(log.after(Revision(2), 1)), Some(vec![3]));
    }
}
