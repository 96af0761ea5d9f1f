//! The latencies of one measurement.

use std::time::{Duration, Instant};

/// The latency of each answer in microseconds.
#[derive(Default)]
pub struct Latencies {
    micros: Vec<u32>,
    sorted: bool,
}

impl Latencies {
    pub fn add(&mut self, time: Duration) {
        self.micros.push(u32::try_from(time.as_micros()).unwrap_or(u32::MAX));
        self.sorted = false;
    }

    pub fn add_since(&mut self, start: Instant) {
        self.add(start.elapsed());
    }

    pub fn merge(&mut self, other: Latencies) {
        self.micros.extend(other.micros);
        self.sorted = false;
    }

    pub fn len(&self) -> usize {
        self.micros.len()
    }

    /// p50, p99 and maximum in milliseconds.
    pub fn summary(&mut self) -> Summary {
        if !self.sorted {
            self.micros.sort_unstable();
            self.sorted = true;
        }
        let at = |share: f64| {
            let last = self.micros.len().saturating_sub(1);
            self.micros.get((last as f64 * share).round() as usize).map_or(0.0, |&us| f64::from(us) / 1000.0)
        };
        Summary { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

/// In milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct Summary {
    pub p50: f64,
    pub p99: f64,
    pub max: f64,
}

/// The median; of an even number of values the upper one of the two in the middle. `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}
