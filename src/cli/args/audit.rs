//! The flags of auditing, with kube-apiserver's names and defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::audit::config::{
    Batching, Config, DatabaseConfig, Delivery, LogConfig, LogFormat, LogTarget, Mode, Rotation, Throttle,
    Truncation, WebhookConfig,
};
use crate::cli::error::Error;
use crate::gotext;

const VERSION: &str = "audit.k8s.io/v1";
/// How long the database says who did what.
const DEFAULT_RETENTION: Duration = Duration::from_secs(72 * 60 * 60);

#[derive(Clone, Debug, Args)]
pub struct AuditArgs {
    /// The audit policy: which requests are recorded, and how much of them. Without one nothing is
    #[arg(long, env = "ROWPLANE_AUDIT_POLICY_FILE", value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    /// Keeps audit events in the database for so long, those of writes with the write; without a policy all writes but those of
    /// leases and events. rowplane audit shows them. 0 keeps none [default: 72h; 0 with a policy, or without a database]
    #[arg(long, env = "ROWPLANE_AUDIT_DATABASE_RETENTION", value_name = "DURATION", value_parser = duration)]
    audit_database_retention: Option<Duration>,

    /// About how many audit events are kept in the database, the newest, however long they might be kept
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_DATABASE_MAX_EVENTS",
        value_name = "EVENTS",
        default_value_t = 200_000
    )]
    audit_database_max_events: u64,

    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
}

impl AuditArgs {
    /// `has_database` if events would outlive the server.
    pub fn into_config(self, has_database: bool) -> Result<Config, Error> {
        let policy_file = self.audit_policy_file.filter(|path| !path.as_os_str().is_empty());
        let retention = self.audit_database_retention.unwrap_or(match policy_file {
            None if has_database => DEFAULT_RETENTION,
            _ => Duration::ZERO,
        });
        let most = self.audit_database_max_events;
        let config = Config {
            policy_file,
            log: self.log.into_config(),
            webhook: self.webhook.into_config(),
            database: (!retention.is_zero()).then_some(DatabaseConfig { retention, most }),
        };
        config.check().map_err(|error| Error::Usage(error.to_string()))?;
        Ok(config)
    }
}

#[derive(Clone, Debug, Args)]
struct LogArgs {
    /// Where audit events are written, a line each; - is the standard output
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_PATH", value_name = "FILE", allow_hyphen_values = true)]
    audit_log_path: Option<PathBuf>,

    /// Days for which files that were put aside are kept; 0 is no limit
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_MAXAGE", value_name = "DAYS", default_value_t = 366)]
    audit_log_maxage: u32,

    /// How many files that were put aside are kept; 0 is no limit
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_MAXBACKUP", value_name = "FILES", default_value_t = 100)]
    audit_log_maxbackup: u32,

    /// MiB at which the file is put aside; 0 never
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_MAXSIZE", value_name = "MIB", default_value_t = 100)]
    audit_log_maxsize: u64,

    /// Whether files that were put aside are compressed
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_COMPRESS", value_name = "BOOL", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    audit_log_compress: bool,

    /// json, or legacy for lines of text
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_FORMAT", value_name = "FORMAT", default_value = "json", value_parser = log_format)]
    audit_log_format: LogFormat,

    /// The version of the events
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_VERSION", value_name = "VERSION", default_value = VERSION, value_parser = version)]
    audit_log_version: String,

    /// batch, blocking or blocking-strict: whether requests wait until their events are written, and mind when they are not
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_MODE", value_name = "MODE", default_value = "blocking", value_parser = log_mode)]
    audit_log_mode: Mode,

