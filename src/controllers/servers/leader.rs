//! Leader election: the replica that holds the lease runs the controllers.
//!
//! A holder is dead, as in client-go, when its lease has not changed for its duration by the observer's own clock, so
//! differing clocks do no harm. Two replicas may lead for a moment, so controllers are idempotent and guarded by
//! preconditions.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metrics::Gauge;
use tokio::sync::watch;
use tokio::time::Instant;

use super::identity_lease_gc::{NAMESPACE, leases};
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, metadata_mut};
use crate::codec::object::Object;
use crate::fields;
use crate::metrics::Metrics;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const LEASE: &str = "rowplane-controllers";
/// A holder that has not renewed its lease for this long is dead.
const DURATION: Duration = Duration::from_secs(5);
/// A holder that could not renew its lease for this long stops leading, before another replica starts.
const DEADLINE: Duration = Duration::from_secs(4);
const RENEWAL: Duration = Duration::from_secs(2);
/// The time between two checks of another replica's lease. A change of the lease is noticed at once.
const RETRY: Duration = Duration::from_secs(1);

/// Whether this replica leads, and the means to change that.
pub struct Election {
    /// Unique among all processes. Unset until this server has a name.
    holder: OnceLock<String>,
    contested: bool,
    leading: watch::Sender<bool>,
    /// The gauge is 1 while this replica leads.
    status: Gauge,
}

impl Election {
    /// An election among replicas, in which [`run`] takes part.
    pub fn contested(metrics: &Metrics) -> Self {
        let (leading, status) = (watch::Sender::new(false), metrics.leader_status(LEASE));
        Self { holder: OnceLock::new(), contested: true, leading, status }
    }

    /// For a single server, which always leads.
    pub fn alone() -> Self {
        let (leading, status) = (watch::Sender::new(true), Gauge::noop());
        Self { holder: OnceLock::new(), contested: false, leading, status }
    }

    pub fn leads(&self) -> bool {
        *self.leading.borrow()
    }

    /// Returns once this replica leads, or if `leader` is false, once it does not.
    pub async fn becomes(&self, leader: bool) {
        // `self` holds the sender, so waiting cannot fail.
        let _ = self.leading.subscribe().wait_for(|leads| *leads == leader).await;
    }

    /// Whether other replicas can exist.
    pub fn is_contested(&self) -> bool {
        self.contested
    }

    fn holder(&self) -> &str {
        self.holder.get().map_or("", String::as_str)
    }

    fn set(&self, leads: bool) {
        let changed = self.leading.send_if_modified(|leading| std::mem::replace(leading, leads) != leads);
        if changed {
            tracing::info!(leads, holder = self.holder(), "leadership of the controllers");
        }
        self.status.set(f64::from(u8::from(leads)));
    }
}

/// Takes part in the election as `holder`, which must be unique among all processes.
pub async fn run(api: Arc<Api>, election: Arc<Election>, holder: String) -> Result<(), Error> {
    let Some(resource) = leases(&api) else { return Ok(()) };
    election.holder.get_or_init(|| holder);
    // The lease may have passed to another replica since the earlier run ended.
    election.set(false);
    let mut candidate = Candidate { api: &api, resource, holder: election.holder(), seen: None };
    let mut watcher = api.cache.watch(resource.id, api.cache.any().revision);
    let mut renewed = Instant::now();
    loop {
        let began = Instant::now();
        // If a write hangs, this replica cannot know whether it leads, so it does not.
        let attempt = tokio::time::timeout(DEADLINE / 2, candidate.take_or_renew()).await;
        match attempt.unwrap_or_else(|_| Err(Error::deadline())) {
            Ok(true) => {
                // Others may have seen the renewal as soon as it was sent, and count from then on.
                renewed = began;
                election.set(true);
            }
            Ok(false) => election.set(false),
            Err(error) => {
                tracing::debug!(%error, "cannot renew the lease of the controllers");
                if renewed.elapsed() + RETRY > DEADLINE {
                    election.set(false);
                }
            }
        }
        if election.leads() {
            let pause = if renewed.elapsed() < RETRY { RENEWAL } else { RETRY };
            tokio::time::sleep(pause).await;
            continue;
        }
        while watcher.next().await.is_ok_and(|events| !events.is_empty()) {}
        let _ = tokio::time::timeout(RETRY, watcher.changed()).await;
    }
}

