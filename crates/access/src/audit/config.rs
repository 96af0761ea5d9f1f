//! The settings of auditing, with upstream's defaults and checks.

use std::path::PathBuf;
use std::time::Duration;

/// The sinks that events go to, and the policy by which requests become events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Without a policy nothing is recorded.
    pub policy_file: Option<PathBuf>,
    pub log: Option<LogConfig>,
    pub webhook: Option<WebhookConfig>,
    pub database: Option<DatabaseConfig>,
}

/// The sink that keeps events in the server's database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseConfig {
    /// How long they are kept.
    pub retention: Duration,
    /// How many are kept, about: the newest.
    pub most: u64,
}

/// The webhook sink.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfig {
    /// A kubeconfig.
    pub config_file: PathBuf,
    /// The pause before a failed call is tried again for the first time.
    pub initial_backoff: Duration,
    pub delivery: Delivery,
}

/// The log sink.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    pub target: LogTarget,
    pub format: LogFormat,
    pub delivery: Delivery,
}

#[derive(Clone, Debug, PartialEq)]
pub enum LogTarget {
    Stdout,
    File { path: PathBuf, rotation: Rotation },
}

/// When a file is put aside, and which of these files are kept; 0 is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// In MiB.
    pub largest: u64,
    pub days: u32,
    pub backups: u32,
    pub compress: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Json,
    Legacy,
}

/// How a sink gets its events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    pub mode: Mode,
    pub batches: Batching,
    /// `None` leaves events as large as they are.
    pub truncation: Option<Truncation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// No request waits; events are dropped when the buffer is full.
    Batch,
    /// Requests wait, and do not mind what became of their events.
    Blocking,
    /// Requests whose first event is not stored are refused.
    BlockingStrict,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batching {
    /// Events that wait for their batch.
    pub buffer: usize,
    pub largest: usize,
    /// How long the first event of a batch waits for more.
    pub wait: Duration,
    pub throttle: Option<Throttle>,
    /// Whether the next batch goes out while the last one is under way.
    pub overlap: bool,
}

/// How often batches are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throttle {
    pub per_second: f32,
    pub burst: u32,
}

/// In bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncation {
    pub event_size: usize,
    pub batch_size: usize,
}

/// A setting that makes no sense, in upstream's words.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl Config {
    pub fn check(&self) -> Result<(), Invalid> {
        if let Some(log) = &self.log {
            log.delivery.check("log")?;
        }
        if let Some(webhook) = &self.webhook {
            webhook.delivery.check("webhook")?;
        }
        Ok(())
    }
}

impl Delivery {
    fn check(&self, plugin: &str) -> Result<(), Invalid> {
        if self.mode == Mode::Batch {
            self.batches.check(plugin)?;
        }
        let Some(Truncation { event_size, batch_size }) = self.truncation else { return Ok(()) };
        if event_size == 0 {
            return Err(Invalid(format!(
                "invalid audit truncate {plugin} max event size 0, must be a positive number"
            )));
        }
        if batch_size < event_size {
            return Err(Invalid(format!(
                "invalid audit truncate {plugin} max batch size {batch_size}, must be greater than max event size \
                 ({event_size})"
            )));
        }
        Ok(())
    }
}

impl Batching {
    fn check(&self, plugin: &str) -> Result<(), Invalid> {
        let positive = |what: &str, is: bool, value: String| {
            let text = || format!("invalid audit batch {plugin} {what} {value}, must be a positive number");
            if is { Ok(()) } else { Err(Invalid(text())) }
        };
        positive("buffer size", self.buffer > 0, self.buffer.to_string())?;
        positive("max batch size", self.largest > 0, self.largest.to_string())?;
        let Some(Throttle { per_second, burst }) = self.throttle else { return Ok(()) };
        positive("throttle QPS", per_second > 0.0, per_second.to_string())?;
        positive("throttle burst", burst > 0, burst.to_string())
    }
}
