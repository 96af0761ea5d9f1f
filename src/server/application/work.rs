//! Work that goes on beside requests: controllers, the registration among the replicas, upkeep.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::api::Api;
use crate::api::protobuf_messages::drop_unused_messages;
use crate::api::storage_version::gate::Gate;
use crate::auth::authorizer::Authorization;
use crate::auth::signing::{FollowedAuthority, SIGNERS};
use crate::auth::trust::Trust;
use crate::cache::Cache;
use crate::controllers::certificates::{self, Signing};
use crate::controllers::migration::{self, Agreement};
use crate::controllers::servers::identity_lease::Claimant;
use crate::controllers::servers::kubernetes_service::Advertised;
use crate::controllers::servers::leader::Election;
use crate::controllers::{self, IdentityLeases, Runner};
use crate::egress::Network;
use crate::http::door::Door;
use crate::http::health::HealthChecks;
use crate::identity::{Instance, ServerIdentity};
use crate::runtime::Runtime;
use crate::server::config::{Config, Controllers, IdentityConfig};
use crate::server::error::{BuildError, Error};
use crate::server::replica::Replica;
use crate::storage::{self, Backend, Compaction, compact_regularly};

/// How often the keys of continue tokens are read, and a new one is made if that is due.
const TOKEN_KEY_REFRESH: Duration = Duration::from_secs(5);
/// The pause before objects are read again that could not be.
const REREAD_PAUSE: Duration = Duration::from_secs(1);

/// The cluster for which the work is done.
pub struct Work<'a> {
    pub config: &'a Config,
    pub api: &'a Arc<Api>,
    pub advertised: Advertised,
    pub controlling: &'a Runtime,
}

impl Work<'_> {
    /// Starts the controllers and the loops that keep the server's own state. Returns the server's place among the replicas, if
    /// there are some, and the gate that keeps requests out until it is registered.
    pub fn start(
        &self,
        backend: &dyn Backend,
        (trust, identity): (watch::Sender<Trust>, Option<ServerIdentity>),
        door: &Door,
        health: &mut HealthChecks,
    ) -> Result<(Option<Replica>, Gate), BuildError> {
        let Self { config, api, advertised, controlling } = *self;
        let replica = config.identity.as_ref().map(|config| Replica::new(api, config.registration));
        let gate = replica.as_ref().map_or_else(Gate::open, |replica| replica.gate.clone());
        let election = election(replica.as_ref());
        let runner = self.runner();
        let agreement = replica.as_ref().map_or(Agreement::Unknown, Replica::agreement);
        let migration = migration::Config { rate: config.limits.migration_rate, agreement };
        let asks_extensions = !controlling.egresses.to(Network::Cluster).is_closed();
        let settings = controllers::Config {
            event_ttl: config.limits.event_ttl,
            flow_control: door.flow_control.is_some(),
            asks_extensions,
            advertised,
        };
        if config.controllers == Controllers::Run {
            runner.spawn_cluster(migration, &gate, &election);
        }
        if config.controllers != Controllers::Off {
            runner.spawn(settings, &gate, &election);
            if config.cluster_authentication {
                runner.spawn_cluster_authentication(trust, &gate, &election);
            }
            if let Some(certificates) = certificates(config, &door.authorizer)? {
                runner.spawn_certificates(certificates, &gate, &election);
            }
        }
        let asked = health.add_post_start_hook("apiservice-discovery-controller");
        match asks_extensions {
            true => runner.spawn_extension_documents(move || asked.finish()),
            false => asked.finish(),
        }
        if let (Some(replica), Some(identity), Some(IdentityConfig { leases, .. })) =
            (&replica, identity, &config.identity)
        {
            let claimant = claimant(config, *leases, identity, backend, &advertised)?;
            replica.spawn(&runner, claimant, health);
        }
        if api.encryption.is_on() {
            let (cache, encryption) = (api.cache.clone(), api.encryption.clone());
            let following = encryption.follow(async move |refused| reread(&cache, refused).await);
            controlling.tasks.run("encryption", following);
        }
        controlling.tasks.run("protobuf-messages", drop_unused_messages(api.cluster.clone()));
        controlling.tasks.run("token-keys", refresh_token_keys(api.clone()));
        Ok((replica, gate))
    }

    /// Gives up history that is older than the configuration keeps, while this server leads.
    pub fn compact(&self, backend: &Arc<dyn Backend>, compaction: Compaction, replica: Option<&Replica>) {
        let (backend, metrics) = (backend.clone(), self.api.runtime.metrics.clone());
        self.runner().while_leading(&election(replica), "compactor", move || {
            Box::pin(compact_regularly(backend.clone(), compaction.clone(), metrics.clone()))
        });
    }

    fn runner(&self) -> Runner {
        Runner { api: self.api.clone(), runtime: self.controlling.clone() }
    }
}

