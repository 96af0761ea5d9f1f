//! Sets up what issues and verifies tokens of service accounts.

use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::config::{Config, ServiceAccounts};
use super::error::BuildError;
use super::reloads::{Reload, Reloads, run_when_changed};
use crate::api::{Api, ObjectMap};
use crate::auth::jwt::keys::{PublicKey, SigningKey};
use crate::auth::pki::{self, TokenKeys};
use crate::auth::service_accounts::external::Signer;
use crate::auth::service_accounts::{Issuer, KeyFileError, Keys, Resources};
use crate::cache::hidden_rows::HiddenRows;
use crate::gotext;
use crate::runtime::Runtime;
use crate::schema::names::Gvr;
use crate::storage::{self, Expect};
use crate::tasks::Tasks;

/// For how many seconds tokens in Pods are valid, which kubelets renew every hour.
const YEAR: i64 = 365 * 24 * 3600;

/// The issuer of the configuration, with its keys, or those of the external signer.
pub async fn issuer(config: &Config, runtime: &Runtime) -> Result<Arc<Issuer>, BuildError> {
    let settings = &config.authentication.service_accounts;
    let (keys, longest) = match &settings.signing_endpoint {
        Some(endpoint) => external_keys(endpoint, settings, runtime).await?,
        None => (keys(config)?, None),
    };
    let max_seconds = settings.max_token_expiration.and_then(|most| i64::try_from(most.as_secs()).ok());
    let extended = settings.extend_token_expiration.then_some(longest.unwrap_or(YEAR).min(YEAR));
    Ok(Arc::new(Issuer {
        issuers: settings.issuers.clone(),
        keys,
        max_seconds: max_seconds.or(longest),
        extended,
        jwks_uri: settings.jwks_uri.clone(),
    }))
}

/// The keys of the external signer, which are followed from now on, and the longest life of its tokens in seconds.
async fn external_keys(
    endpoint: &str,
    settings: &ServiceAccounts,
    runtime: &Runtime,
) -> Result<(Keys, Option<i64>), BuildError> {
    let started = Signer::start(endpoint, runtime.clone()).await;
    let (signer, longest) =
        started.map_err(|error| format!("while setting up external-jwt-signer: {error}"))?;
    let limit = Duration::from_secs(longest.unsigned_abs());
    if let Some(most) = settings.max_token_expiration.filter(|most| *most > limit) {
        return Err(format!(
            "service-account-max-token-expiration cannot be set longer than the token expiration supported by \
             service-account-signing-endpoint: {} > {}",
            gotext::duration(most),
            gotext::duration(limit)
        )
        .into());
    }
    let signer = Arc::new(signer);
    let followed = signer.clone();
    runtime.tasks.run("external-jwt-signer", async move { followed.follow().await });
    Ok((Keys::external(signer), Some(longest)))
}

/// The keys that this server has.
fn keys(config: &Config) -> Result<Keys, BuildError> {
    let settings = &config.authentication.service_accounts;
    let (signing, mut more, discarded) = match (&settings.signing_key_file, own_keys(config)) {
        (Some(file), _) => (Keys::load_signing(file)?, Vec::new(), Vec::new()),
        (None, Some(dir)) => {
            let TokenKeys { signing, retired, discarded } = TokenKeys::load(&dir)?;
            (signing, retired, discarded)
        }
        (None, None) => {
            let signing = SigningKey::of_pem(pki::temporary_token_key()?.as_bytes())?;
            (signing, Vec::new(), Vec::new())
        }
    };
    more.extend(key_files(settings)?);
    Ok(Keys::new(signing, more, &discarded))
}

