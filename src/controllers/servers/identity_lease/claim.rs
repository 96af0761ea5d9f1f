//! Chooses this server's name among the replicas: its host's name, unless another living server has it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{INSTANCE, is_lost_race};
use crate::api::error::Error;
use crate::api::meta;
use crate::api::resource::Resource;
use crate::api::storage_version::gate::Gate;
use crate::api::{Api, ObjectMap, fields, metadata};
use crate::controllers::IdentityLeases;
use crate::controllers::servers::identity_lease_gc::{
    COMPONENT, IDENTITY_LABEL, leases, promised, renewed_at,
};
use crate::identity::{Instance, ServerIdentity};

/// How often a write of a lease is tried while others write it, too.
const TRIES: usize = 5;
/// The pauses between attempts after an error; the same as upstream's.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(7);
/// A lease that was renewed within this many intervals belongs to a living server.
const RECENT_INTERVALS: u32 = 3;
/// A lease that was not renewed recently is watched for this many intervals before it counts as abandoned.
const WATCHED_INTERVALS: f64 = 1.5;

/// A server that claims a name, with all that it needs for this.
#[derive(Clone, Debug)]
pub struct Claimant {
    /// The name that derives from the host's name.
    pub identity: ServerIdentity,
    /// Helps people to tell several servers on one host apart.
    pub port: u16,
    /// `None` if the server has the database, and so all names in it, for itself.
    pub instance: Option<Arc<Instance>>,
    /// The address at which others reach the server.
    pub address: Option<IpAddr>,
    pub config: IdentityLeases,
}

/// The name that this server has, and the lease that reserves it.
pub struct Claimed {
    pub identity: ServerIdentity,
    /// Unique among all processes.
    pub holder: String,
    pub(super) resource: Arc<Resource>,
    pub(super) instance: Option<Arc<Instance>>,
    pub(super) address: Option<IpAddr>,
    pub(super) config: IdentityLeases,
    /// When the lease was claimed.
    pub(super) since: Timestamp,
    /// The lease as it was written then.
    pub(super) lease: ObjectMap,
}

/// Whether a lease can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lease {
    /// It belongs to no server any more, or to an earlier run of this one.
    Free,
    /// It belongs to another living server.
    Taken,
    /// It belongs to another server that may be dead: by the two hosts' clocks it has not been renewed for a while, or
    /// has even expired. A wrong clock can make a living server look so, too, and therefore the lease is watched before
    /// it is taken.
    Silent,
}

/// Claims the first name that is free, however long it takes to write the lease. `None` if the server has no leases.
pub async fn claim(api: &Api, claimant: Claimant, incarnation: Uuid, gate: &Gate) -> Option<Claimed> {
    let resource = leases(api)?;
    let mut backoff = FIRST_BACKOFF;
    loop {
        for (n, identity) in claimant.names().into_iter().enumerate() {
            match claimant.take(api, resource, identity.clone(), incarnation).await {
                Ok(Some(claimed)) => {
                    claimant.settled(&claimed, n);
                    return Some(claimed);
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, name = identity.id(), "cannot take the lease of this server");
                    gate.failed(None);
                    break;
                }
            }
        }
        tokio::time::sleep(backoff).await;
        backoff = (backoff * 2).min(LONGEST_BACKOFF);
    }
}

impl Claimant {
    /// Possible names, from the best one to one that no other server can have.
    fn names(&self) -> Vec<ServerIdentity> {
        let host = &self.identity;
        let Some(instance) = &self.instance else { return vec![host.clone()] };
        let last = instance.last_name().map(|name| ServerIdentity::of_host(&name));
        let port = self.port.to_string();
        let id = instance.id();
        let own = format!("{port}-{}", id.get(..8).unwrap_or(&id));
        let mut names: Vec<_> =
            last.into_iter().chain([host.clone(), host.with_suffix(&port), host.with_suffix(&own)]).collect();
        let mut seen = Vec::new();
        names.retain(|name| {
            !seen.contains(name) && {
                seen.push(name.clone());
                true
            }
        });
        names
    }

