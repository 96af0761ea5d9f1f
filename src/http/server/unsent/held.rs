//! The count of bytes that answers of one connection hold.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The unit in which a connection's bytes count in the total, so that short answers do not touch the total.
pub(super) const UNIT: usize = 16 << 10;

/// The bytes that answers of one connection hold.
#[derive(Debug)]
pub struct Unsent {
    held: Mutex<Held>,
    total: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct Held {
    bytes: usize,
    /// The part of these that the total contains.
    known: usize,
    /// Whether the connection is dropped, and counts in the total no more.
    is_given_up: bool,
    /// Bytes that were let go since the last sweep.
    released: usize,
    /// The tick at which those bytes were looked at that have to go next, and how many of them are left.
    owed_since: u64,
    owed: usize,
}

impl Unsent {
    pub fn of(total: Arc<AtomicUsize>) -> Self {
        Self { held: Mutex::default(), total }
    }

    pub fn bytes(&self) -> usize {
        self.held().bytes
    }

    /// Whether something was let go since the last call.
    pub fn take_progress(&self) -> bool {
        std::mem::take(&mut self.held().released) > 0
    }

    /// Whether as many bytes as waited at one time have not been let go for so many ticks since. A reader of a few bytes a second
    /// would keep the memory of the answers that he has asked for as long as he likes.
    pub fn is_overdue(&self, now: u64, patience: u64) -> bool {
        let mut held = self.held();
        if held.owed == 0 {
            (held.owed_since, held.owed) = (now, held.bytes);
        }
        held.owed > 0 && now.saturating_sub(held.owed_since) > patience
    }

    /// The connection's part of the total.
    pub(super) fn known(&self) -> usize {
        self.held().known
    }

    /// Stops counting the connection in the total, since it is dropped.
    pub(super) fn give_up(&self) {
        let mut held = self.held();
        held.is_given_up = true;
        self.total.fetch_sub(std::mem::take(&mut held.known), Ordering::Relaxed);
    }

    pub(super) fn add(&self, bytes: usize, is_exempt: bool) {
        let mut held = self.held();
        held.bytes += bytes;
        self.tell(&mut held, is_exempt);
    }

    pub(super) fn release(&self, bytes: usize, is_exempt: bool) {
        let mut held = self.held();
        held.bytes -= bytes;
        held.released += bytes;
        held.owed = held.owed.saturating_sub(bytes);
        self.tell(&mut held, is_exempt);
    }

    fn tell(&self, held: &mut Held, is_exempt: bool) {
        let known = if is_exempt { 0 } else { held.bytes / UNIT * UNIT };
        if held.is_given_up || known == held.known {
            return;
        }
        if known > held.known {
            self.total.fetch_add(known - held.known, Ordering::Relaxed);
        } else {
            self.total.fetch_sub(held.known - known, Ordering::Relaxed);
        }
        held.known = known;
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