    /// Events that wait to be written, in mode batch
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_LOG_BATCH_BUFFER_SIZE",
        value_name = "EVENTS",
        default_value_t = 10_000
    )]
    audit_log_batch_buffer_size: usize,

    /// The largest batch, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_BATCH_MAX_SIZE", value_name = "EVENTS", default_value_t = 1)]
    audit_log_batch_max_size: usize,

    /// How long a batch waits for more events, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_BATCH_MAX_WAIT", value_name = "DURATION", default_value = "0s", value_parser = duration)]
    audit_log_batch_max_wait: Duration,

    /// Whether only so many batches are written per second, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_BATCH_THROTTLE_ENABLE", value_name = "BOOL", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    audit_log_batch_throttle_enable: bool,

    /// Batches per second
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_LOG_BATCH_THROTTLE_QPS",
        value_name = "BATCHES",
        default_value_t = 0.0
    )]
    audit_log_batch_throttle_qps: f32,

    /// Batches at once, if there were fewer before
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_LOG_BATCH_THROTTLE_BURST",
        value_name = "BATCHES",
        default_value_t = 0
    )]
    audit_log_batch_throttle_burst: u32,

    /// Whether events that are too large lose their objects
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_TRUNCATE_ENABLED", value_name = "BOOL", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    audit_log_truncate_enabled: bool,

    /// The largest batch in bytes
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_TRUNCATE_MAX_BATCH_SIZE", value_name = "BYTES", default_value_t = 10 << 20)]
    audit_log_truncate_max_batch_size: usize,

    /// The largest event in bytes
    #[arg(long, env = "ROWPLANE_AUDIT_LOG_TRUNCATE_MAX_EVENT_SIZE", value_name = "BYTES", default_value_t = 100 << 10)]
    audit_log_truncate_max_event_size: usize,
}

impl LogArgs {
    fn into_config(self) -> Option<LogConfig> {
        debug_assert_eq!(self.audit_log_version, VERSION);
        let path = self.audit_log_path.filter(|path| !path.as_os_str().is_empty())?;
        let target = if path.as_os_str() == "-" {
            LogTarget::Stdout
        } else {
            let rotation = Rotation {
                largest: self.audit_log_maxsize,
                days: self.audit_log_maxage,
                backups: self.audit_log_maxbackup,
                compress: self.audit_log_compress,
            };
            LogTarget::File { path, rotation }
        };
        let delivery = Delivery {
            mode: self.audit_log_mode,
            batches: Batching {
                buffer: self.audit_log_batch_buffer_size,
                largest: self.audit_log_batch_max_size,
                wait: self.audit_log_batch_max_wait,
                throttle: self.audit_log_batch_throttle_enable.then_some(Throttle {
                    per_second: self.audit_log_batch_throttle_qps,
                    burst: self.audit_log_batch_throttle_burst,
                }),
                overlap: false,
            },
            truncation: self.audit_log_truncate_enabled.then_some(Truncation {
                event_size: self.audit_log_truncate_max_event_size,
                batch_size: self.audit_log_truncate_max_batch_size,
            }),
        };
        Some(LogConfig { target, format: self.audit_log_format, delivery })
    }
}

#[derive(Clone, Debug, Args)]
struct WebhookArgs {
    /// A kubeconfig of the webhook that audit events are sent to
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_CONFIG_FILE", value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,

    /// The pause before a failed call is tried again
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_INITIAL_BACKOFF", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    audit_webhook_initial_backoff: Duration,

    /// The version of the events
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_VERSION", value_name = "VERSION", default_value = VERSION, value_parser = version)]
    audit_webhook_version: String,

    /// batch, blocking or blocking-strict: whether requests wait until their events are sent, and mind when they are not
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_MODE", value_name = "MODE", default_value = "batch", value_parser = webhook_mode)]
    audit_webhook_mode: Mode,

