//! This server among the replicas: its lease, its registration, its part in the election, and how it leaves.

use std::net::IpAddr;
use std::sync::Arc;

use uuid::Uuid;

use super::config::{IdentityConfig, Registration};
use crate::api::gate::Gate;
use crate::api::registration::OwnRegistration;
use crate::api::{Api, Target};
use crate::controllers::leader::{self, Election};
use crate::controllers::migration::Agreement;
use crate::controllers::{IdentityLeases, Runner, identity_lease_gc};
use crate::http::health::HealthChecks;
use crate::identity::ServerIdentity;

pub struct Replica {
    identity: ServerIdentity,
    leases: IdentityLeases,
    /// `None` if this server does not register.
    own: Option<Arc<OwnRegistration>>,
    pub gate: Gate,
    pub election: Arc<Election>,
}

impl Replica {
    /// From now on this server writes nothing before it has registered.
    pub fn new(api: &Api, identity: ServerIdentity, config: IdentityConfig) -> Self {
        let incarnation = Uuid::new_v4().to_string();
        let election = match api.store.backend().shared() {
            true => Election::new(format!("{identity}_{incarnation}")),
            false => Election::alone(),
        };
        let own = match config.registration {
            Registration::On => Some(Arc::new(api.registration(identity.id(), &incarnation))),
            Registration::Off => None,
        };
        if let Some(own) = &own {
            api.store.set_fence(api.fence(own));
        }
        let gate = if own.is_some() { Gate::closed() } else { Gate::open() };
        Self { identity, leases: config.leases, own, gate, election: Arc::new(election) }
    }

    /// Whether servers say how they encode.
    pub fn agreement(&self) -> Agreement {
        if self.own.is_some() { Agreement::Registered } else { Agreement::Unknown }
    }

    /// Starts what keeps this server among the others; its hooks are done as upstream's are.
    pub fn spawn(&self, runner: &Runner<'_>, address: Option<IpAddr>, health: &mut HealthChecks) {
        // These two are done once their controllers run, whatever becomes of the first heartbeat.
        for controller in ["controller", "garbage-collector"] {
            let name = format!("start-kube-apiserver-identity-lease-{controller}");
            health.add_post_start_hook(&name).finish();
        }
        runner.spawn_identity(self.identity.clone(), address, self.leases, &self.gate);
        let Some(own) = &self.own else { return };
        runner.spawn_registration(own.clone(), &self.gate, &self.election);
        let (gate, hook) =
            (self.gate.clone(), health.add_post_start_hook("built-in-resources-storage-version-updater"));
        let stopping = runner.tasks.clone();
        runner.tasks.spawn("registration-hook", async move {
            tokio::select! {
                () = gate.opened() => hook.finish(),
                () = stopping.stopping() => {}
            }
        });
    }

    /// Makes room at once for those who stay. What fails here is collected by them later.
    pub async fn leave(&self, api: &Api) {
        if let Err(error) = leader::release(api, &self.election).await {
            tracing::warn!(%error, "cannot give up the lease of the controllers");
        }
        let Some(own) = &self.own else { return };
        let lease = identity_lease_gc::leases(api).map(|resource| Target {
            resource,
            namespace: identity_lease_gc::NAMESPACE,
            name: own.server(),
        });
        if let Err(error) = api.withdraw(lease, |_, server| server == own.server()).await {
            tracing::warn!(%error, "cannot withdraw the storage versions of this server");
        }
    }
}
