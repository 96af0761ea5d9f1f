//! The authorizers of the configuration, and how they change with its file.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;

use super::config::Authorization;
use super::reloads::{Reloads, Unusable};
use crate::auth::authorization_config::{self, Configured};
use crate::auth::authorizer::{
    AlwaysAllow, AlwaysDeny, Answer, Attributes, Authorizer, Decision, Foresight, Member, Mode, Reason,
    Replaceable, WebhookAuthorizer,
};
use crate::auth::node::NodeAuthorizer;
use crate::auth::rbac::Rbac;
use crate::egress::Network;
use crate::http::past::LOOK_BACK;
use crate::metrics::ReloadedFile;
use crate::runtime::Runtime;

/// Makes authorizers. Those that know objects are made once, and stay.
pub struct Authorizers {
    pub rbac: Option<Rbac>,
    pub node: NodeAuthorizer,
    pub config: Authorization,
    pub runtime: Runtime,
}

/// Denies everybody to look back. Without roles only members of `system:masters` may, whom no authorizer is asked about.
struct NobodyLooksBack;

impl Authorizer for NobodyLooksBack {
    fn decide<'a>(&'a self, attributes: &'a Attributes<'a>) -> Answer<'a> {
        Answer::Now(match attributes.is_resource() && attributes.verb == LOOK_BACK {
            true => Decision::Deny(Reason::Fixed("without RBAC only members of system:masters may")),
            false => Decision::NoOpinion(Reason::None),
        })
    }

    fn foresee(&self, _: &Attributes<'_>) -> Foresight {
        Foresight::NoOpinion
    }
}

/// Authorizers that follow their file.
struct Followed {
    authorizers: Authorizers,
    current: Arc<Replaceable>,
    /// The authorizers that the file named last.
    known: Mutex<Vec<Configured>>,
}

impl Followed {
    fn take(&self, text: &[u8]) -> Result<(), String> {
        let new = authorization_config::parse(text, &self.authorizers.required())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if new != *known {
            known.clone_from(&new);
            self.current.replace(self.authorizers.members(&new)?);
        }
        Ok(())
    }
}

impl Authorizers {
    /// The authorizers of the configuration. With a file, they follow it. Blocks, since it reads kubeconfigs.
    pub fn start(self, reloads: &Reloads, server: Option<&str>) -> Result<Vec<Member>, String> {
        let members = self.members(&self.config.authorizers)?;
        let Some(file) = self.config.file.clone() else { return Ok(members) };
        let current = Arc::new(Replaceable::new(members));
        let runtime = self.runtime.clone();
        let known = Mutex::new(self.config.authorizers.clone());
        let followed = Arc::new(Followed { current: current.clone(), authorizers: self, known });
        let take = move |text: Vec<u8>| -> BoxFuture<'static, Result<(), Unusable>> {
            let followed = followed.clone();
            Box::pin(async move {
                let taken = tokio::task::spawn_blocking(move || followed.take(&text)).await;
                Ok(taken.map_err(|error| error.to_string())??)
            })
        };
        reloads.follow(&file, ReloadedFile::Authorization, server, &runtime, Box::new(take));
        Ok(vec![Member { authorizer: current, name: None, decisions: None }])
    }

    /// The modes that a new file may not leave out.
    fn required(&self) -> Vec<Mode> {
        let modes = self.config.authorizers.iter().map(|one| one.mode);
        modes.filter(|mode| *mode != Mode::Webhook).collect()
    }

    fn members(&self, configured: &[Configured]) -> Result<Vec<Member>, String> {
        let has_roles = configured.iter().any(|one| one.mode == Mode::Rbac);
        let no_look = Member { authorizer: Arc::new(NobodyLooksBack), name: None, decisions: None };
        let first = (!has_roles).then_some(Ok(no_look));
        first.into_iter().chain(configured.iter().map(|one| self.member(one))).collect()
    }

    fn member(&self, one: &Configured) -> Result<Member, String> {
        let Configured { mode, name, webhook } = one;
        let needs_start = matches!(mode, Mode::Abac | Mode::Node | Mode::Rbac);
        if needs_start && !self.config.has(*mode) {
            let mode = mode.as_str();
            return Err(format!(
                "authorizer type {mode} is not allowed if it was not enabled at initial server startup"
            ));
        }
        let authorizer: Arc<dyn Authorizer> = match mode {
            Mode::AlwaysAllow => Arc::new(AlwaysAllow),
            Mode::AlwaysDeny => Arc::new(AlwaysDeny),
            Mode::Abac => Arc::new(self.config.policies.clone()),
            Mode::Node => Arc::new(self.node.clone()),
            Mode::Rbac => Arc::new(self.rbac.clone().ok_or("roles are not served")?),
            Mode::Webhook => {
                let settings = webhook.clone().ok_or("a webhook without settings")?;
                let metrics = self.runtime.metrics.authorization_webhook(name);
                let egress = self.runtime.egresses.to(Network::ControlPlane);
                let webhook = WebhookAuthorizer::new(settings, metrics, egress);
                Arc::new(webhook.map_err(|error| error.to_string())?)
            }
        };
        let decisions = Some(self.runtime.metrics.decisions(mode.as_str(), name));
        Ok(Member { authorizer, name: Some(name.as_str().into()), decisions })
    }
}
