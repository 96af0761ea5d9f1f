//! Removes the StorageVersion entries of servers whose lease is gone, and StorageVersions that are left without entries.
//!
//! A lease that has expired still counts: [`super::identity_lease_gc`] deletes it in time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::identity_lease_gc::{is_server, leases};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, storage_version};
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::schema::names::Gvr;

const NAME: &str = "storage-version-gc";

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let versions = api.resources.get(&Gvr::fixed("internal.apiserver.k8s.io/v1alpha1", "storageversions"));
    let (Some(resource), Some(leases)) = (versions, leases(&api)) else { return Ok(()) };
    let mut state = api.cache.any();
    let mut servers = Servers::of(&api, resource, &state);
    let mut versions = api.cache.watch(resource.id, state.revision);
    let mut leases = api.cache.watch(leases.id, state.revision);
    loop {
        loop {
            let events = versions.next().await?;
            if events.is_empty() {
                break;
            }
            events
                .iter()
                .filter_map(|event| event.current.as_ref())
                .for_each(|now| servers.add(&api, resource, now));
        }
        while !leases.next().await?.is_empty() {}
        state = api.cache.fresh().await?;
        if servers.0.iter().any(|server| !is_server(&api, &state, server)) {
            // Decided on the newest state, and written only if the StorageVersions have not changed since.
            api.withdraw(None, |state, server| !is_server(&api, state, server)).await?;
            servers = Servers::of(&api, resource, &api.cache.any());
        }
        tokio::select! {
            () = versions.changed() => {}
            () = leases.changed() => {}
        }
    }
}

/// The servers that have entries, and perhaps some that had. So a StorageVersion is read when it changes, and all of them
/// only when a server has gone.
#[derive(Default)]
struct Servers(BTreeSet<Box<str>>);

impl Servers {
    fn of(api: &Api, resource: &Resource, state: &State) -> Self {
        let mut servers = Self::default();
        for object in state.objects(resource.id).range(&Range::of(None)) {
            servers.add(api, resource, object);
        }
        servers
    }

    fn add(&mut self, api: &Api, resource: &Resource, object: &Object) {
        match resource.decode_closed(object) {
            Ok(object) => {
                for server in storage_version::servers(&object) {
                    if !self.0.contains(server) {
                        self.0.insert(server.into());
                    }
                }
            }
            // The servers that an unreadable object names are unknown, so no entry is removed.
            Err(error) => api.unreadable.tell(NAME, object, error),
        }
    }
}
