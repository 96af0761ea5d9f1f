//! The flags about an issuer of OpenID Connect.

use std::path::PathBuf;

use clap::Args;

use crate::auth::oidc::{Issuer, Mapping, check_authorities};
use crate::cli::error::Error;

/// Algorithms of signatures that an issuer may use.
const ALGORITHMS: [&str; 9] =
    ["RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "PS256", "PS384", "PS512"];

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authentication flags")]
pub struct OidcArgs {
    /// The URL of the OpenID Connect issuer whose tokens are accepted; requires --oidc-client-id
    #[arg(long, value_name = "URL")]
    oidc_issuer_url: Option<String>,

    /// The client ID that OpenID Connect tokens must be issued for
    #[arg(long, value_name = "ID")]
    oidc_client_id: Option<String>,

    /// The CAs of the OpenID Connect issuer's certificate [default: the host's root CAs]
    #[arg(long, value_name = "FILE")]
    oidc_ca_file: Option<PathBuf>,

    /// The claim to use as the user's name
    #[arg(long, value_name = "CLAIM", default_value = "sub")]
    oidc_username_claim: String,

    /// The prefix of user names; '-' disables prefixing [default: the issuer's URL and #, none for the claim email]
    #[arg(long, value_name = "PREFIX")]
    oidc_username_prefix: Option<String>,

    /// The claim to use as the user's groups
    #[arg(long, value_name = "CLAIM")]
    oidc_groups_claim: Option<String>,

    /// The prefix of group names
    #[arg(long, value_name = "PREFIX")]
    oidc_groups_prefix: Option<String>,

    /// A claim that tokens must contain with this value. Can be given more than once
    #[arg(long, value_name = "CLAIM=VALUE", value_delimiter = ',')]
    oidc_required_claim: Vec<String>,

    /// The allowed signing algorithms of OpenID Connect tokens
    #[arg(long, value_name = "ALGORITHM", value_delimiter = ',', default_value = "RS256", value_parser = clap::builder::PossibleValuesParser::new(ALGORITHMS))]
    oidc_signing_algs: Vec<String>,
}

impl OidcArgs {
    pub fn into_config(self) -> Result<Option<Issuer>, Error> {
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        let usage = |why: &str| Err(Error::Usage(why.to_owned()));
        let others = self.oidc_ca_file.is_some()
            || self.oidc_username_claim != "sub"
            || self.oidc_username_prefix.is_some()
            || self.oidc_groups_claim.is_some()
            || self.oidc_groups_prefix.is_some()
            || !self.oidc_required_claim.is_empty();
        let (url, client) = match (given(self.oidc_issuer_url), given(self.oidc_client_id)) {
            (Some(url), Some(client)) => (url, client),
            (None, None) if !others => return Ok(None),
            _ => {
                return usage(
                    "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set",
                );
            }
        };
        if !url.starts_with("https://") {
            return usage("oidc-issuer-url: URL scheme must be https");
        }
        let prefix = match self.oidc_username_prefix.as_deref() {
            Some("-") => String::new(),
            Some("") | None if self.oidc_username_claim == "email" => String::new(),
            Some("") | None => format!("{url}#"),
            Some(prefix) => prefix.to_owned(),
        };
        let pair = |text: String| {
            let pair = text.split_once('=').map(|(claim, value)| (claim.to_owned(), value.to_owned()));
            pair.ok_or_else(|| Error::Usage(format!("--oidc-required-claim {text:?} must be CLAIM=VALUE")))
        };
        let required = self.oidc_required_claim.into_iter().map(pair).collect::<Result<_, _>>()?;
        let authorities = match &self.oidc_ca_file {
            None => Vec::new(),
            Some(path) => std::fs::read(path).map_err(|error| {
                Error::Usage(format!("--oidc-ca-file: cannot read {}: {error}", path.display()))
            })?,
        };
        if let (Err(why), Some(path)) = (check_authorities(&authorities), &self.oidc_ca_file) {
            return Err(Error::Usage(format!("--oidc-ca-file: {}: {why}", path.display())));
        }
        Ok(Some(Issuer {
            url,
            discovery_url: None,
            authorities,
            audiences: vec![client],
            algorithms: self.oidc_signing_algs,
            network: None,
            mapping: Mapping {
                username_claim: self.oidc_username_claim,
                username_prefix: prefix,
                groups_claim: self.oidc_groups_claim.unwrap_or_default(),
                groups_prefix: self.oidc_groups_prefix.unwrap_or_default(),
                required,
                ..Mapping::default()
            },
        }))
    }
}
