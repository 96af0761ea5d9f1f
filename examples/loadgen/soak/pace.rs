//! Turns at a steady rate.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A turn that nobody has taken for so long is missed: otherwise a pause would be followed by a burst.
const PATIENCE: Duration = Duration::from_secs(1);

pub struct Pace {
    per_second: u32,
    start: OnceLock<Instant>,
    next: AtomicU64,
    missed: AtomicU64,
}

impl Pace {
    pub fn new(per_second: u32) -> Self {
        Self { per_second, start: OnceLock::new(), next: AtomicU64::new(0), missed: AtomicU64::new(0) }
    }

    /// The first turn is now.
    pub fn begin(&self) {
        self.start.get_or_init(Instant::now);
    }

    /// Waits for the next turn, and returns its number.
    pub async fn turn(&self) -> u64 {
        let start = *self.start.get_or_init(Instant::now);
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let due = start + Duration::from_secs_f64(number as f64 / f64::from(self.per_second));
            if due.elapsed() < PATIENCE {
                tokio::time::sleep_until(due.into()).await;
                return number;
            }
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn is_at_rest(&self) -> bool {
        self.per_second == 0
    }

    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}
