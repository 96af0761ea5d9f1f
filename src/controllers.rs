//! Loops that use the API as any client would. Some are kube-apiserver's: they expire events, release leaked addresses and
//! ports of Services, maintain the Service by which Pods find the servers, and the leases by which servers find each other.
//! The others are kube-controller-manager's ([`Runner::spawn_cluster`]): they empty namespaces and collect garbage, among
//! others.
//!
//! Every replica renews its own lease and watches for expired ones; all other loops run on the replica that leads
//! ([`servers::leader`]).

mod aggregation;
pub mod api_services;
pub mod availability;
pub mod bootstrap;
pub mod certificates;
mod definitions;
mod events;
mod extension_discovery;
pub mod extension_openapi;
pub mod flow_control;
mod garbage;
pub mod migration;
mod names;
mod namespace_contents;
mod namespaces;
mod policy_types;
mod quotas;
mod recorder;
pub mod servers;
mod service_claims;
pub mod token_secrets;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use crate::api::Api;
use crate::api::error::Error;
use crate::api::storage_version::gate::Gate;
use crate::api::storage_version::registration::OwnRegistration;
use crate::auth::trust::Trust;
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::tasks::panic_message;

pub use bootstrap::{create_system_namespaces, create_system_objects};

use self::bootstrap::cluster_authentication;
use self::servers::identity_lease::Claimed;
use self::servers::kubernetes_service::Advertised;
use self::servers::leader::Election;
use self::servers::{
    identity_lease, identity_lease_gc, kubernetes_service, leader, registration, storage_version_gc,
};

/// The pause before a failed controller is started again.
const RESTART: Duration = Duration::from_secs(1);

/// Settings of the controllers.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How long an event is kept after it was last written.
    pub event_ttl: Duration,
    /// Whether the objects of Priority and Fairness are kept.
    pub flow_control: bool,
    /// Whether extension servers are asked how they are.
    pub asks_extensions: bool,
    pub advertised: Advertised,
}

/// Settings of the leases by which servers show that they are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdentityLeases {
    /// How long after its last heartbeat a server still counts as alive.
    pub duration_seconds: u32,
    /// The time between two heartbeats, plus up to 4 %.
    pub renew_interval: Duration,
    /// The time between two checks for expired leases.
    pub gc_period: Duration,
}

/// Starts controllers for a server and stops them with it.
#[derive(Clone)]
pub struct Runner {
    pub api: Arc<Api>,
    pub runtime: Runtime,
}

impl Runner {
    /// Starts kube-controller-manager's controllers, on one replica only, as soon as writes may pass.
    pub fn spawn_cluster(&self, migration: migration::Config, gate: &Gate, election: &Arc<Election>) {
        let leader = || Leader { election: election.clone(), gate: gate.clone() };
        self.run_as(leader(), "namespaces", |api| Box::pin(namespaces::run(api)));
        self.run_as(leader(), "aggregation", |api| Box::pin(aggregation::run(api)));
        self.run_as(leader(), "namespace-contents", |api| Box::pin(namespace_contents::run(api)));
        // Without a key of its own the server makes no tokens for Secrets, as kube-controller-manager makes none then.
        if self.api.tokens.issuer.keys.signer().is_none() {
            self.run_as(leader(), "token-secrets", |api| Box::pin(token_secrets::run(api)));
        }
        if self.api.config.garbage_collection {
            self.run_as(leader(), "garbage-collector", |api| Box::pin(garbage::run(api)));
        }
        self.run_as(leader(), "policy-types", |api| Box::pin(policy_types::run(api)));
        self.run_as(leader(), "migration", move |api| Box::pin(migration::run(api, migration)));
    }

    /// Starts kube-apiserver's controllers that run on one replica only, as soon as writes may pass.
    pub fn spawn(&self, config: Config, gate: &Gate, election: &Arc<Election>) {
        let leader = || Leader { election: election.clone(), gate: gate.clone() };
        self.run_as(leader(), "definitions", |api| Box::pin(definitions::run(api)));
        self.run_as(leader(), "api-services", |api| Box::pin(api_services::run(api)));
        if config.asks_extensions {
            self.run_as(leader(), "availability", |api| Box::pin(availability::run(api)));
        }
        // What is counted with writes is this server's own, whoever sets the limits.
        self.run_as(leader(), "quotas", |api| Box::pin(quotas::run(api)));
        self.run_as(leader(), "service-claims", |api| Box::pin(service_claims::run(api)));
        self.run_as(leader(), "kubernetes-service", move |api| {
            Box::pin(kubernetes_service::run(api, config.advertised))
        });
        if config.flow_control {
            self.run_as(leader(), "flow-control", |api| Box::pin(flow_control::run(api)));
        }
        self.run_as(leader(), "event-expiry", move |api| Box::pin(events::run(api, config.event_ttl)));
    }

    /// Starts the loop that keeps what others need to know about authentication.
    pub fn spawn_cluster_authentication(
        &self,
        trust: watch::Sender<Trust>,
        gate: &Gate,
        election: &Arc<Election>,
    ) {
        let leader = Leader { election: election.clone(), gate: gate.clone() };
        self.run_as(leader, "cluster-authentication", move |api| {
            Box::pin(cluster_authentication::run(api, trust.clone()))
        });
    }

    /// Starts the loop that approves, signs and deletes CertificateSigningRequests.
    pub fn spawn_certificates(&self, config: certificates::Config, gate: &Gate, election: &Arc<Election>) {
        let leader = Leader { election: election.clone(), gate: gate.clone() };
        self.run_as(leader, "certificates", move |api| Box::pin(certificates::run(api, config.clone())));
    }

