//! Figures of the operating system about this process, under the names of Prometheus' clients.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::catalog::head;

/// Adds the text of `/metrics`. What the system does not tell, as without `/proc`, is left out.
pub(super) fn render(out: &mut String, started: SystemTime) {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let cpu = time.tv_sec as f64 + time.tv_nsec as f64 / 1e9;
    put(out, "process_cpu_seconds_total", "counter", cpu);
    let open = std::fs::read_dir("/proc/self/fd").ok().map(|files| files.count() as f64);
    put(out, "process_open_fds", "gauge", open);
    let most = limit(Resource::Nofile);
    put(out, "process_max_fds", "gauge", most);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = kilobytes(&status, "VmRSS:");
    put(out, "process_resident_memory_bytes", "gauge", resident);
    let virtual_size = kilobytes(&status, "VmSize:");
    put(out, "process_virtual_memory_bytes", "gauge", virtual_size);
    let most = limit(Resource::As);
    put(out, "process_virtual_memory_max_bytes", "gauge", most);
    put(out, "process_start_time_seconds", "gauge", seconds(started));
    let netstat = std::fs::read_to_string("/proc/self/net/netstat").unwrap_or_default();
    let (received, transmitted) = octets(&netstat).unzip();
    put(out, "process_network_receive_bytes_total", "counter", received);
    put(out, "process_network_transmit_bytes_total", "counter", transmitted);
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        put(out, "go_goroutines", "gauge", runtime.metrics().num_alive_tasks() as f64);
    }
}

/// Seconds since the Unix epoch.
pub(super) fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

fn put(out: &mut String, name: &str, kind: &str, value: impl Into<Option<f64>>) {
    if let Some(value) = value.into() {
        head(out, name, kind);
        let _ = writeln!(out, "{name} {value}\n");
    }
}

/// Bytes that the process' network namespace has received and sent, as the clients count them: two of the columns of `IpExt`.
fn octets(netstat: &str) -> Option<(f64, f64)> {
    let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("IpExt:"));
    let (names, numbers) = (lines.next()?, lines.next()?);
    let column = |wanted: &str| {
        let column = names.split_whitespace().position(|name| name == wanted)?;
        numbers.split_whitespace().nth(column)?.parse().ok()
    };
    Some((column("InOctets")?, column("OutOctets")?))
}

/// In bytes.
fn kilobytes(status: &str, name: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// The limit as the clients print it: the greatest number if there is none.
fn limit(resource: Resource) -> f64 {
    getrlimit(resource).current.unwrap_or(u64::MAX) as f64
}