/// Gives the lease up, so that another replica need not wait until it expires.
pub async fn release(api: &Api, election: &Election) -> Result<(), Error> {
    let Some(resource) = leases(api).filter(|_| election.leads()) else { return Ok(()) };
    election.set(false);
    let candidate = Candidate { api, resource, holder: election.holder(), seen: None };
    let Some(found) = candidate.read().await? else { return Ok(()) };
    let mut lease = resource.decode(&found)?;
    if text(&lease, "holderIdentity") != election.holder() {
        return Ok(());
    }
    lease["spec"]["holderIdentity"] = "".into();
    candidate.update(lease).await.map(drop)
}

struct Candidate<'a> {
    api: &'a Api,
    resource: &'a Arc<Resource>,
    holder: &'a str,
    /// The revision of another replica's lease, and since when it is unchanged.
    seen: Option<(Revision, Instant)>,
}

impl Candidate<'_> {
    /// Takes or renews the lease. Returns whether this replica holds it.
    async fn take_or_renew(&mut self) -> Result<bool, Error> {
        let taken = match self.read().await? {
            None => self.create().await,
            Some(found) => {
                let told = |error: &Error| self.api.unreadable.tell("election", &found, error);
                let lease = self.resource.decode(&found).inspect_err(told)?;
                let holder = text(&lease, "holderIdentity");
                if holder != self.holder && !holder.is_empty() && !self.is_dead(&found, &lease) {
                    return Ok(false);
                }
                self.update(self.mine(lease)).await
            }
        };
        match taken {
            Ok(()) => Ok(true),
            // Another replica was faster.
            Err(Error::Conflict { .. } | Error::AlreadyExists { .. } | Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn read(&self) -> Result<Option<Arc<Object>>, Error> {
        let state = self.api.cache.fresh().await?;
        Ok(state.get(self.resource.id, NAMESPACE, LEASE))
    }

    fn is_dead(&mut self, found: &Object, lease: &ObjectMap) -> bool {
        let promised = fields::at(lease, &["spec", "leaseDurationSeconds"]).and_then(Value::as_u64);
        let duration = promised.map_or(DURATION, Duration::from_secs);
        match self.seen {
            Some((revision, since)) if revision == found.revision() => since.elapsed() >= duration,
            _ => {
                self.seen = Some((found.revision(), Instant::now()));
                false
            }
        }
    }

    /// The lease with this replica as its holder.
    fn mine(&self, mut lease: ObjectMap) -> ObjectMap {
        let now = self.api.now_micro();
        let new = text(&lease, "holderIdentity") != self.holder;
        let spec = lease.entry("spec").or_insert_with(|| json!({}));
        if new {
            let transitions = spec["leaseTransitions"].as_u64().map_or(0, |before| before + 1);
            spec["holderIdentity"] = self.holder.into();
            spec["acquireTime"] = now.as_str().into();
            spec["leaseTransitions"] = transitions.into();
        }
        spec["leaseDurationSeconds"] = DURATION.as_secs().into();
        spec["renewTime"] = now.into();
        lease
    }

    async fn create(&self) -> Result<(), Error> {
        let mut lease = self.mine(ObjectMap::new());
        metadata_mut(&mut lease).insert("name", LEASE.into());
        let target = Target { resource: self.resource, namespace: NAMESPACE, name: "" };
        self.api.create(&Request::own(Verb::Create, target), Body::Object(&lease)).await.map(drop)
    }

    async fn update(&self, lease: ObjectMap) -> Result<(), Error> {
        let target = Target { resource: self.resource, namespace: NAMESPACE, name: LEASE };
        self.api.update(&Request::own(Verb::Update, target), Body::Object(&lease)).await.map(drop)
    }
}

fn text<'a>(lease: &'a ObjectMap, field: &str) -> &'a str {
    fields::text(lease, &["spec", field])
}
