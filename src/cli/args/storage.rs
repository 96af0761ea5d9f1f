//! The flags about stored objects: their form, versions, encryption, size and age.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, value_parser};

use super::duration;
use crate::cli::error::Error;
use crate::codec::at_rest::StorageMediaType;
use crate::encryption::{self, configuration::Reload};
use crate::kinds::built_in;
use crate::kinds::built_in::enablement::Enablement;
use crate::schema::names::{GroupResource, GroupVersion};
use crate::server::config::Config;
use crate::server::datastore::Datastore;
use crate::storage::{Compaction, KeepRule, MAX_OBJECT_BYTES, RecordWriters, Retention};

/// The form, the age and the history of what is stored.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd flags")]
pub struct StorageArgs {
    /// The encoding of objects in the database: application/vnd.kubernetes.protobuf, application/json or
    /// application/yaml. Objects in any of them can be read
    #[arg(long, value_name = "TYPE", default_value = StorageMediaType::default().as_str(), value_parser = StorageMediaType::parse)]
    storage_media_type: StorageMediaType,

    /// A file of kind EncryptionConfiguration with the resources to encrypt in the database, the providers and their
    /// keys
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// Reads --encryption-provider-config again when it changes
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    encryption_provider_config_automatic_reload: bool,

    /// The interval of compaction of old revisions; 0 disables it
    #[arg(long, visible_alias = "etcd-compaction-interval", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_interval: Duration,

    /// The age up to which old revisions are kept, for watches and continue tokens
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_history: Duration,

    /// Keeps versions of objects for longer than watches need them, so that the past can be read: on or off. The default is
    /// on, but off if the state is in memory. What is kept includes old values of Secrets
    #[arg(long, value_name = "on|off", value_parser = switch)]
    history: Option<bool>,

    /// How long history is kept, by resource: PLURAL.GROUP=AGE with the units s, m, h and d, or forever. The first rule that
    /// matches counts; the last one is for *, all others
    #[arg(long, value_name = "RULES", default_value = Retention::DEFAULT_KEEP, value_parser = keep_rules)]
    history_keep: KeepRules,

    /// The bytes of history above which the oldest of the largest resource is given up before its time; 0 for no limit.
    /// Ki, Mi, Gi and Ti are understood
    #[arg(long, value_name = "BYTES", default_value = "8Gi", value_parser = bytes)]
    history_max_bytes: u64,

    /// What history tells of those who write: full (user, program, field manager), manager, or off
    #[arg(long, value_name = "full|manager|off", default_value = "full", value_parser = record_writers)]
    record_writers: RecordWriters,

    /// The time for which events are kept
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration, help_heading = "Misc flags")]
    event_ttl: Duration,

    /// The maximum size of a stored object in bytes, as it is encoded; larger ones are answered with 413
    #[arg(long, value_name = "BYTES", default_value_t = MAX_OBJECT_BYTES)]
    max_object_bytes: usize,

    /// The maximum number of objects per second that a storage migration rewrites
    #[arg(long, value_name = "OBJECTS", default_value_t = 8000, value_parser = value_parser!(u32).range(1..))]
    storage_migration_rate: u32,

    /// The version in which a resource is stored, as in autoscaling/horizontalpodautoscalers=autoscaling/v1. Can be
    /// given more than once
    #[arg(long, value_name = "GROUP/RESOURCE=VERSION", value_delimiter = ',', value_parser = storage_version, help_heading = "API enablement flags")]
    storage_version: Vec<(GroupResource, GroupVersion)>,

    /// Built-in APIs to enable or disable, as NAME=true or NAME=false: v1, apps/v1, apps/v1/daemonsets, or api/all,
    /// api/ga, api/beta, api/alpha
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = Enablement::parse, help_heading = "API enablement flags")]
    runtime_config: Enablement,
}

impl StorageArgs {
    /// The datastore of the configuration must have been set.
    pub fn apply(mut self, config: &mut Config) -> Result<(), Error> {
        config.encryption = self.encryption()?;
        let (interval, history) = (self.compaction_interval, self.compaction_history);
        let keeps = self.history.unwrap_or(config.datastore != Datastore::Memory);
        let max_bytes = Some(self.history_max_bytes).filter(|bytes| *bytes > 0);
        let KeepRules(rules) = self.history_keep;
        let retention = keeps.then(|| Retention::new(rules, max_bytes));
        config.compaction = (!interval.is_zero()).then_some(Compaction { interval, history, retention });
        config.record_writers = self.record_writers;
        config.storage_media_type = self.storage_media_type;
        config.storage_versions = self.storage_version;
        config.enablement = self.runtime_config;
        config.limits.max_object_bytes = self.max_object_bytes;
        config.limits.event_ttl = self.event_ttl;
        config.limits.migration_rate = self.storage_migration_rate;
        Ok(())
    }

    fn encryption(&mut self) -> Result<Option<encryption::Config>, Error> {
        let reload = match self.encryption_provider_config_automatic_reload {
            true => Reload::Yes,
            false => Reload::No,
        };
        match self.encryption_provider_config.take().filter(|file| !file.as_os_str().is_empty()) {
            Some(file) => Ok(Some(encryption::Config { file, reload })),
            None if reload == Reload::No => Ok(None),
            None => {
                let why = "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config";
                Err(Error::Usage(why.to_owned()))
            }
        }
    }
}

/// The rules of `--history-keep`. (clap would take a list for a flag that can be given more than once.)
#[derive(Clone, Debug)]
struct KeepRules(Vec<KeepRule>);

fn keep_rules(text: &str) -> Result<KeepRules, String> {
    Retention::parse_keep(text).map(KeepRules)
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" | "true" => Ok(true),
        "off" | "false" => Ok(false),
        _ => Err("must be on or off".to_owned()),
    }
}

fn record_writers(text: &str) -> Result<RecordWriters, String> {
    match text {
        "full" => Ok(RecordWriters::Full),
        "manager" => Ok(RecordWriters::Manager),
        "off" => Ok(RecordWriters::Off),
        _ => Err("must be full, manager or off".to_owned()),
    }
}

/// A number of bytes, as `8Gi`.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, unit) = text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "Ki" => 10,
        "Mi" => 20,
        "Gi" => 30,
        "Ti" => 40,
        _ => return Err("must be a number, with Ki, Mi, Gi, Ti or nothing behind it".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "must be a number of bytes".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "is too large".to_owned())
}

/// `<group>/<resource>=<version>`: the core group is `core` or nothing, the version may be written with its group.
fn storage_version(text: &str) -> Result<(GroupResource, GroupVersion), String> {
    let parts = text.split_once('=').and_then(|(name, version)| Some((name.split_once('/')?, version)));
    let ((group, plural), version) =
        parts.ok_or_else(|| "must be <group>/<resource>=<version>".to_owned())?;
    let group = if group == "core" { "" } else { group };
    let version = match version.contains('/') {
        true => GroupVersion::parse(version).unwrap_or_default(),
        false => GroupVersion::new(group, version),
    };
    let resource = GroupResource::new(group, plural);
    let known = built_in::storage_versions(&resource);
    match known.contains(&version) {
        true => Ok((resource, version)),
        false if known.is_empty() => Err(format!("no resource {resource} is stored")),
        false => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            Err(format!("{resource} can only be decoded in {}", known.join(", ")))
        }
    }
}
