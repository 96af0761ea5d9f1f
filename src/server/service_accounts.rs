//! Sets up what issues and verifies tokens of service accounts.

use std::sync::Arc;

use super::config::Config;
use super::start::BuildError;
use crate::api::Api;
use crate::auth::jwt::keys::SigningKey;
use crate::auth::pki;
use crate::auth::service_accounts::{Issuer, Keys, Resources, Setup};
use crate::codec::object::Draft;
use crate::schema::names::Gvr;
use crate::storage::{self, Change, Expect, Key, Mutation, ResourceId};
use crate::tree::json;

/// The version of rows in which servers publish their keys.
const KEY_VERSION: &str = "internal.rowplane.dev/v1";

/// The issuer of the configuration, with its keys.
pub fn issuer(config: &Config) -> Result<Arc<Issuer>, BuildError> {
    let settings = &config.authentication.service_accounts;
    let signing = match (&settings.signing_key_file, &config.data_dir) {
        (Some(file), _) => Keys::load_signing(file)?,
        (None, Some(dir)) => SigningKey::of_pem(pki::token_key(&dir.join("pki"))?.as_bytes())?,
        (None, None) => SigningKey::of_pem(pki::temporary_token_key()?.as_bytes())?,
    };
    let mut more = Vec::new();
    for file in &settings.key_files {
        more.extend(Keys::load(file)?);
    }
    Ok(Issuer::new(Setup {
        issuers: settings.issuers.clone(),
        keys: Keys::new(signing, more),
        max_seconds: settings.max_token_expiration.and_then(|most| i64::try_from(most.as_secs()).ok()),
        extends: settings.extend_token_expiration,
        jwks_uri: settings.jwks_uri.clone(),
    }))
}

/// What tokens depend on. `keys` is where servers publish their keys.
pub fn resources(api: &Api, keys: ResourceId) -> Result<Resources, BuildError> {
    let id = |plural: &'static str| {
        let found = api.resources.get(&Gvr::fixed("v1", plural));
        found.map(|resource| resource.id).ok_or_else(|| format!("{plural} are not served"))
    };
    Ok(Resources {
        accounts: id("serviceaccounts")?,
        secrets: id("secrets")?,
        pods: id("pods")?,
        nodes: id("nodes")?,
        keys,
    })
}

/// Publishes the key with which this server signs, if other servers may have to verify its tokens.
pub async fn publish_key(api: &Api, keys: ResourceId) -> Result<(), storage::Error> {
    let key = &api.tokens.issuer.keys.signing().public;
    let state = api.cache.any();
    if !api.cache.backend().shared() || state.get(keys, "", &key.id).is_some() {
        return Ok(());
    }
    let row = json!({"metadata": {"name": key.id}, "key": key.to_pem()});
    let draft = Draft::of_json("", &key.id, row.to_string().into());
    let change = Change::Put { uid: "".into(), stored_version: KEY_VERSION.into(), draft };
    let mutation = Mutation::new(Key::new(keys, "", &key.id), Expect::Absent, change);
    // Another server with the same key may have published it meanwhile.
    api.store.write(mutation).await.map(drop)
}
