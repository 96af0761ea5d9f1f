//! The server's memory and processor time, from `/proc`, if its process id is known.

use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc/<pid>/stat`: Linux uses 100 in user space on every current architecture.
const TICKS: u64 = 100;

#[derive(Clone, Copy)]
pub struct Server {
    pid: Option<u32>,
}

impl Server {
    pub fn new(pid: Option<u32>) -> Self {
        Self { pid }
    }

    pub fn resident_mb(self) -> Option<f64> {
        self.status_mb("VmRSS:")
    }

    pub fn peak_mb(self) -> Option<f64> {
        self.status_mb("VmHWM:")
    }

    /// Resets the peak to the present resident memory.
    pub fn reset_peak(self) {
        if let Some(pid) = self.pid {
            // Without permission, the peak remains that of the process's whole life.
            _ = fs::write(format!("/proc/{pid}/clear_refs"), "5");
        }
    }

    /// Processor time used so far, user and system.
    pub fn cpu(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid?)).ok()?;
        // The command's name in parentheses may contain anything. Fields 14 and 15 are the 12th and 13th behind it.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
        Some(Duration::from_millis(ticks * 1000 / TICKS))
    }

    /// Microseconds of processor time per operation since `start`.
    pub fn micros_each(self, start: Option<Duration>, operations: usize) -> Option<f64> {
        Some((self.cpu()? - start?).as_micros() as f64 / operations.max(1) as f64)
    }

    fn status_mb(self, field: &str) -> Option<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid?)).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().ok()?;
        Some(kilobytes / 1024.0)
    }
}
