//! The keys of a store whose values are encrypted, for commands that read it.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use futures_util::StreamExt as _;

use super::error::Error;
use crate::codec::sealed;
use crate::encryption::{OfflineKeys, SealError};
use crate::kinds::built_in;
use crate::storage::transfer::{self, Export, StoredObject};

/// The file that the keys come from.
#[derive(Clone, Debug, Default, Args)]
pub struct KeyArgs {
    /// The file by which the servers encrypt values, if they do
    #[arg(long, env = "ROWPLANE_ENCRYPTION_PROVIDER_CONFIG", value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
}

/// The same for backups, which are encrypted only on request.
#[derive(Clone, Debug, Default, Args)]
pub struct BackupKeyArgs {
    /// Encrypt the backup as servers with this file encrypt their store: `resources: ["*.*"]` in it means everything
    #[arg(long, value_name = "FILE")]
    encryption_provider_config: Option<PathBuf>,
}

/// The keys, or none.
#[derive(Default)]
pub struct Keys(Option<OfflineKeys>);

impl KeyArgs {
    pub fn new(file: PathBuf) -> Self {
        Self { encryption_provider_config: Some(file) }
    }

    pub async fn load(&self) -> Result<Keys, Error> {
        Keys::load(self.encryption_provider_config.clone()).await
    }
}

impl BackupKeyArgs {
    pub async fn load(&self) -> Result<Keys, Error> {
        Keys::load(self.encryption_provider_config.clone()).await
    }
}

impl Keys {
    async fn load(file: Option<PathBuf>) -> Result<Self, Error> {
        let Some(file) = file.filter(|file| !file.as_os_str().is_empty()) else { return Ok(Self(None)) };
        let groups = built_in::definitions().iter().map(|one| one.group().clone()).collect();
        OfflineKeys::load(&file, groups).await.map(|keys| Self(Some(keys))).map_err(Error::Refused)
    }

    /// Opens the value of an object. An object that cannot be read is an error, since nothing may be concluded without it.
    pub async fn open(&self, mut object: StoredObject) -> Result<StoredObject, Error> {
        let unreadable = |object: &StoredObject, why: &str| {
            Error::Refused(format!("cannot read {} {:?}: {why}", object.resource, object.full_name()))
        };
        match &self.0 {
            Some(keys) => keys.open(&mut object).await.map_err(|why| unreadable(&object, &why))?,
            None if sealed::is_encrypted(&object.value) => {
                let why = "it is encrypted; name the keys with --encryption-provider-config";
                return Err(unreadable(&object, why));
            }
            None => {}
        }
        Ok(object)
    }

    /// Encrypts what is exported.
    pub fn seal(self, export: Export) -> Export {
        let Some(keys) = self.0 else { return export };
        let sealing = (keys, Instant::now(), export.batches);
        let batches = futures_util::stream::unfold(sealing, |(keys, mut asked, mut batches)| async move {
            let sealed = match batches.next().await? {
                Ok(mut records) => match keys.seal_all(&mut records, &mut asked).await {
                    Ok(()) => Ok(records),
                    Err(SealError(why)) => Err(transfer::Error::Sealed(why)),
                },
                Err(error) => Err(error),
            };
            Some((sealed, (keys, asked, batches)))
        });
        Export { batches: Box::pin(batches), ..export }
    }
}
