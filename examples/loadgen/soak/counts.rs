//! What the clients of a soak have done, since its beginning.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::pace::Pace;
use crate::stats::Latencies;

/// An event that comes later than this after its write was sent is late.
const LATE: Duration = Duration::from_secs(5);
/// So many errors are told one by one.
const TOLD: u64 = 20;

#[derive(Default)]
pub struct Counts {
    pub creates: AtomicU64,
    pub updates: AtomicU64,
    pub deletes: AtomicU64,
    pub lists: AtomicU64,
    pub watches: AtomicU64,
    /// Watches that were refused with 410, since what they wanted to resume had been compacted.
    pub gone: AtomicU64,
    pub events: AtomicU64,
    pub late: AtomicU64,
    /// Watches that are open now.
    pub open: AtomicI64,
    errors: Mutex<BTreeMap<String, u64>>,
    recent: Mutex<Recent>,
}

/// Since the last report.
#[derive(Default)]
struct Recent {
    writes: Latencies,
    lists: Latencies,
    events: Latencies,
}

pub fn one(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// Counts an error by what went wrong; `details` are told for the first few.
    pub fn error(&self, what: &str, details: impl std::fmt::Display) {
        let mut errors = self.errors.lock().expect("nobody panics with it");
        *errors.entry(what.to_owned()).or_default() += 1;
        if errors.values().sum::<u64>() <= TOLD {
            eprintln!("{what}: {:.500}", details.to_string());
        }
    }

    pub fn write_took(&self, time: Duration) {
        self.recent.lock().expect("nobody panics with it").writes.add(time);
    }

    pub fn list_took(&self, time: Duration) {
        self.recent.lock().expect("nobody panics with it").lists.add(time);
    }

    pub fn event_took(&self, time: Duration) {
        if time > LATE {
            one(&self.late);
        }
        self.recent.lock().expect("nobody panics with it").events.add(time);
    }

    pub fn report(&self, elapsed: Duration, writes: &Pace, lists: &Pace) -> Value {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut recent = std::mem::take(&mut *self.recent.lock().expect("nobody panics with it"));
        let millis = |latencies: &mut Latencies| {
            let summary = latencies.summary();
            json!({"p50": summary.p50, "p99": summary.p99, "max": summary.max})
        };
        json!({
            "seconds": elapsed.as_secs_f64(),
            "creates": get(&self.creates), "updates": get(&self.updates), "deletes": get(&self.deletes),
            "lists": get(&self.lists), "watches": get(&self.watches), "gone": get(&self.gone),
            "events": get(&self.events), "late": get(&self.late),
            "watchers": self.open.load(Ordering::Relaxed),
            "missed_writes": writes.missed(), "missed_lists": lists.missed(),
            "errors": *self.errors.lock().expect("nobody panics with it"),
            "write_ms": millis(&mut recent.writes), "list_ms": millis(&mut recent.lists),
            "event_ms": millis(&mut recent.events),
        })
    }
}
