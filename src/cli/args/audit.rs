//! The flags of auditing, with kube-apiserver's names and defaults.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::audit::config::{
    Batching, Config, DatabaseConfig, Delivery, LogConfig, LogFormat, LogTarget, Mode, Rotation, Throttle,
    Truncation, WebhookConfig,
};
use crate::cli::error::Error;
use crate::gotext::parse_duration as duration;

const VERSION: &str = "audit.k8s.io/v1";
/// How long the database says who did what.
const DEFAULT_RETENTION: Duration = Duration::from_secs(72 * 60 * 60);

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Auditing flags")]
pub struct AuditArgs {
    /// The audit policy file, which says what requests are recorded and in how much detail. Without one, no audit log
    /// or webhook is used
    #[arg(long, value_name = "FILE")]
    audit_policy_file: Option<PathBuf>,
    /// The time for which audit events are kept in the database, where `rowplane audit` finds them. Without a policy,
    /// all writes except those of leases and events are recorded; 0 disables it [default: 72h; 0 with a policy or in
    /// memory]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    audit_database_retention: Option<Duration>,

    /// The approximate maximum number of audit events in the database; the oldest are removed first
    #[arg(long, value_name = "EVENTS", default_value_t = 200_000)]
    audit_database_max_events: u64,

    #[command(flatten)]
    log: AuditLogArgs,
    #[command(flatten)]
    webhook: AuditWebhookArgs,
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
#[command(next_help_heading = "Auditing flags")]
struct AuditLogArgs {
    /// The file that audit events are logged to, one per line; - means standard output
    #[arg(long, value_name = "FILE", allow_hyphen_values = true)]
    audit_log_path: Option<PathBuf>,

    /// The maximum number of days to keep rotated audit log files; 0 means no limit
    #[arg(long, value_name = "DAYS", default_value_t = 366)]
    audit_log_maxage: u32,

    /// The maximum number of rotated audit log files to keep; 0 means no limit
    #[arg(long, value_name = "FILES", default_value_t = 100)]
    audit_log_maxbackup: u32,

    /// The size in MiB at which the audit log file is rotated; 0 disables rotation
    #[arg(long, value_name = "MIB", default_value_t = 100)]
    audit_log_maxsize: u64,

    /// Compresses rotated audit log files with gzip
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    audit_log_compress: bool,

    /// The format of the audit log: json, or legacy for one line of text per event
    #[arg(long, value_name = "FORMAT", default_value = "json", value_parser = log_format)]
    audit_log_format: LogFormat,

    #[command(flatten)]
    delivery: LogDelivery,
}

impl AuditLogArgs {
    fn into_config(self) -> Option<LogConfig> {
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
        let delivery = self.delivery.into_config(false);
        Some(LogConfig { target, format: self.audit_log_format, delivery })
    }
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Auditing flags")]
struct AuditWebhookArgs {
    /// The kubeconfig of the webhook that receives audit events
    #[arg(long, value_name = "FILE")]
    audit_webhook_config_file: Option<PathBuf>,

    /// The time to wait before a failed request is sent again
    #[arg(long, visible_alias = "audit-webhook-batch-initial-backoff", value_name = "DURATION", default_value = "10s", value_parser = duration)]
    audit_webhook_initial_backoff: Duration,

    #[command(flatten)]
    delivery: WebhookDelivery,
}

impl AuditWebhookArgs {
    fn into_config(self) -> Option<WebhookConfig> {
        let config_file = self.audit_webhook_config_file.filter(|path| !path.as_os_str().is_empty())?;
        let (delivery, initial_backoff) =
            (self.delivery.into_config(true), self.audit_webhook_initial_backoff);
        Some(WebhookConfig { config_file, initial_backoff, delivery })
    }
}

/// Defines the flags `--audit-PLUGIN-…` about when events leave and how many together, with the defaults of a plugin.
macro_rules! delivery_args {
    (
        $name:ident, $plugin:literal, mode: $mode:literal, batch: $batch:literal, wait: $wait:literal,
        throttle: $throttle:literal, $qps:literal per second, at once $burst:literal
    ) => {
        #[derive(Clone, Debug, Args)]
        #[command(next_help_heading = "Auditing flags")]
        struct $name {
            /// The API version of audit events
            #[arg(id = concat!("audit-", $plugin, "-version"), long = concat!("audit-", $plugin, "-version"),
                value_name = "VERSION", default_value = VERSION, value_parser = version)]
            _version: String,

            /// The strategy for sending audit events: batch sends them in the background, blocking before each
            /// response, and blocking-strict fails a request whose event cannot be recorded
            #[arg(id = concat!("audit-", $plugin, "-mode"), long = concat!("audit-", $plugin, "-mode"),
                value_name = "MODE", default_value = $mode, value_parser = |text: &str| mode($plugin, text))]
            mode: Mode,

