//! Deletes the leases of dead servers, some time after they have expired.
//!
//! It is better to delete late than early: a server without a lease counts as dead. So a lease has expired when it has
//! not changed for its duration by the observer's own clock, as in client-go; differing clocks of hosts do no harm.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields, meta, metadata};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::schema::resource::Verb;
use crate::tree::Value;

/// The controller's name in logs about unreadable objects.
const NAME: &str = "identity-lease-gc";
/// The namespace of the servers' leases.
pub const NAMESPACE: &str = "kube-system";
/// The label that marks the leases of servers.
pub(in crate::controllers) const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
pub(in crate::controllers) const COMPONENT: &str = "kube-apiserver";

pub async fn run(api: Arc<Api>, period: Duration) -> Result<(), Error> {
    let mut sightings = Sightings::default();
    loop {
        let leases = read(&api, &api.cache.any()).leases;
        sightings.look(&leases, Instant::now());
        for (lease, _) in leases.iter().filter(|(lease, map)| sightings.is_dead(lease, map, Instant::now())) {
            if let Err(error) = delete(&api, lease).await {
                tracing::warn!(%error, name = lease.name(), "cannot delete the expired lease of a server");
            }
        }
        tokio::time::sleep(period).await;
    }
}

pub fn leases(api: &Api) -> Option<&Arc<Resource>> {
    api.resources.get(&Gvr::fixed("coordination.k8s.io/v1", "leases"))
}

/// Whether a server's lease of this name has this holder. One that cannot be read does not count.
pub fn is_held(api: &Api, state: &State, id: &str, holder: &str) -> bool {
    let lease = leases(api).and_then(|resource| state.get(resource.id, NAMESPACE, id));
    let Some(lease) = lease else { return false };
    match lease.to_map() {
        Ok(map) => {
            lease.label(IDENTITY_LABEL) == Some(COMPONENT)
                && fields::text(&map, &["spec", "holderIdentity"]) == holder
        }
        Err(error) => {
            api.unreadable.tell(NAME, &lease, error);
            false
        }
    }
}

/// Whether a server's lease of this name exists. One that cannot be read counts.
pub(in crate::controllers) fn is_server(api: &Api, state: &State, id: &str) -> bool {
    let lease = leases(api).and_then(|resource| state.get(resource.id, NAMESPACE, id));
    lease.is_some_and(|lease| match lease.json() {
        Ok(_) => lease.label(IDENTITY_LABEL) == Some(COMPONENT),
        Err(error) => {
            api.unreadable.tell(NAME, &lease, error);
            true
        }
    })
}

/// The servers' leases in a state.
pub(in crate::controllers) struct Servers {
    pub leases: Vec<(Arc<Object>, ObjectMap)>,
    /// Whether there are leases that cannot be read and may belong to more servers.
    pub and_more: bool,
}

pub(in crate::controllers) fn read(api: &Api, state: &State) -> Servers {
    let mut servers = Servers { leases: Vec::new(), and_more: false };
    let Some(resource) = leases(api) else { return servers };
    for lease in state.objects(resource.id).range(&Range::of(Some(NAMESPACE))) {
        match lease.json() {
            Ok(_) if lease.label(IDENTITY_LABEL) != Some(COMPONENT) => continue,
            _ => {}
        }
        match lease.to_map() {
            Ok(map) => servers.leases.push((lease.clone(), map)),
            Err(error) => {
                api.unreadable.tell(NAME, lease, error);
                servers.and_more = true;
            }
        }
    }
    servers
}

/// Since when each lease is unchanged, by the clock of this process alone. The times inside leases come from other
/// hosts' clocks, which may be wrong by a day.
#[derive(Debug, Default)]
pub(in crate::controllers) struct Sightings {
    seen: HashMap<Box<str>, (Revision, Instant)>,
}

impl Sightings {
    /// Notes the leases as they are `now`, and forgets those that are gone.
    pub fn look(&mut self, leases: &[(Arc<Object>, ObjectMap)], now: Instant) {
        let mut seen = HashMap::with_capacity(leases.len());
        for (lease, _) in leases {
            let before = self.seen.get(lease.name()).filter(|(revision, _)| *revision == lease.revision());
            let since = before.map_or(now, |(_, since)| *since);
            seen.insert(lease.name().into(), (lease.revision(), since));
        }
        self.seen = seen;
    }