    /// Starts the heartbeat of this server, and its part in the election.
    pub fn spawn_identity(&self, claimed: Arc<Claimed>, election: &Arc<Election>) {
        if election.is_contested() {
            let (election, holder) = (election.clone(), claimed.holder.clone());
            self.run("election", move |api| Box::pin(leader::run(api, election.clone(), holder.clone())));
        }
        let tasks = self.runtime.tasks.clone();
        self.run("identity-lease", move |api| {
            Box::pin(identity_lease::run(api, claimed.clone(), tasks.clone()))
        });
    }

    /// Starts the loops that fetch the documents of extension servers, on every replica. `all_tried` is called when all were
    /// asked for their resources.
    pub fn spawn_extension_documents(&self, all_tried: impl Fn() + Send + Sync + 'static) {
        let all_tried: Arc<dyn Fn() + Send + Sync> = Arc::new(all_tried);
        self.run("extension-openapi", |api| Box::pin(extension_openapi::run(api)));
        self.run("extension-discovery", move |api| {
            Box::pin(extension_discovery::run(api, all_tried.clone()))
        });
    }

    /// Starts the loop that deletes the leases of dead servers.
    pub fn spawn_identity_gc(&self, period: Duration) {
        self.run("identity-lease-gc", move |api| Box::pin(identity_lease_gc::run(api, period)));
    }

    /// Starts the registration of this server, which opens the gate, and the loop that removes dead servers'
    /// registrations.
    pub fn spawn_registration(
        &self,
        own: Arc<OwnRegistration>,
        holder: String,
        gate: &Gate,
        election: &Arc<Election>,
    ) {
        let leader = Leader { election: election.clone(), gate: gate.clone() };
        let gate = gate.clone();
        self.run("registration", move |api| {
            Box::pin(registration::run(api, own.clone(), holder.clone(), gate.clone()))
        });
        self.run_as(leader, "storage-version-gc", |api| Box::pin(storage_version_gc::run(api)));
    }

    /// Runs a task whenever this replica leads.
    pub fn while_leading(
        &self,
        election: &Arc<Election>,
        name: &'static str,
        task: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) {
        let leader = Leader { election: election.clone(), gate: Gate::open() };
        self.while_leader(leader, name, Box::new(move || task().map(Ok).boxed()));
    }

    /// Runs a controller until the server stops.
    fn run(&self, name: &'static str, start: impl Fn(Arc<Api>) -> Running + Send + Sync + 'static) {
        let (api, metrics) = (self.api.clone(), self.runtime.metrics.clone());
        let start: Start = Box::new(move || start(api.clone()));
        self.runtime.tasks.run(name, async move { supervise(name, &metrics, &*start).await });
    }

    /// Runs a controller while this replica leads.
    fn run_as(
        &self,
        leader: Leader,
        name: &'static str,
        start: impl Fn(Arc<Api>) -> Running + Send + Sync + 'static,
    ) {
        let api = self.api.clone();
        self.while_leader(leader, name, Box::new(move || start(api.clone())));
    }

    fn while_leader(&self, leader: Leader, name: &'static str, start: Start) {
        let metrics = self.runtime.metrics.clone();
        self.runtime.tasks.run(name, async move {
            leader.lead(|| supervise(name, &metrics, &*start)).await;
        });
    }
}

/// A controller at work. It ends with an error if it has to begin again.
type Running = BoxFuture<'static, Result<(), Error>>;
/// Starts a controller. Boxed, so that what surrounds a controller is compiled once and not for each of them.
type Start = Box<dyn Fn() -> Running + Send + Sync>;

/// The conditions under which a replica acts for all.
struct Leader {
    election: Arc<Election>,
    gate: Gate,
}

impl Leader {
    /// Runs what `act` makes whenever this replica starts to lead, until it no longer leads.
    async fn lead<F: Future<Output = ()>>(&self, act: impl Fn() -> F) {
        self.gate.opened().await;
        loop {
            self.election.becomes(true).await;
            tokio::select! {
                () = self.election.becomes(false) => {}
                () = act() => {}
            }
        }
    }
}

/// Runs a controller for ever. A controller reads all of its state again when it starts. So an object on which it
/// panics costs its work, but not the server, whose next leader would panic on the same object.
async fn supervise(name: &'static str, metrics: &Metrics, start: &(dyn Fn() -> Running + Send + Sync)) {
    loop {
        match AssertUnwindSafe(async { start().await }).catch_unwind().await {
            Ok(Ok(())) => tracing::warn!(controller = name, "ended, will be started again"),
            Ok(Err(error)) => tracing::warn!(controller = name, %error, "failed, will be started again"),
            Err(panic) => {
                let message = panic_message(&*panic);
                metrics.controller_panics(name).increment(1);
                tracing::error!(controller = name, message, "panicked, will be started again");
            }
        }
        tokio::time::sleep(RESTART).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_controller_that_panics_is_started_again() {
        let (starts, again) = (Arc::new(AtomicU32::new(0)), Arc::new(tokio::sync::Notify::new()));
        let metrics = Metrics::default();
        let start = || -> Running {
            let (starts, again) = (starts.clone(), again.clone());
            Box::pin(async move {
                assert!(starts.fetch_add(1, Ordering::SeqCst) > 0, "on purpose");
                again.notify_one();
                std::future::pending().await
            })
        };
        let supervised = supervise("panics", &metrics, &start);
        tokio::select! {
            () = supervised => unreachable!("it runs for ever"),
            () = again.notified() => {}
        }
    }
}
