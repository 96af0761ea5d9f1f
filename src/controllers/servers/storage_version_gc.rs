//! Removes the StorageVersion entries of servers whose lease is gone, and StorageVersions that are left without entries.
//!
//! A lease that has expired still counts: [`super::identity_lease_gc`] deletes it in time. This is kube-controller-manager's
//! elsewhere. Where it is left to that one, only StorageVersions in which a live server has an entry are seen to, since these
//! decide what it may encode in.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::identity_lease_gc::{is_server, leases};
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::api::{Api, ObjectMap, storage_version};
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
        let mut changed: Vec<Arc<Object>> = Vec::new();
        loop {
            let events = versions.next().await?;
            if events.is_empty() {
                break;
            }
            changed.extend(events.iter().filter_map(|event| event.current.clone()));
        }
        while !leases.next().await?.is_empty() {}
        state = api.cache.fresh().await?;
        changed.iter().for_each(|now| servers.add(&api, resource, &state, now));
        if servers.0.iter().any(|server| !is_server(&api, &state, server)) {
            // Decided on the newest state, and written only if the StorageVersions have not changed since.
            let gone = |state: &State, object: &ObjectMap, server: &str| {
                !is_server(&api, state, server) && is_seen_to(&api, state, object)
            };
            api.withdraw(None, gone).await?;
            servers = Servers::of(&api, resource, &api.cache.any());
        }
        tokio::select! {
            () = versions.changed() => {}
            () = leases.changed() => {}
        }
    }
}

fn is_seen_to(api: &Api, state: &State, object: &ObjectMap) -> bool {
    api.config.cluster_controllers
        || storage_version::servers(object).any(|server| is_server(api, state, server))
}

/// The servers that have entries, and perhaps some that had. So a StorageVersion is read when it changes, and all of them
/// only when a server has gone.
#[derive(Default)]
struct Servers(BTreeSet<Box<str>>);

impl Servers {
    fn of(api: &Api, resource: &Resource, state: &State) -> Self {
        let mut servers = Self::default();
        for object in state.objects(resource.id).range(&Range::of(None)) {
            servers.add(api, resource, state, object);
        }
        servers
    }

    fn add(&mut self, api: &Api, resource: &Resource, state: &State, object: &Object) {
        match resource.decode_closed(object) {
            Ok(object) if !is_seen_to(api, state, &object) => {}
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