    /// Whether the holder has failed to renew its lease for its duration while this server was watching. A lease
    /// without a duration belongs to nobody.
    pub fn is_dead(&self, lease: &Object, map: &ObjectMap, now: Instant) -> bool {
        let Some(promised) = promised(map) else { return true };
        let seen = self.seen.get(lease.name()).filter(|(revision, _)| *revision == lease.revision());
        seen.is_some_and(|(_, since)| now.duration_since(*since) >= promised)
    }
}

/// Deletes a server's lease, unless it has been written since it was read.
pub async fn delete(api: &Api, lease: &Object) -> Result<(), Error> {
    let Some(resource) = leases(api) else { return Ok(()) };
    let uid = metadata(&lease.to_map()?).map(|metadata| meta::text(metadata, "uid").to_owned());
    let preconditions = Preconditions { uid, resource_version: Some(lease.revision().to_string()) };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let target = Target { resource, namespace: lease.namespace(), name: lease.name() };
    match api.delete(&Request::own(Verb::Delete, target).with(&options)).await {
        Ok(_) => {
            tracing::info!(name = lease.name(), "deleted the expired lease of a server");
            Ok(())
        }
        Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The longest time until the next heartbeat. `None` if the lease lacks a time or a duration, so that it belongs to
/// nobody.
pub(in crate::controllers) fn promised(lease: &ObjectMap) -> Option<Duration> {
    renewed_at(lease)?;
    let seconds = lease.get("spec")?.get("leaseDurationSeconds").and_then(Value::as_i64)?;
    Some(Duration::from_secs(seconds.max(0).unsigned_abs()))
}

/// The time of the last heartbeat, according to its sender.
pub(in crate::controllers) fn renewed_at(lease: &ObjectMap) -> Option<Timestamp> {
    fields::text(lease, &["spec", "renewTime"]).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::object::Draft;
    use crate::tree::json;

    fn lease(spec: Value, revision: u64) -> (Arc<Object>, ObjectMap) {
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let draft = Draft::of_json(NAMESPACE, "a", object.to_string().into());
        let object = Arc::new(draft.into_object(Revision(revision)));
        let map = object.to_map().expect("readable");
        (object, map)
    }

    fn of_an_hour(revision: u64) -> (Arc<Object>, ObjectMap) {
        // The time is long ago, or this host's clock is ahead: nobody can tell.
        lease(json!({"renewTime": "2020-01-01T00:00:00.000000Z", "leaseDurationSeconds": 3600}), revision)
    }

    #[test]
    fn a_lease_is_dead_when_nobody_has_renewed_it_while_this_server_looked() {
        let (start, hour) = (Instant::now(), Duration::from_secs(3600));
        let mut sightings = Sightings::default();
        let mut is_dead = |lease: &(Arc<Object>, ObjectMap), now| {
            sightings.look(std::slice::from_ref(lease), now);
            sightings.is_dead(&lease.0, &lease.1, now)
        };
        assert!(!is_dead(&of_an_hour(1), start));
        assert!(!is_dead(&of_an_hour(1), start + hour / 2));
        // A heartbeat counts, whatever time it contains.
        assert!(!is_dead(&of_an_hour(2), start + hour));
        assert!(!is_dead(&of_an_hour(2), start + hour * 2 - Duration::from_secs(1)));
        assert!(is_dead(&of_an_hour(2), start + hour * 2));
        // A new lease of the same name.
        assert!(!is_dead(&of_an_hour(3), start + hour * 2));
    }

    #[test]
    fn a_lease_that_has_not_been_looked_at_lives() {
        let (lease, map) = of_an_hour(1);
        assert!(!Sightings::default().is_dead(&lease, &map, Instant::now()));
    }

    #[test]
    fn a_lease_without_time_or_duration_is_nobodys() {
        for (spec, dead) in [
            (json!({"renewTime": "2026-01-01T00:59:00.000000Z"}), true),
            (json!({"leaseDurationSeconds": 3600}), true),
            (json!({"renewTime": "then", "leaseDurationSeconds": 3600}), true),
            (json!({"renewTime": "9999-12-30T00:00:00Z", "leaseDurationSeconds": i32::MAX}), false),
            (Value::Null, true),
        ] {
            let (lease, map) = lease(spec, 1);
            let mut sightings = Sightings::default();
            sightings.look(&[(lease.clone(), map.clone())], Instant::now());
            assert_eq!(sightings.is_dead(&lease, &map, Instant::now()), dead, "{map:?}");
        }
    }
}
