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
use crate::storage::{Compaction, MAX_OBJECT_BYTES};

/// The form, the age and the history of what is stored.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Etcd flags")]
pub struct StorageArgs {
    /// The form objects are written to the database in: application/vnd.kubernetes.protobuf, application/json or
    /// application/yaml. All of them can be read at any time
    #[arg(long, value_name = "TYPE", default_value = StorageMediaType::default().as_str(), value_parser = StorageMediaType::parse)]
    storage_media_type: StorageMediaType,

    /// A file that says which resources are encrypted in the database, how, and with which keys
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// Whether that file is read again when it changes
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    encryption_provider_config_automatic_reload: bool,

    /// How often history is compacted; 0 never does
    #[arg(long, visible_alias = "etcd-compaction-interval", value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_interval: Duration,

    /// How much history is kept for watches and continue tokens
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    compaction_history: Duration,

    /// How long events are kept
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration, help_heading = "Misc flags")]
    event_ttl: Duration,

    /// The largest object that is stored, as it is encoded. Larger ones are refused with 413
    #[arg(long, value_name = "BYTES", default_value_t = MAX_OBJECT_BYTES)]
    max_object_bytes: usize,

    /// How many objects a migration of stored objects writes per second
    #[arg(long, value_name = "OBJECTS", default_value_t = 8000, value_parser = value_parser!(u32).range(1..))]
    storage_migration_rate: u32,

    /// Stores a resource in this version, where there are several: autoscaling/horizontalpodautoscalers=autoscaling/v1
    #[arg(long, value_name = "GROUP/RESOURCE=VERSION", value_delimiter = ',', value_parser = storage_version, help_heading = "API enablement flags")]
    storage_version: Vec<(GroupResource, GroupVersion)>,

    /// Built-in APIs that are served or not: v1, apps/v1, apps/v1/daemonsets, or api/all, api/ga, api/beta, api/alpha, each with
    /// true or false
    #[arg(long, value_name = "NAME=BOOL,…", default_value = "", hide_default_value = true, value_parser = Enablement::parse, help_heading = "API enablement flags")]
    runtime_config: Enablement,
}

impl StorageArgs {
    pub fn apply(self, config: &mut Config) -> Result<(), Error> {
        let (interval, history) = (self.compaction_interval, self.compaction_history);
        config.compaction = (!interval.is_zero()).then_some(Compaction { interval, history });
        config.storage_media_type = self.storage_media_type;
        config.encryption = self.encryption()?;
        config.storage_versions = self.storage_version;
        config.enablement = self.runtime_config;
        config.limits.max_object_bytes = self.max_object_bytes;
        config.limits.event_ttl = self.event_ttl;
        config.limits.migration_rate = self.storage_migration_rate;
        Ok(())
    }

    fn encryption(&self) -> Result<Option<encryption::Config>, Error> {
        let reload = match self.encryption_provider_config_automatic_reload {
            true => Reload::Yes,
            false => Reload::No,
        };
        match self.encryption_provider_config.clone().filter(|file| !file.as_os_str().is_empty()) {
            Some(file) => Ok(Some(encryption::Config { file, reload })),
            None if reload == Reload::No => Ok(None),
            None => {
                let why = "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config";
                Err(Error::Usage(why.to_owned()))
            }
        }
    }
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
