//! This server among the replicas: its name and lease, its registration, its part in the election, and how it leaves.

use std::sync::{Arc, OnceLock};

use super::config::Registration;
use crate::api::storage_version::gate::Gate;
use crate::api::storage_version::registration::OwnRegistration;
use crate::api::{Api, Target};
use crate::controllers::Runner;
use crate::controllers::migration::Agreement;
use crate::controllers::servers::identity_lease::{Claimant, Claimed, claim};
use crate::controllers::servers::identity_lease_gc;
use crate::controllers::servers::leader::{self, Election};
use crate::http::health::HealthChecks;

#[derive(Clone)]
pub struct Replica {
    registration: Registration,
    /// The registration of this server, and the holder's id in its lease. Set once the server has a name; never set if it
    /// does not register.
    own: Arc<OnceLock<(Arc<OwnRegistration>, String)>>,
    pub gate: Gate,
    pub election: Arc<Election>,
}

impl Replica {
    pub fn new(api: &Api, registration: Registration) -> Self {
        let election = match api.store.backend().shared() {
            true => Election::contested(&api.runtime.metrics),
            false => Election::alone(),
        };
        let gate = match registration {
            Registration::On => Gate::closed(),
            Registration::Off => Gate::open(),
        };
        Self { registration, own: Arc::default(), gate, election: Arc::new(election) }
    }

    /// Whether servers publish how they encode.
    pub fn agreement(&self) -> Agreement {
        match self.registration {
            Registration::On => Agreement::Registered,
            Registration::Off => Agreement::Unknown,
        }
    }

    /// Starts the tasks by which this server takes part among the replicas. Its post-start hooks end at the same points
    /// as upstream's.
    pub fn spawn(&self, runner: &Runner, claimant: Claimant, health: &mut HealthChecks) {
        // Upstream's hooks are finished once their controllers run, even if the first heartbeat fails.
        for controller in ["controller", "garbage-collector"] {
            let name = format!("start-kube-apiserver-identity-lease-{controller}");
            health.add_post_start_hook(&name).finish();
        }
        runner.spawn_identity_gc(claimant.config.gc_period);
        let hook = match self.registration {
            Registration::On => {
                Some(health.add_post_start_hook("built-in-resources-storage-version-updater"))
            }
            Registration::Off => None,
        };
        let (this, runner, tasks) = (self.clone(), runner.clone(), runner.runtime.tasks.clone());
        tasks.clone().spawn("identity", async move {
            let joining = async {
                if let Some(claimed) =
                    claim(&runner.api, claimant, runner.runtime.random.uuid(), &this.gate).await
                {
                    this.join(&runner, Arc::new(claimed));
                }
                this.gate.opened().await;
                if let Some(hook) = hook {
                    hook.finish();
                }
            };
            tokio::select! {
                () = joining => {}
                () = tasks.stopping() => {}
            }
        });
    }

    /// Starts everything that needs the server's name. From then on, the server writes nothing before it has
    /// registered.
    fn join(&self, runner: &Runner, claimed: Arc<Claimed>) {
        let (server, holder) = (claimed.identity.id().to_owned(), claimed.holder.clone());
        if self.registration == Registration::On {
            let incarnation = runner.runtime.random.uuid().to_string();
            let own = Arc::new(OwnRegistration::new(&server, &incarnation));
            runner.api.store.set_fence(runner.api.fence(&own));
            let (own, holder) = self.own.get_or_init(|| (own, holder));
            runner.spawn_registration(own.clone(), holder.clone(), &self.gate, &self.election);
        }
        runner.spawn_identity(claimed, &self.election);
    }

    /// Gives up leadership, lease and registration at once, so that the other replicas need not wait. If something
    /// fails, they clean it up later.
    pub async fn leave(&self, api: &Api) {
        if let Err(error) = leader::release(api, &self.election).await {
            tracing::warn!(%error, "cannot give up the lease of the controllers");
        }
        let Some((own, holder)) = self.own.get() else { return };
        // A server that has lost its name removes nothing: the lease belongs to another server now.
        match api.cache.fresh().await {
            Ok(state) if identity_lease_gc::is_held(api, &state, own.server(), holder) => {}
            _ => return,
        }
        let lease = identity_lease_gc::leases(api).map(|resource| Target {
            resource,
            namespace: identity_lease_gc::NAMESPACE,
            name: own.server(),
        });
        if let Err(error) = api.withdraw(lease, |_, _, server| server == own.server()).await {
            tracing::warn!(%error, "cannot withdraw the storage versions of this server");
        }
    }
}
