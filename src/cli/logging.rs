//! Logs go to standard error, so that standard output contains only what was requested.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::config::{LogConfig, LogFormat};

/// Starts logging. A second start in one process keeps the first configuration.
pub(super) fn init(config: LogConfig) {
    // A line that cannot be written, since the log's disk is full, is lost. By default that is told on standard error by a
    // macro that panics if it cannot write, and whoever logs would die of it.
    let builder = tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_writer(std::io::stderr)
        .with_env_filter(if config.is_quiet { EnvFilter::new("warn") } else { filter(config.verbosity) });
    let started = match config.format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if let Err(error) = started {
        tracing::debug!(error, "logging is already set up");
    }
}

/// Other crates' details would hide ours, so they are logged from a higher level on.
fn filter(verbosity: u8) -> EnvFilter {
    EnvFilter::new(match verbosity {
        0..=3 => "warn,rowplane=info",
        4..=5 => "info,rowplane=debug",
        6..=8 => "info,rowplane=trace",
        _ => "trace",
    })
}
