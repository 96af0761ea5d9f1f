//! The flags about encryption at rest.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use super::audit::switch;
use crate::cli::error::Error;
use crate::encryption::Config;
use crate::encryption::configuration::Reload;

#[derive(Clone, Debug, Args)]
pub struct EncryptionArgs {
    /// A file that says which resources are encrypted in the database, how, and with which keys
    #[arg(long, env = "ROWPLANE_ENCRYPTION_PROVIDER_CONFIG", value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,

    /// Whether that file is read again when it changes
    #[arg(long, env = "ROWPLANE_ENCRYPTION_PROVIDER_CONFIG_AUTOMATIC_RELOAD", value_name = "BOOL", default_value = "false",
        action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = switch)]
    encryption_provider_config_automatic_reload: bool,
}

impl EncryptionArgs {
    pub fn into_config(self) -> Result<Option<Config>, Error> {
        let reload = match self.encryption_provider_config_automatic_reload {
            true => Reload::Yes,
            false => Reload::No,
        };
        match (self.encryption_provider_config.filter(|file| !file.as_os_str().is_empty()), reload) {
            (Some(file), reload) => Ok(Some(Config { file, reload })),
            (None, Reload::No) => Ok(None),
            (None, Reload::Yes) => {
                let why = "--encryption-provider-config-automatic-reload must be set with --encryption-provider-config";
                Err(Error::Usage(why.to_owned()))
            }
        }
    }
}