            /// The number of audit events that are buffered in batch mode
            #[arg(id = concat!("audit-", $plugin, "-batch-buffer-size"), value_name = "EVENTS",
                long = concat!("audit-", $plugin, "-batch-buffer-size"), default_value_t = 10_000)]
            buffer: usize,

            /// The maximum number of audit events in a batch
            #[arg(id = concat!("audit-", $plugin, "-batch-max-size"), value_name = "EVENTS",
                long = concat!("audit-", $plugin, "-batch-max-size"), default_value_t = $batch)]
            largest: usize,

            /// The time that a batch waits for more events before it is sent
            #[arg(id = concat!("audit-", $plugin, "-batch-max-wait"), value_name = "DURATION",
                long = concat!("audit-", $plugin, "-batch-max-wait"), default_value = $wait, value_parser = duration)]
            wait: Duration,

            /// Limits the rate of batches in batch mode
            #[arg(id = concat!("audit-", $plugin, "-batch-throttle-enable"), value_name = "BOOL",
                long = concat!("audit-", $plugin, "-batch-throttle-enable"), default_value_t = $throttle,
                action = ArgAction::Set)]
            throttle: bool,

            /// The maximum average number of batches per second
            #[arg(id = concat!("audit-", $plugin, "-batch-throttle-qps"), value_name = "BATCHES",
                long = concat!("audit-", $plugin, "-batch-throttle-qps"), default_value_t = $qps)]
            per_second: f32,

            /// The maximum number of batches sent at once after a pause
            #[arg(id = concat!("audit-", $plugin, "-batch-throttle-burst"), value_name = "BATCHES",
                long = concat!("audit-", $plugin, "-batch-throttle-burst"), default_value_t = $burst)]
            burst: u32,

            /// Truncates audit events and batches that are too large
            #[arg(id = concat!("audit-", $plugin, "-truncate-enabled"), value_name = "BOOL",
                long = concat!("audit-", $plugin, "-truncate-enabled"), default_value_t = false,
                action = ArgAction::Set)]
            truncate: bool,

            /// The maximum size of a batch in bytes
            #[arg(id = concat!("audit-", $plugin, "-truncate-max-batch-size"), value_name = "BYTES",
                long = concat!("audit-", $plugin, "-truncate-max-batch-size"), default_value_t = 10 << 20)]
            batch_size: usize,

            /// The maximum size of an audit event in bytes; request and response objects are removed from larger ones
            #[arg(id = concat!("audit-", $plugin, "-truncate-max-event-size"), value_name = "BYTES",
                long = concat!("audit-", $plugin, "-truncate-max-event-size"), default_value_t = 100 << 10)]
            event_size: usize,
        }

        impl $name {
            fn into_config(self, overlap: bool) -> Delivery {
                let Self { buffer, largest, wait, per_second, burst, batch_size, event_size, .. } = self;
                let throttle = self.throttle.then_some(Throttle { per_second, burst });
                let batches = Batching { buffer, largest, wait, throttle, overlap };
                let truncation = self.truncate.then_some(Truncation { event_size, batch_size });
                Delivery { mode: self.mode, batches, truncation }
            }
        }
    };
}

delivery_args!(
    LogDelivery, "log", mode: "blocking", batch: 1, wait: "0s", throttle: false, 0.0 per second, at once 0
);
delivery_args!(
    WebhookDelivery, "webhook", mode: "batch", batch: 400, wait: "30s", throttle: true, 10.0 per second, at once 15
);

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
