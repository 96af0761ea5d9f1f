//! The share of a single event in the byte count of its log, for exactly as long as the event is in the log.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// The share of one event, closed at first. While it is closed nothing is counted.
#[derive(Debug, Default)]
pub struct Account {
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    total: Arc<AtomicUsize>,
    /// The part of the total that belongs to this event.
    held: usize,
}

impl Account {
    pub fn open(&self, total: &Arc<AtomicUsize>, held: usize) {
        total.fetch_add(held, Ordering::Relaxed);
        *self.lock() = Some(Open { total: total.clone(), held });
    }

    /// Counts more bytes, unless the account is closed.
    pub fn add(&self, bytes: usize) {
        if let Some(open) = &mut *self.lock() {
            open.held += bytes;
            open.total.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    pub fn close(&self) {
        if let Some(open) = self.lock().take() {
            open.total.fetch_sub(open.held, Ordering::Relaxed);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Open>> {
        self.open.lock().unwrap_or_else(|e| e.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_taken_again() {
        let total = Arc::new(AtomicUsize::new(5));
        let account = Account::default();
        account.add(1);
        account.open(&total, 10);
        account.add(3);
        assert_eq!(total.load(Ordering::Relaxed), 18);
        account.close();
        account.add(7);
        account.close();
        assert_eq!(total.load(Ordering::Relaxed), 5);
    }
}
