//! Servers that are gone: their leases are deleted some time after they have expired.
//!
//! Late rather than too early: whoever finds no lease takes the server for dead.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::api::error::Error;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::api::options::{GetOptions, ReadAt};
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, Target, fields, meta, metadata};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::tree::Value;

/// Where the leases of servers are.
pub const NAMESPACE: &str = "kube-system";
/// Tells them from other leases.
pub(super) const IDENTITY_LABEL: &str = "apiserver.kubernetes.io/identity";
pub(super) const COMPONENT: &str = "kube-apiserver";

pub async fn run(api: Arc<Api>, period: Duration) -> Result<(), Error> {
    loop {
        for lease in expired(&api) {
            if let Err(error) = delete_expired(&api, lease.name()).await {
                tracing::warn!(%error, name = lease.name(), "cannot delete the expired lease of a server");
            }
        }
        tokio::time::sleep(period).await;
    }
}

pub fn leases(api: &Api) -> Option<&Arc<Resource>> {
    api.resources.get("coordination.k8s.io", "v1", "leases")
}

/// Whether there is a server's lease of this name and holder.
pub fn is_held(api: &Api, state: &State, id: &str, holder: &str) -> bool {
    let lease = leases(api).and_then(|resource| state.get(resource.id, NAMESPACE, id));
    let lease = lease.filter(|lease| lease.label(IDENTITY_LABEL) == Some(COMPONENT));
    let lease = lease.and_then(|lease| lease.to_map().ok());
    lease.is_some_and(|lease| fields::text(&lease, &["spec", "holderIdentity"]) == holder)
}

/// Whether there is a lease of a server of this identity.
pub(super) fn is_server(api: &Api, state: &State, id: &str) -> bool {
    let lease = leases(api).and_then(|resource| state.get(resource.id, NAMESPACE, id));
    lease.is_some_and(|lease| lease.label(IDENTITY_LABEL) == Some(COMPONENT))
}

/// The leases of servers that live, in a state.
pub(super) fn live_servers(api: &Api, state: &State, now: Timestamp) -> impl Iterator<Item = ObjectMap> {
    let objects = leases(api).map(|resource| state.objects(resource.id)).unwrap_or_default();
    let range = Range::of(Some(NAMESPACE));
    let of_servers = objects.range(&range).filter(|lease| lease.label(IDENTITY_LABEL) == Some(COMPONENT));
    let leases: Vec<ObjectMap> = of_servers.filter_map(|lease| lease.to_map().ok()).collect();
    leases.into_iter().filter(move |lease| !is_expired(lease, now))
}

/// The expired leases of servers, as far as this server has heard.
fn expired(api: &Api) -> Vec<Arc<Object>> {
    let Some(resource) = leases(api) else { return Vec::new() };
    let (objects, range, now) =
        (api.cache.any().objects(resource.id), Range::of(Some(NAMESPACE)), Timestamp::now());
    let of_servers = objects.range(&range).filter(|lease| lease.label(IDENTITY_LABEL) == Some(COMPONENT));
    of_servers.filter(|lease| lease.to_map().is_ok_and(|lease| is_expired(&lease, now))).cloned().collect()
}

/// Reads a server's lease anew and deletes it if it has expired. A heartbeat that comes in between saves it.
async fn delete_expired(api: &Api, name: &str) -> Result<(), Error> {
    let Some(resource) = leases(api) else { return Ok(()) };
    let target = Target { resource, namespace: NAMESPACE, name };
    let found = match api.get(target, GetOptions { at: ReadAt::Latest }).await {
        Ok(found) => found,
        Err(Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    if found.label(IDENTITY_LABEL) != Some(COMPONENT) || !is_expired(&found.to_map()?, Timestamp::now()) {
        return Ok(());
    }
    delete(api, &found).await
}

/// Deletes a server's lease unless it has been written since it was read.
pub async fn delete(api: &Api, lease: &Object) -> Result<(), Error> {
    let Some(resource) = leases(api) else { return Ok(()) };
    let uid = metadata(&lease.to_map()?).map(|metadata| meta::text(metadata, "uid").to_owned());
    let preconditions = Preconditions { uid, resource_version: Some(lease.revision().to_string()) };
    let options = DeleteOptions { preconditions, ..DeleteOptions::default() };
    let target = Target { resource, namespace: lease.namespace(), name: lease.name() };
    match api.delete(target, &options).await {
        Ok(_) => {
            tracing::info!(name = lease.name(), "deleted the expired lease of a server");
            Ok(())
        }
        Err(Error::NotFound { .. } | Error::Conflict { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether the holder's last heartbeat is longer ago than it promised; a lease that does not say is nobody's.
pub(super) fn is_expired(lease: &ObjectMap, now: Timestamp) -> bool {
    let spec = lease.get("spec");
    let seconds = spec.and_then(|spec| spec.get("leaseDurationSeconds")).and_then(Value::as_i64);
    let end = renewed_at(lease)
        .zip(seconds)
        .map(|(renewed, seconds)| renewed.checked_add(SignedDuration::from_secs(seconds)));
    // An end beyond all time is never reached.
    end.is_none_or(|end| end.is_ok_and(|end| end < now))
}

/// The last heartbeat of a lease's holder.
pub(super) fn renewed_at(lease: &ObjectMap) -> Option<Timestamp> {
    fields::text(lease, &["spec", "renewTime"]).parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;

    #[test]
    fn a_lease_without_time_or_duration_is_expired() {
        let now: Timestamp = "2026-01-01T01:00:00Z".parse().expect("a time");
        for (spec, expired) in [
            (json!({"renewTime": "2026-01-01T00:59:00.000000Z", "leaseDurationSeconds": 60}), false),
            (json!({"renewTime": "2026-01-01T00:58:59.999999Z", "leaseDurationSeconds": 60}), true),
            (json!({"renewTime": "2026-01-01T00:59:00.000000Z"}), true),
            (json!({"leaseDurationSeconds": 3600}), true),
            (json!({"renewTime": "9999-12-30T00:00:00Z", "leaseDurationSeconds": i32::MAX}), false),
            (Value::Null, true),
        ] {
            let lease = json!({ "spec": spec });
            assert_eq!(is_expired(lease.as_object().expect("an object"), now), expired, "{lease}");
        }
    }
}
