//! The flags that say who is believed to be whom.

use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;
use clap::{ArgAction, Args};

use super::duration;
use super::oidc_flags::OidcArgs;
use super::service_accounts::ServiceAccountArgs;
use crate::auth::authn::{Anonymous, FrontProxy};
use crate::auth::{authentication_config, oidc};
use crate::cli::error::Error;
use crate::server::config::{Authentication, Https, SettingsFile, TokenWebhook};

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct AuthenticationArgs {
    /// A CSV file of static bearer tokens: token,user,uid,"group1,group2"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    /// The CAs whose client certificates are accepted; the common name is the user, organizations are groups. The data
    /// directory's CA is accepted only if the file contains it [default: the data directory's CA]
    #[arg(long, value_name = "FILE")]
    client_ca_file: Option<PathBuf>,

    /// The CAs of front proxies, whose request headers say who makes a request
    #[arg(long, value_name = "FILE")]
    requestheader_client_ca_file: Option<PathBuf>,

    /// The common names allowed for the client certificates of front proxies [default: any]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    requestheader_allowed_names: Vec<String>,

    /// The request headers with the user's name
    #[arg(long, value_name = "HEADER", value_delimiter = ',')]
    requestheader_username_headers: Vec<HeaderName>,

    /// The request headers with the user's UID
    #[arg(long, value_name = "HEADER", value_delimiter = ',')]
    requestheader_uid_headers: Vec<HeaderName>,

    /// The request headers with the user's groups
    #[arg(long, value_name = "HEADER", value_delimiter = ',')]
    requestheader_group_headers: Vec<HeaderName>,

    /// The prefixes of request headers with the user's extra attributes
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    requestheader_extra_headers_prefix: Vec<HeaderName>,

    /// Accepts the bootstrap tokens in Secrets of the namespace kube-system, type bootstrap.kubernetes.io/token
    #[arg(long, value_name = "BOOL", default_value_t = false, action = ArgAction::Set)]
    enable_bootstrap_token_auth: bool,

    /// Allows requests without credentials, as user system:anonymous [default: true]
    #[arg(long, value_name = "BOOL")]
    anonymous_auth: Option<bool>,

    /// A file of kind AuthenticationConfiguration with JWT authenticators and anonymous access, instead of the OIDC
    /// flags and --anonymous-auth; read again when it changes
    #[arg(long, value_name = "FILE")]
    authentication_config: Option<PathBuf>,

    #[command(flatten)]
    service_accounts: ServiceAccountArgs,

    #[command(flatten)]
    oidc: OidcArgs,

    /// The kubeconfig of a webhook that authenticates bearer tokens
    #[arg(long, value_name = "FILE")]
    authentication_token_webhook_config_file: Option<PathBuf>,

    /// The API version of the TokenReviews sent to the webhook
    #[arg(long, value_name = "VERSION", default_value = "v1beta1", value_parser = clap::builder::PossibleValuesParser::new(["v1", "v1beta1"]))]
    authentication_token_webhook_version: String,

    /// The time for which responses of the token webhook are cached
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    authentication_token_webhook_cache_ttl: Duration,
}

impl AuthenticationArgs {
    /// `https` takes the files that are read again while the server runs.
    pub fn into_config(self, https: &mut Https) -> Result<Authentication, Error> {
        https.token_auth_file = self.token_auth_file;
        https.certificates.client_ca_file = self.client_ca_file;
        https.certificates.front_proxy_ca_file = self.requestheader_client_ca_file;
        let uid_headers = &self.requestheader_uid_headers;
        if !uid_headers.is_empty() && !uid_headers.iter().any(|name| name == "x-remote-uid") {
            let why = "--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work";
            return Err(Error::Usage(why.to_owned()));
        }
        let front_proxy = FrontProxy {
            username_headers: self.requestheader_username_headers,
            uid_headers: self.requestheader_uid_headers,
            group_headers: self.requestheader_group_headers,
            extra_prefixes: self
                .requestheader_extra_headers_prefix
                .iter()
                .map(|prefix| prefix.as_str().to_owned())
                .collect(),
            allowed_names: self.requestheader_allowed_names,
        };
        let (service_accounts, api_audiences) = self.service_accounts.into_config()?;
        let (oidc, anonymous, file) = issuers(
            self.authentication_config,
            self.oidc.into_config()?,
            self.anonymous_auth,
            &service_accounts.issuers,
        )?;
        Ok(Authentication {
            anonymous,
            front_proxy,
            api_audiences,
            service_accounts,
            bootstrap_tokens: self.enable_bootstrap_token_auth,
            oidc,
            file,
            webhook: self.authentication_token_webhook_config_file.map(|config_file| TokenWebhook {
                config_file,
                version: self.authentication_token_webhook_version,
                cache_ttl: self.authentication_token_webhook_cache_ttl,
            }),
        })
    }
}

/// The issuers of the file or of the flags, and who may be anonymous. `own` are those of tokens of service accounts.
fn issuers(
    file: Option<PathBuf>,
    of_flags: Option<oidc::Issuer>,
    anonymous: Option<bool>,
    own: &[String],
) -> Result<(Vec<oidc::Issuer>, Anonymous, Option<SettingsFile>), Error> {
    let of_flag = match anonymous {
        Some(false) => Anonymous::Nowhere,
        Some(true) | None => Anonymous::Everywhere,
    };
    let Some(path) = file else { return Ok((of_flags.into_iter().collect(), of_flag, None)) };
    if of_flags.is_some() {
        let why = "authentication-config file and oidc-* flags are mutually exclusive";
        return Err(Error::Usage(why.to_owned()));
    }
    let loaded = authentication_config::load(&path, own);
    let (file, text) = loaded.map_err(|error| Error::Usage(error.to_string()))?;
    if file.anonymous.is_some() && anonymous.is_some() {
        let why = "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file";
        return Err(Error::Usage(why.to_owned()));
    }
    let settings = SettingsFile { path, text };
    Ok((file.issuers, file.anonymous.unwrap_or(of_flag), Some(settings)))
}