fn key_files(settings: &ServiceAccounts) -> Result<Vec<PublicKey>, KeyFileError> {
    let keys = settings.key_files.iter().map(|file| Keys::load(file));
    Ok(keys.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The directory of the server's own keys; `None` if a flag names another key or a service that signs.
fn own_keys(config: &Config) -> Option<PathBuf> {
    let settings = &config.authentication.service_accounts;
    let is_own = settings.signing_key_file.is_none() && settings.signing_endpoint.is_none();
    config.data_dir.as_ref().filter(|_| is_own).map(|dir| dir.join("pki"))
}

/// Takes over the keys of the data directory when a command rotates them. `keys` is where servers publish their keys.
pub fn follow_keys(config: &Config, api: &Arc<Api>, keys: HiddenRows, reloads: &Reloads, tasks: &Tasks) {
    let Some(dir) = own_keys(config) else { return };
    let (settings, file) = (config.authentication.service_accounts.clone(), pki::token_key_file(&dir));
    let followed = Arc::new(FollowedKeys { dir, settings, api: Arc::downgrade(api), keys });
    let reload: Reload = Arc::new(move || {
        let followed = followed.clone();
        Box::pin(async move {
            if let Err(error) = followed.take().await {
                tracing::error!(%error, "the keys of tokens cannot be read again; those before stay in force");
            }
        })
    });
    reloads.add(reload.clone());
    tasks.run("token-signing-keys", run_when_changed(file, reload));
}

struct FollowedKeys {
    dir: PathBuf,
    settings: ServiceAccounts,
    api: Weak<Api>,
    keys: HiddenRows,
}

impl FollowedKeys {
    async fn take(&self) -> Result<(), BuildError> {
        let Some(api) = self.api.upgrade() else { return Ok(()) };
        let own = &api.tokens.issuer.keys;
        let TokenKeys { signing, mut retired, discarded } = TokenKeys::load(&self.dir)?;
        if own.signing().is_some_and(|known| signing.public == known.public) {
            return Ok(());
        }
        retired.extend(key_files(&self.settings)?);
        // Other servers know the key before the first token is signed with it.
        publish(&api, self.keys, &signing.public).await?;
        let id = signing.public.id.clone();
        own.replace(signing, retired, &discarded);
        withdraw(&api, self.keys, &discarded).await?;
        tracing::info!(key = id, "tokens of service accounts are signed with a new key");
        Ok(())
    }
}

/// The resources that tokens depend on. `keys` is where servers publish their keys.
pub fn resources(api: &Api, keys: HiddenRows) -> Result<Resources, BuildError> {
    let id = |plural: &'static str| {
        let found = api.resources.get(&Gvr::fixed("v1", plural));
        found.map(|resource| resource.id).ok_or_else(|| format!("{plural} are not served"))
    };
    Ok(Resources {
        accounts: id("serviceaccounts")?,
        secrets: id("secrets")?,
        pods: id("pods")?,
        nodes: id("nodes")?,
        keys: keys.id(),
    })
}

/// Publishes the key with which this server signs, and ends what keys have signed that were discarded meanwhile.
pub async fn publish_key(config: &Config, api: &Api, keys: HiddenRows) -> Result<(), BuildError> {
    let Some(signing) = api.tokens.issuer.keys.signing() else { return Ok(()) };
    publish(api, keys, &signing.public).await?;
    let Some(dir) = own_keys(config) else { return Ok(()) };
    Ok(withdraw(api, keys, &TokenKeys::load(&dir)?.discarded).await?)
}

/// Publishes a key, if other servers may have to verify tokens with it.
async fn publish(api: &Api, keys: HiddenRows, key: &PublicKey) -> Result<(), storage::Error> {
    let state = api.cache.any();
    if !api.cache.backend().shared() || keys.get(&state, "", &key.id).is_some() {
        return Ok(());
    }
    let mut row = ObjectMap::new();
    row.insert("key", key.to_pem().into());
    let mutation = keys.put("", &key.id, Expect::Absent, row);
    // Another server with the same key may have published it meanwhile.
    api.store.write(mutation).await.map(drop)
}

async fn withdraw(api: &Api, keys: HiddenRows, discarded: &[PublicKey]) -> Result<(), storage::Error> {
    for key in discarded {
        let Some(row) = keys.get(&api.cache.any(), "", &key.id) else { continue };
        let mutation = keys.delete("", &key.id, Expect::At(row.revision()));
        // Another server that knows of it may have been faster.
        api.store.write(mutation).await?;
    }
    Ok(())
}
