//! Issuers of tokens elsewhere, and how they change with their file.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::config::Authentication;
use super::reloads::{Reloads, Unusable};
use crate::auth::authentication_config;
use crate::auth::authn::Authenticator;
use crate::auth::oidc::Oidc;
use crate::metrics::ReloadedFile;
use crate::runtime::Runtime;

/// Accepts the tokens of the issuers that are configured, now and later.
pub fn know_issuers(
    config: &Authentication,
    authenticator: &Authenticator,
    reloads: &Reloads,
    server: Option<&str>,
    runtime: &Runtime,
) {
    if config.oidc.is_empty() && config.file.is_none() {
        return;
    }
    let oidc = Arc::new(Oidc::new(config.oidc.clone(), runtime.clock.clone(), runtime.metrics.clone()));
    authenticator.know_oidc(oidc.clone());
    let discovering = oidc.clone();
    runtime.tasks.run("oidc", async move { discovering.discover().await });
    let Some(file) = &config.file else { return };
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
}
