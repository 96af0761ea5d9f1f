//! Removes the StorageVersion entries of servers whose lease is gone, and StorageVersions without entries.
//!
//! A lease that has expired still counts: [`super::identity_lease_gc`] deletes it in time.

use std::sync::Arc;

use super::identity_lease_gc::{is_server, leases};
use crate::api::Api;
use crate::api::error::Error;
use crate::schema::names::Gvr;

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let versions = api.resources.get(&Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"));
    let (Some(versions), Some(leases)) = (versions, leases(&api)) else { return Ok(()) };
    let start = api.cache.any().revision;
    let (mut versions, mut leases) = (api.cache.watch(versions.id, start), api.cache.watch(leases.id, start));
    loop {
        while !versions.next().await?.is_empty() {}
        while !leases.next().await?.is_empty() {}
        // Decided on the newest state, and written only if the StorageVersions have not changed since.
        api.withdraw(None, |state, server| !is_server(&api, state, server)).await?;
        tokio::select! {
            () = versions.changed() => {}
            () = leases.changed() => {}
        }
    }
}