    /// Events that wait to be sent, in mode batch
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_BUFFER_SIZE",
        value_name = "EVENTS",
        default_value_t = 10_000
    )]
    audit_webhook_batch_buffer_size: usize,

    /// The largest batch, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_MAX_SIZE", value_name = "EVENTS", default_value_t = 400)]
    audit_webhook_batch_max_size: usize,

    /// How long a batch waits for more events, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_MAX_WAIT", value_name = "DURATION", default_value = "30s", value_parser = duration)]
    audit_webhook_batch_max_wait: Duration,

    /// Whether only so many batches are sent per second, in mode batch
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_THROTTLE_ENABLE", value_name = "BOOL", default_value = "true", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    audit_webhook_batch_throttle_enable: bool,

    /// Batches per second
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_THROTTLE_QPS",
        value_name = "BATCHES",
        default_value_t = 10.0
    )]
    audit_webhook_batch_throttle_qps: f32,

    /// Batches at once, if there were fewer before
    #[arg(
        long,
        env = "ROWPLANE_AUDIT_WEBHOOK_BATCH_THROTTLE_BURST",
        value_name = "BATCHES",
        default_value_t = 15
    )]
    audit_webhook_batch_throttle_burst: u32,

    /// Whether events that are too large lose their objects
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_TRUNCATE_ENABLED", value_name = "BOOL", default_value = "false", action = ArgAction::Set,
        num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    audit_webhook_truncate_enabled: bool,

    /// The largest batch in bytes
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_TRUNCATE_MAX_BATCH_SIZE", value_name = "BYTES", default_value_t = 10 << 20)]
    audit_webhook_truncate_max_batch_size: usize,

    /// The largest event in bytes
    #[arg(long, env = "ROWPLANE_AUDIT_WEBHOOK_TRUNCATE_MAX_EVENT_SIZE", value_name = "BYTES", default_value_t = 100 << 10)]
    audit_webhook_truncate_max_event_size: usize,
}

impl WebhookArgs {
    fn into_config(self) -> Option<WebhookConfig> {
        debug_assert_eq!(self.audit_webhook_version, VERSION);
        let config_file = self.audit_webhook_config_file.filter(|path| !path.as_os_str().is_empty())?;
        let delivery = Delivery {
            mode: self.audit_webhook_mode,
            batches: Batching {
                buffer: self.audit_webhook_batch_buffer_size,
                largest: self.audit_webhook_batch_max_size,
                wait: self.audit_webhook_batch_max_wait,
                throttle: self.audit_webhook_batch_throttle_enable.then_some(Throttle {
                    per_second: self.audit_webhook_batch_throttle_qps,
                    burst: self.audit_webhook_batch_throttle_burst,
                }),
                overlap: true,
            },
            truncation: self.audit_webhook_truncate_enabled.then_some(Truncation {
                event_size: self.audit_webhook_truncate_max_event_size,
                batch_size: self.audit_webhook_truncate_max_batch_size,
            }),
        };
        Some(WebhookConfig { config_file, initial_backoff: self.audit_webhook_initial_backoff, delivery })
    }
}

/// A boolean as Go's flags read it.
pub fn switch(text: &str) -> Result<bool, String> {
    gotext::parse_bool(text).ok_or_else(|| format!("{text:?} is neither true nor false"))
}

fn duration(text: &str) -> Result<Duration, String> {
    gotext::parse_duration(text)
}

fn version(text: &str) -> Result<String, String> {
    match text {
        VERSION => Ok(text.to_owned()),
        _ => Err(format!("invalid group version, allowed versions are [{VERSION:?}]")),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "json" => Ok(LogFormat::Json),
        "legacy" => Ok(LogFormat::Legacy),
        _ => Err(format!("invalid audit log format {text}, allowed formats are \"legacy,json\"")),
    }
}

fn log_mode(text: &str) -> Result<Mode, String> {
    mode("log", text)
}

fn webhook_mode(text: &str) -> Result<Mode, String> {
    mode("webhook", text)
}

fn mode(plugin: &str, text: &str) -> Result<Mode, String> {
    match text {
        "batch" => Ok(Mode::Batch),
        "blocking" => Ok(Mode::Blocking),
        "blocking-strict" => Ok(Mode::BlockingStrict),
        _ => Err(format!(
            "invalid audit {plugin} mode {text}, allowed modes are \"batch,blocking,blocking-strict\""
        )),
    }
}
