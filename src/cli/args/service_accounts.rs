//! The flags about tokens of service accounts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};

use crate::auth::authn::DEFAULT_ISSUER;
use crate::cli::error::Error;
use crate::gotext;
use crate::server::config::ServiceAccounts;

/// Upstream's bounds of `--service-account-max-token-expiration`.
const SHORTEST_MAXIMUM: Duration = Duration::from_secs(3600);
const LONGEST_MAXIMUM: Duration = Duration::from_secs(1 << 32);

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct ServiceAccountArgs {
    /// The issuer of service account tokens. Of several, the first one issues tokens and all are accepted
    #[arg(long, value_name = "ISSUER", value_delimiter = ',', default_value = DEFAULT_ISSUER)]
    service_account_issuer: Vec<String>,

    /// The private key in PEM that signs service account tokens [default: one made in the data directory]
    #[arg(long, value_name = "FILE", help_heading = "Misc flags")]
    service_account_signing_key_file: Option<PathBuf>,

    /// The socket of an external signer of service account tokens (gRPC, k8s.io/externaljwt v1), used instead of keys:
    /// a path, or @name for an abstract socket
    #[arg(long, value_name = "SOCKET", help_heading = "Misc flags")]
    service_account_signing_endpoint: Option<String>,

    /// Additional keys in PEM that verify service account tokens
    #[arg(long, value_name = "FILE", value_delimiter = ',')]
    service_account_key_file: Vec<PathBuf>,

    /// The maximum validity of a service account token, at least 1h [default: as requested]
    #[arg(long, value_name = "DURATION", value_parser = maximum)]
    service_account_max_token_expiration: Option<Duration>,

    /// Extends the validity of the tokens in Pods, which kubelets renew every hour, to a year
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    service_account_extend_token_expiration: bool,

    /// The URL of the key set in the issuer's discovery document [default: this server's]
    #[arg(long, value_name = "URL")]
    service_account_jwks_uri: Option<String>,

    /// The audiences that tokens for this API must have one of [default: the service account issuers]
    #[arg(long, value_name = "AUDIENCE", value_delimiter = ',')]
    api_audiences: Vec<String>,
}

impl ServiceAccountArgs {
    /// With the audiences of this server.
    pub fn into_config(self) -> Result<(ServiceAccounts, Vec<String>), Error> {
        let issuers = self.service_account_issuer;
        if issuers.iter().any(String::is_empty) {
            return Err(Error::Usage("--service-account-issuer must not be empty".to_owned()));
        }
        if let Some((at, issuer)) =
            issuers.iter().enumerate().find(|(at, issuer)| issuers[..*at].contains(issuer))
        {
            return Err(Error::Usage(format!(
                "--service-account-issuer {issuer:?} is given twice ({})",
                at + 1
            )));
        }
        let endpoint = self.service_account_signing_endpoint.filter(|endpoint| !endpoint.is_empty());
        if let Some(endpoint) = &endpoint {
            let has_keys =
                self.service_account_signing_key_file.is_some() || !self.service_account_key_file.is_empty();
            check_endpoint(endpoint, has_keys)?;
        }
        let config = ServiceAccounts {
            issuers,
            key_files: self.service_account_key_file,
            signing_key_file: self.service_account_signing_key_file,
            signing_endpoint: endpoint,
            max_token_expiration: self.service_account_max_token_expiration,
            extend_token_expiration: self.service_account_extend_token_expiration,
            jwks_uri: self.service_account_jwks_uri,
        };
        Ok((config, self.api_audiences))
    }
}

/// Upstream's checks of `--service-account-signing-endpoint`.
fn check_endpoint(endpoint: &str, has_keys: bool) -> Result<(), Error> {
    if has_keys {
        return Err(Error::Usage(
            "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with \
             `--service-account-signing-endpoint` (They are mutually exclusive)"
                .to_owned(),
        ));
    }
    let is_label = |label: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !label.is_empty() && label.bytes().all(fits)
    };
    match endpoint.strip_prefix('@') {
        Some(name) if !name.split('.').all(is_label) => Err(Error::Usage(format!(
            "invalid value {} passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid \
             abstract socket name",
            gotext::quote(endpoint)
        ))),
        _ => Ok(()),
    }
}

fn maximum(text: &str) -> Result<Duration, String> {
    let maximum = gotext::parse_duration(text)?;
    if (SHORTEST_MAXIMUM..=LONGEST_MAXIMUM).contains(&maximum) {
        return Ok(maximum);
    }
    Err("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds".to_owned())
}