/// A server without replicas leads alone.
fn election(replica: Option<&Replica>) -> Arc<Election> {
    replica.map_or_else(|| Arc::new(Election::alone()), |replica| replica.election.clone())
}

/// The settings of the controller of CertificateSigningRequests; `None` if all of it is off.
fn certificates(
    config: &Config,
    authorizer: &Authorization,
) -> Result<Option<certificates::Config>, BuildError> {
    let wanted = &config.certificate_controllers;
    if !wanted.approving && !wanted.signing && !wanted.cleaning {
        return Ok(None);
    }
    let signing = match wanted.signing {
        true => Some(Signing { authorities: signing_authorities(config)?, longest: wanted.longest }),
        false => None,
    };
    Ok(Some(certificates::Config {
        approving: wanted.approving.then(|| authorizer.clone()),
        signing,
        cleaning: wanted.cleaning,
    }))
}

/// The CAs by the names of the signers that they sign for.
fn signing_authorities(
    config: &Config,
) -> Result<BTreeMap<&'static str, Arc<FollowedAuthority>>, BuildError> {
    let wanted = &config.certificate_controllers;
    if !wanted.authorities.is_empty() {
        let load = |(signer, (certificate, key)): (&&'static str, &(PathBuf, PathBuf))| {
            Ok::<_, BuildError>((*signer, Arc::new(FollowedAuthority::load(certificate, key)?)))
        };
        return wanted.authorities.iter().map(load).collect();
    }
    let authority = match (&wanted.authority, &config.data_dir) {
        (Some((certificate, key)), _) => FollowedAuthority::load(certificate, key)?,
        (None, Some(dir)) => {
            let pki = dir.join("pki");
            FollowedAuthority::load(&pki.join("ca.crt"), &pki.join("ca.key"))?
        }
        (None, None) => return Err("there is no CA that could sign certificates".into()),
    };
    let authority = Arc::new(authority);
    Ok(SIGNERS.into_iter().map(|signer| (signer, authority.clone())).collect())
}

/// The server's claim to a name among the replicas. If there cannot be others, the name is not contested.
fn claimant(
    config: &Config,
    leases: IdentityLeases,
    identity: ServerIdentity,
    backend: &dyn Backend,
    advertised: &Advertised,
) -> Result<Claimant, BuildError> {
    let port = config.https.as_ref().map_or(0, |https| https.address.port());
    let take = || -> Result<_, BuildError> {
        let directory = config.data_dir.as_ref().ok_or(Error::NoDataDir)?.join("servers");
        let taken = Instance::take(&directory, identity.hostname(), port);
        let place = directory.display();
        Ok(Arc::new(taken.map_err(|error| format!("cannot keep this server's id in {place}: {error}"))?))
    };
    let instance = backend.shared().then(take).transpose()?;
    Ok(Claimant { identity, port: advertised.port, instance, address: advertised.address, config: leases })
}

async fn refresh_token_keys(api: Arc<Api>) {
    loop {
        tokio::time::sleep(TOKEN_KEY_REFRESH).await;
        if let Err(error) = api.refresh_token_keys().await {
            tracing::warn!(%error, "cannot read the keys of continue tokens, keeping the old ones");
        }
    }
}

/// Reads resources again of which values could not be opened before.
async fn reread(cache: &Cache, refused: Vec<storage::ResourceId>) {
    while let Err(error) = cache.reread(&refused).await {
        tracing::error!(%error, "cannot read again what could not be decrypted, will try again");
        tokio::time::sleep(REREAD_PAUSE).await;
    }
}
