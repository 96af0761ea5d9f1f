//! Access to the cluster: who somebody is, what he may do, and his share of the server.

use std::sync::Arc;

use crate::api::Api;
use crate::auth::authorizer::Mode;
use crate::auth::bootstrap_tokens::BootstrapTokens;
use crate::auth::node::NodeAuthorizer;
use crate::auth::service_accounts::{Resources, Verifier};
use crate::auth::token_webhook::{self, TokenWebhook};
use crate::cache::Range;
use crate::controllers::{self, flow_control};
use crate::egress::Network;
use crate::flow_control::Sizes;
use crate::http::door::Door;
use crate::runtime::Runtime;
use crate::server::authorization::Authorizers;
use crate::server::config::Config;
use crate::server::error::BuildError;
use crate::server::reloads::Reloads;
use crate::server::{authentication, manifests};
use crate::webhook::Webhook;

/// The door, and the settings of what it has to know of a cluster before it opens.
pub struct Access<'a> {
    pub config: &'a Config,
    pub door: &'a Arc<Door>,
    pub reloads: &'a Reloads,
    /// The id of this server among the replicas.
    pub server: Option<&'a str>,
}

impl Access<'_> {
    /// Installs the authorizers, and follows what they decide by.
    pub fn authorize(&self, api: &Arc<Api>, controlling: &Runtime) -> Result<(), BuildError> {
        let Self { config, door, reloads, server } = *self;
        let node = NodeAuthorizer::new(api.cache.clone(), |resource| Some(api.resources.get(resource)?.id));
        let authorizers = Authorizers {
            rbac: api.rbac.clone(),
            node: node.clone(),
            config: config.authorization.clone(),
            runtime: controlling.clone(),
        };
        door.authorizer.install(authorizers.start(reloads, server)?, &api.cache);
        manifests::follow(api, reloads, server, controlling);
        if config.authorization.has(Mode::Node) {
            controlling.tasks.run("node-authorizer", node.follow());
        }
        if let Some(rbac) = api.rbac.clone() {
            controlling.tasks.run("rbac", rbac.follow());
        }
        Ok(())
    }

    /// Takes over the levels of priority and fairness that are stored.
    pub async fn share_fairly(&self, api: &Arc<Api>, controlling: &Runtime) -> Result<(), BuildError> {
        if let Some(control) = &self.door.flow_control {
            flow_control::ensure(api).await?;
            flow_control::adopt(api, control);
            control.estimate_by(sizes(api));
            controlling.tasks.run("flow-control-levels", flow_control::follow(api.clone(), control.clone()));
        }
        Ok(())
    }

    /// Installs the authenticators of tokens.
    pub fn authenticate(
        &self,
        api: &Arc<Api>,
        objects: Resources,
        controlling: &Runtime,
    ) -> Result<(), BuildError> {
        let Self { config, door, reloads, server } = *self;
        let (issuer, runtime) = (api.tokens.issuer.clone(), &api.runtime);
        let (verifier, uses) = Verifier::new(issuer, api.cache.clone(), objects, runtime);
        door.authenticator.know_service_accounts(verifier);
        door.revocations.know(&api.cache, api.rbac.as_ref(), objects);
        controlling.tasks.run("revocations", door.revocations.clone().follow());
        controlling.tasks.run("token-uses", controllers::token_secrets::note_uses(api.clone(), uses));
        if config.authentication.bootstrap_tokens {
            let tokens = BootstrapTokens::new(api.cache.clone(), objects.secrets, runtime.clock.clone());
            door.authenticator.know_bootstrap_tokens(tokens);
        }
        if let Some(webhook) = &config.authentication.webhook {
            let hook = Webhook::of_kubeconfig(&webhook.config_file, token_webhook::TIMEOUT)?;
            let hook = hook.through(controlling.egresses.to(Network::ControlPlane));
            let webhook = TokenWebhook::new(hook, webhook.version.clone(), webhook.cache_ttl);
            door.authenticator.know_webhook(webhook);
        }
        authentication::know_issuers(
            &config.authentication,
            &door.authenticator,
            reloads,
            server,
            controlling,
        )?;
        Ok(())
    }
}

/// How many objects a resource has, and the mean size of some of them.
fn sizes(api: &Arc<Api>) -> Box<Sizes> {
    const SAMPLE: usize = 8;
    let api = Arc::downgrade(api);
    Box::new(move |name| {
        let api = api.upgrade()?;
        let served = api.catalog.served();
        let objects = api.cache.any().objects(served.get(name)?.id);
        let sampled: Vec<usize> =
            objects.range(&Range::of(None)).take(SAMPLE).map(|object| object.size()).collect();
        let mean = sampled.iter().sum::<usize>().checked_div(sampled.len()).unwrap_or_default();
        Some((objects.len(), mean))
    })
}
