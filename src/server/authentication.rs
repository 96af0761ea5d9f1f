//! The settings of authentication, and issuers of tokens elsewhere, which change with their file.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::config::{Authentication, Config};
use super::reloads::{Reloads, Unusable};
use crate::auth::authentication_config;
use crate::auth::authn::{Anonymous, Authenticator, Settings};
use crate::auth::authorizer::{Mode, PUBLIC_PATHS};
use crate::auth::oidc::Oidc;
use crate::metrics::ReloadedFile;
use crate::runtime::Runtime;

/// Accepts the tokens of the issuers that are configured, now and later. Fails if one is to be reached by a network to which no
/// way is configured.
pub fn know_issuers(
    config: &Authentication,
    authenticator: &Authenticator,
    reloads: &Reloads,
    server: Option<&str>,
    runtime: &Runtime,
) -> Result<(), String> {
    if config.oidc.is_empty() && config.file.is_none() {
        return Ok(());
    }
    let oidc = Arc::new(Oidc::new(config.oidc.clone(), runtime.clone())?);
    authenticator.know_oidc(oidc.clone());
    let discovering = oidc.clone();
    runtime.tasks.run("oidc", async move { discovering.discover().await });
    let Some(file) = &config.file else { return Ok(()) };
    let own = config.service_accounts.issuers.clone();
    let anonymous = authentication_config::parse(&file.text, &own).ok().and_then(|file| file.anonymous);
    let take = move |text: Vec<u8>| -> BoxFuture<'static, Result<(), Unusable>> {
        let new = authentication_config::parse(&text, &own);
        let (oidc, anonymous) = (oidc.clone(), anonymous.clone());
        Box::pin(async move {
            let new = new?;
            if new.anonymous != anonymous {
                let why = "anonymous: Forbidden: changed from initial configuration file";
                return Err(Unusable::Wrong(why.to_owned()));
            }
            oidc.replace(new.issuers).await.map_err(Unusable::NotYet)
        })
    };
    reloads.follow(file, ReloadedFile::Authentication, server, runtime, Box::new(take));
    Ok(())
}

/// The settings of the chain of authenticators. Where everything is allowed, nobody is anonymous but on the public paths:
/// upstream lets nobody be anonymous then.
pub(super) fn settings(config: &Config) -> Settings {
    let Authentication { anonymous, front_proxy, .. } = &config.authentication;
    let anonymous = match (anonymous, config.authorization.has(Mode::AlwaysAllow)) {
        (Anonymous::Everywhere, true) => Anonymous::At(PUBLIC_PATHS.map(str::to_owned).to_vec()),
        (anonymous, _) => anonymous.clone(),
    };
    let has_proxies =
        config.https.as_ref().is_some_and(|https| https.certificates.front_proxy_ca_file.is_some());
    let front_proxy = has_proxies.then(|| front_proxy.clone());
    Settings { anonymous, front_proxy, audiences: config.authentication.audiences().into() }
}
