//! The flags about who may do what.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::duration;
use crate::auth::abac::Abac;
use crate::auth::authorization_config::{
    self, AUTHORIZED_TTL, Configured, OnFailure, UNAUTHORIZED_TTL, WebhookSettings,
};
use crate::auth::authorizer::aggregate;
use crate::auth::authorizer::conditions::Conditions;
use crate::auth::authorizer::mode::{self, Mode};
use crate::cli::error::Error;
use crate::server::config::{Authorization, SettingsFile};

const WEBHOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the webhook of the flags.
const WEBHOOK_NAME: &str = "default";

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Authorization flags")]
pub struct AuthorizationArgs {
    /// The authorizers in the order in which they are asked: ABAC, AlwaysAllow, AlwaysDeny, Node, RBAC, Webhook
    /// [default: Node,RBAC; as kube-apiserver: AlwaysAllow]
    #[arg(long, value_name = "MODE", value_delimiter = ',')]
    authorization_mode: Vec<String>,

    /// A file of kind AuthorizationConfiguration with the authorizers, instead of --authorization-mode and the webhook
    /// flags; read again when it changes
    #[arg(long, value_name = "FILE")]
    authorization_config: Option<PathBuf>,

    /// The policy file of mode ABAC, with one JSON object per line
    #[arg(long, value_name = "FILE")]
    authorization_policy_file: Option<PathBuf>,

    /// The kubeconfig of the webhook of mode Webhook
    #[arg(long, value_name = "FILE")]
    authorization_webhook_config_file: Option<PathBuf>,

    /// The API version of the SubjectAccessReviews sent to the webhook [default: v1beta1]
    #[arg(long, value_name = "VERSION", value_parser = clap::builder::PossibleValuesParser::new(["v1", "v1beta1"]))]
    authorization_webhook_version: Option<String>,

    /// The time for which 'authorized' responses of the webhook are cached [default: 5m]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    authorization_webhook_cache_authorized_ttl: Option<Duration>,

    /// The time for which 'unauthorized' responses of the webhook are cached [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    authorization_webhook_cache_unauthorized_ttl: Option<Duration>,
}

impl AuthorizationArgs {
    pub fn into_config(self) -> Result<Authorization, Error> {
        let policies = match &self.authorization_policy_file {
            None => Abac::default(),
            Some(file) => Abac::load(file).map_err(|error| Error::Refused(error.to_string()))?,
        };
        let Some(path) = self.authorization_config.clone() else {
            let authorizers = self
                .of_modes()
                .map_err(|problems| Error::Refused(aggregate(problems).unwrap_or_default()))?;
            return Ok(Authorization { authorizers, policies, file: None });
        };
        if self.has_flags_of_the_file() {
            let why = "--authorization-config can not be specified when --authorization-mode or --authorization-webhook-* flags are defined";
            return Err(Error::Refused(why.to_owned()));
        }
        let (authorizers, text) = authorization_config::load(&path).map_err(Error::Refused)?;
        Ok(Authorization { authorizers, policies, file: Some(SettingsFile { path, text }) })
    }

    /// Whether something is said by a flag that the file would say.
    fn has_flags_of_the_file(&self) -> bool {
        !self.authorization_mode.is_empty()
            || self.authorization_webhook_config_file.is_some()
            || self.authorization_webhook_version.is_some()
            || self.authorization_webhook_cache_authorized_ttl.is_some()
            || self.authorization_webhook_cache_unauthorized_ttl.is_some()
    }

    fn of_modes(self) -> Result<Vec<Configured>, Vec<String>> {
        let names: Vec<&str> = self.authorization_mode.iter().map(String::as_str).collect();
        let (modes, mut problems) = match mode::parse(&names) {
            Ok(modes) if modes.is_empty() => (mode::DEFAULT.into(), Vec::new()),
            Ok(modes) => (modes, Vec::new()),
            Err(problems) => (Vec::new(), problems),
        };
        let has = |mode: &str| names.contains(&mode);
        let mut refuse = |is_wrong: bool, why: &str| is_wrong.then(|| problems.push(why.to_owned()));
        let (policies, webhook) =
            (self.authorization_policy_file.is_some(), self.authorization_webhook_config_file.is_some());
        refuse(has("ABAC") && !policies, "authorization-mode ABAC's authorization policy file not passed");
        refuse(
            has("Webhook") && !webhook,
            "authorization-mode Webhook's authorization config file not passed",
        );
        refuse(!has("ABAC") && policies, "cannot specify --authorization-policy-file without mode ABAC");
        let alone = "cannot specify --authorization-webhook-config-file without mode Webhook";
        refuse(!has("Webhook") && webhook, alone);
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut authorizers: Vec<Configured> = modes.into_iter().map(Configured::from).collect();
        if let Some(configured) = authorizers.iter_mut().find(|one| one.mode == Mode::Webhook) {
            configured.name = WEBHOOK_NAME.to_owned();
            configured.webhook = self.webhook();
        }
        Ok(authorizers)
    }

    fn webhook(self) -> Option<WebhookSettings> {
        let kept = |time: Duration| (!time.is_zero()).then_some(time);
        let authorized = self.authorization_webhook_cache_authorized_ttl.unwrap_or(AUTHORIZED_TTL);
        let unauthorized = self.authorization_webhook_cache_unauthorized_ttl.unwrap_or(UNAUTHORIZED_TTL);
        Some(WebhookSettings {
            kubeconfig: self.authorization_webhook_config_file?,
            timeout: WEBHOOK_TIMEOUT,
            authorized_ttl: kept(authorized),
            unauthorized_ttl: kept(unauthorized),
            version: self.authorization_webhook_version.unwrap_or_else(|| "v1beta1".to_owned()),
            on_failure: OnFailure::NoOpinion,
            conditions: Conditions::default(),
        })
    }
}