    /// Claims a name, unless another living server has it.
    async fn take(
        &self,
        api: &Api,
        resource: &Arc<Resource>,
        identity: ServerIdentity,
        incarnation: Uuid,
    ) -> Result<Option<Claimed>, Error> {
        let mut claimed = Claimed {
            holder: format!("{identity}_{incarnation}"),
            identity,
            resource: resource.clone(),
            instance: self.instance.clone(),
            address: self.address,
            config: self.config,
            since: api.runtime.clock.timestamp(),
            lease: ObjectMap::new(),
        };
        let mut last = None;
        for _ in 0..TRIES {
            let mut found = claimed.read(api).await?;
            match self.judge(found.as_ref(), api.runtime.clock.timestamp()) {
                Lease::Free => {}
                Lease::Taken => return Ok(None),
                Lease::Silent => {
                    let before = revision(found.as_ref()).map(str::to_owned);
                    tracing::info!(
                        name = claimed.identity.hostname(),
                        "waiting whether the server of this name lives"
                    );
                    tokio::time::sleep(self.config.renew_interval.mul_f64(WATCHED_INTERVALS)).await;
                    found = claimed.read(api).await?;
                    if revision(found.as_ref()) != before.as_deref() {
                        continue;
                    }
                }
            }
            match claimed.write(api, found).await {
                Ok(lease) => {
                    claimed.lease = lease;
                    return Ok(Some(claimed));
                }
                Err(error) if is_lost_race(&error) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        // Others write this lease constantly, so they are alive.
        last.map_or(Ok(None), Err)
    }

    fn judge(&self, lease: Option<&ObjectMap>, now: Timestamp) -> Lease {
        let (Some(lease), Some(instance)) = (lease, &self.instance) else { return Lease::Free };
        let of_a_server = fields::text(lease, &["metadata", "labels", IDENTITY_LABEL]) == COMPONENT;
        let own = fields::text(lease, &["metadata", "annotations", INSTANCE]) == instance.id();
        if !of_a_server || own || promised(lease).is_none() {
            return Lease::Free;
        }
        let recently = SignedDuration::try_from(self.config.renew_interval * RECENT_INTERVALS);
        let recent = renewed_at(lease)
            .zip(recently.ok())
            .is_none_or(|(renewed, recently)| renewed.duration_until(now) < recently);
        if recent { Lease::Taken } else { Lease::Silent }
    }

    /// Remembers the name for the next start, and logs why it is not the host's.
    fn settled(&self, claimed: &Claimed, tried: usize) {
        let name = claimed.identity.hostname();
        if let Some(instance) = &self.instance
            && let Err(error) = instance.remember(name)
        {
            tracing::warn!(%error, "cannot keep the name of this server for its next start");
        }
        if tried > 0 && claimed.identity != self.identity {
            let host = self.identity.hostname();
            tracing::warn!(
                id = claimed.identity.id(),
                "another server on this database has the name {host:?}; this one is called {name:?}"
            );
        }
    }
}

fn revision(lease: Option<&ObjectMap>) -> Option<&str> {
    lease.and_then(metadata).map(|metadata| meta::text(metadata, "resourceVersion"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Value, json};

    fn claimant(directory: &std::path::Path) -> Claimant {
        let instance = Instance::take(directory, "laptop", 6444).expect("an instance");
        let config = IdentityLeases {
            duration_seconds: 3600,
            renew_interval: Duration::from_secs(10),
            gc_period: Duration::from_secs(3600),
        };
        let identity = ServerIdentity::of_host("laptop");
        Claimant { identity, port: 6444, instance: Some(Arc::new(instance)), address: None, config }
    }

    #[test]
    fn the_hosts_name_comes_first_and_the_last_one_before_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let claimant = claimant(directory.path());
        let instance = claimant.instance.as_ref().expect("set");
        let names = || claimant.names().iter().map(|name| name.hostname().to_owned()).collect::<Vec<_>>();
        let own = format!("laptop-6444-{}", &instance.id()[..8]);
        assert_eq!(names(), ["laptop", "laptop-6444", &own]);
        instance.remember("laptop-6444").expect("kept");
        assert_eq!(names(), ["laptop-6444", "laptop", &own]);
        let alone = Claimant { instance: None, ..claimant.clone() };
        assert_eq!(alone.names(), [ServerIdentity::of_host("laptop")]);
    }

    #[test]
    fn whose_a_lease_is() {
        let directory = tempfile::tempdir().expect("a directory");
        let claimant = claimant(directory.path());
        let own = claimant.instance.as_ref().expect("set").id();
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        let lease = |component: &str, instance: &str, renewed: &str| {
            let metadata =
                json!({"labels": {IDENTITY_LABEL: component}, "annotations": {INSTANCE: instance}});
            json!({"metadata": metadata, "spec": {"renewTime": renewed, "leaseDurationSeconds": 3600}})
        };
        let judge = |lease: &Value| claimant.judge(lease.as_object(), now);
        assert_eq!(claimant.judge(None, now), Lease::Free);
        for (component, instance, renewed, expected) in [
            (COMPONENT, own.as_str(), "2026-01-01T00:59:59Z", Lease::Free),
            (COMPONENT, "other", "2026-01-01T00:59:59Z", Lease::Taken),
            // Its author has a clock that is ahead, or is an earlier build.
            (COMPONENT, "other", "2026-01-01T01:09:00Z", Lease::Taken),
            (COMPONENT, "", "2026-01-01T00:59:59Z", Lease::Taken),
            (COMPONENT, "other", "2026-01-01T00:59:29Z", Lease::Silent),
            // It has expired, unless this host's clock is ahead.
            (COMPONENT, "other", "2025-12-31T23:59:59Z", Lease::Silent),
            (COMPONENT, "other", "", Lease::Free),
            ("other", "other", "2026-01-01T00:59:59Z", Lease::Free),
        ] {
            assert_eq!(judge(&lease(component, instance, renewed)), expected, "{instance} {renewed}");
        }
        let alone = Claimant { instance: None, ..claimant.clone() };
        let other = lease(COMPONENT, "other", "2026-01-01T00:59:59Z");
        assert_eq!(alone.judge(other.as_object(), now), Lease::Free);
    }
}
