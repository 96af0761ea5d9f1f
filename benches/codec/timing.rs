//! Measures the time and the allocations of a function.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::counting;

/// The number of runs per sample, so that the clock's own cost does not matter.
const RUNS: u32 = 16;

pub struct Measured {
    p50: f64,
    p99: f64,
    allocations: u64,
    bytes: u64,
}

/// Runs `work` for about `duration`.
pub fn measure<T>(duration: Duration, work: impl Fn() -> T) -> Measured {
    for _ in 0..RUNS {
        black_box(work());
    }
    let before = counting::allocations();
    black_box(work());
    let after = counting::allocations();
    let mut samples = Vec::new();
    let start = Instant::now();
    while samples.len() < 100 || start.elapsed() < duration {
        let sample = Instant::now();
        for _ in 0..RUNS {
            black_box(work());
        }
        samples.push(sample.elapsed().as_secs_f64() * 1e6 / f64::from(RUNS));
    }
    samples.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| samples[((samples.len() - 1) as f64 * share) as usize];
    Measured { p50: at(0.5), p99: at(0.99), allocations: after.0 - before.0, bytes: after.1 - before.1 }
}

impl Measured {
    /// Half of the runs took no longer, in nanoseconds.
    pub fn nanoseconds(&self) -> f64 {
        self.p50 * 1e3
    }

    pub fn print(lines: &[(&str, Self)]) {
        println!("| | p50 us | p99 us | allocations | their bytes |");
        println!("| --- | ---: | ---: | ---: | ---: |");
        for (name, line) in lines {
            let Self { p50, p99, allocations, bytes } = line;
            println!("| {name} | {p50:.1} | {p99:.1} | {allocations} | {bytes} |");
        }
        println!();
    }
}
