//! How many seats a priority level would use if there were enough, observed over time.

use tokio::time::Instant;

/// How slowly demand that is gone is forgotten: the part of it that is left after a period.
const SMOOTHING: f64 = 0.977;

/// Integrates a number over time.
#[derive(Debug)]
pub struct Demand {
    now: f64,
    since: Instant,
    high: f64,
    seconds: f64,
    sum: f64,
    sum_of_squares: f64,
}

/// The demand of a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    pub high: usize,
    /// Mean and standard deviation; `None` if the period has no length.
    pub mean_and_deviation: Option<(f64, f64)>,
}

/// The demand of all periods, of which later ones count more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Smoothed {
    pub high: usize,
    pub value: f64,
}

impl Demand {
    pub fn new(now: Instant) -> Self {
        Self { now: 0.0, since: now, high: 0.0, seconds: 0.0, sum: 0.0, sum_of_squares: 0.0 }
    }

    pub fn set(&mut self, seats: usize, now: Instant) {
        self.integrate(now);
        self.now = seats as f64;
        self.high = self.high.max(self.now);
    }

    /// The demand that was observed since the last call.
    pub fn take(&mut self, now: Instant) -> Observed {
        self.integrate(now);
        let Self { high, seconds, sum, sum_of_squares, .. } = *self;
        let mean_and_deviation = (seconds > 0.0).then(|| {
            let mean = sum / seconds;
            (mean, (sum_of_squares / seconds - mean * mean).max(0.0).sqrt())
        });
        *self = Self { now: self.now, high: self.now, ..Self::new(now) };
        Observed { high: high.round() as usize, mean_and_deviation }
    }

    fn integrate(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.since).as_secs_f64();
        self.since = self.since.max(now);
        self.seconds += passed;
        self.sum += self.now * passed;
        self.sum_of_squares += self.now * self.now * passed;
    }
}

impl Smoothed {
    pub fn add(&mut self, observed: Observed) {
        self.high = observed.high;
        if let Some((mean, deviation)) = observed.mean_and_deviation {
            let envelope = mean + deviation;
            self.value = envelope.max(SMOOTHING * self.value + (1.0 - SMOOTHING) * envelope);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn mean_and_deviation_over_time() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut demand = Demand::new(start);
        demand.set(4, at(5));
        demand.set(0, at(10));
        let observed = demand.take(at(10));
        assert_eq!(observed, Observed { high: 4, mean_and_deviation: Some((2.0, 2.0)) });
        let mut smoothed = Smoothed::default();
        smoothed.add(observed);
        assert_eq!(smoothed.value, 4.0);
        smoothed.add(demand.take(at(20)));
        assert_eq!((smoothed.high, smoothed.value), (0, SMOOTHING * 4.0));
        assert_eq!(demand.take(at(20)).mean_and_deviation, None);
    }
}
