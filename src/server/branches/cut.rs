//! What a fork leaves out, so that nothing leaves it. Connections that are forgotten here fail all the same: a fork has no way
//! to any network ([`Egresses::closed`](crate::egress::Egresses::closed)).

use crate::api::kubelets;
use crate::audit;
use crate::auth::authorization_config::{Configured, OnFailure};
use crate::auth::authorizer::mode::Mode;
use crate::controllers::servers::kubernetes_service::Endpoints;
use crate::server::config::{
    Aggregation, ApiLimits, Authentication, Authorization, CertificateControllers, Config, ServiceAccounts,
};
use crate::server::datastore::Datastore;

/// The plugins of admission that ask somebody else.
const ASKING: [&str; 3] = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook", "ImagePolicyWebhook"];

/// The rules, for people.
pub const RULES: [&str; 8] = [
    "admission webhooks: not called",
    "conversion webhooks: not called; an object in another version than the stored one cannot be read or written",
    "extension servers: not called; requests for them are answered with 503",
    "kubelets, and proxies to Pods, Services and Nodes: not called; requests for them fail",
    "webhooks of authorization: not called; each counts as failed, by its failure policy",
    "certificates: none is signed",
    "audit and traces: nothing is recorded",
    "encryption at rest: off, since nothing is written to a disk",
];

/// The settings of a fork of a server with these.
pub fn config(parent: &Config) -> Config {
    let defaults = Config::default();
    Config {
        datastore: Datastore::Memory,
        schema: None,
        data_dir: None,
        https: None,
        endpoints: Endpoints::Others,
        authentication: Authentication {
            service_accounts: ServiceAccounts {
                signing_key_file: None,
                signing_endpoint: None,
                key_files: Vec::new(),
                ..parent.authentication.service_accounts.clone()
            },
            // The parent is asked about all other credentials.
            bootstrap_tokens: false,
            oidc: Vec::new(),
            file: None,
            webhook: None,
            ..parent.authentication.clone()
        },
        authorization: authorization(&parent.authorization),
        certificate_controllers: CertificateControllers::default(),
        admission: parent.admission.clone().without(&ASKING),
        cluster_authentication: false,
        encryption: None,
        kubelets: kubelets::Config::default(),
        aggregation: Aggregation::default(),
        limits: ApiLimits { priority_and_fairness: false, goaway_chance: 0.0, ..parent.limits },
        identity: None,
        audit: audit::config::Config::default(),
        egress: None,
        crds: Vec::new(),
        traces: None,
        shutdown_delay: defaults.shutdown_delay,
        ..parent.clone()
    }
}

fn authorization(parent: &Authorization) -> Authorization {
    let authorizers = parent.authorizers.iter().filter_map(|one| match &one.webhook {
        None => Some(one.clone()),
        Some(webhook) if webhook.on_failure == OnFailure::Deny => Some(Configured::from(Mode::AlwaysDeny)),
        Some(_) => None,
    });
    Authorization { authorizers: authorizers.collect(), policies: parent.policies.clone(), file: None }
}
