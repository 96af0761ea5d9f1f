//! The networks from which addresses are assigned: those of ServiceCIDRs that are ready and not being deleted
//! (`pkg/registry/core/service/ipallocator/cidrallocator.go`). One ServiceCIDR is made from the flags; while it does
//! not exist, the flags are used directly.

use std::net::IpAddr;

use crate::cache::{Range, State};
use crate::codec::object::Undecodable;
use crate::config::service_ranges::{Family, Network};
use crate::error::Error;
use crate::schema::names::Gvr;
use crate::tree::Value;
use crate::{Cluster, ObjectMap, fields};

/// The name of the ServiceCIDR that is made from the flags.
pub const OF_FLAGS: &str = "kubernetes";

/// The open networks of a family, without duplicates, those of the flags first.
#[derive(Default)]
pub(super) struct OpenNetworks {
    pub networks: Vec<Network>,
    /// Set if a ServiceCIDR cannot be read; there may then be more networks.
    pub unreadable: Option<Error>,
}

impl OpenNetworks {
    /// The network that has the address.
    pub fn find(&self, address: IpAddr) -> Option<Network> {
        self.networks.iter().find(|network| network.contains(address)).copied()
    }
}

impl Cluster {
    pub(super) fn open_networks(&self, state: &State, family: Family) -> OpenNetworks {
        let Some(resource) = self.resources.get(&Gvr::fixed("networking.k8s.io/v1", "servicecidrs")) else {
            return OpenNetworks::default();
        };
        let flags = &self.config.services.networks;
        let (objects, range) = (state.objects(resource.id), Range::of(None));
        let unsaid = objects.get("", OF_FLAGS).is_none();
        let mut unreadable = None;
        let readable = objects.range(&range).filter_map(|object| {
            let told = |error: &Undecodable| self.unreadable.tell("service-cidrs", object, error);
            object.to_map().inspect_err(told).map_err(|error| unreadable = Some(error.into())).ok()
        });
        let mut open: Vec<Network> = readable.filter(is_open).flat_map(|object| networks(&object)).collect();
        if unsaid {
            open.extend(flags);
        }
        open.retain(|network| network.family() == family);
        open.sort_by_key(|network| (!flags.contains(network), network.to_string()));
        open.dedup();
        OpenNetworks { networks: open, unreadable }
    }
}

fn networks(range: &ObjectMap) -> Vec<Network> {
    let texts = fields::items(range, &["spec", "cidrs"]).iter().filter_map(Value::as_str);
    texts.filter_map(Network::parse).collect()
}

/// A ServiceCIDR without conditions counts as ready.
fn is_open(range: &ObjectMap) -> bool {
    let conditions = fields::items(range, &["status", "conditions"]);
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    fields::at(range, &["metadata", "deletionTimestamp"]).is_none()
        && ready.is_none_or(|condition| condition["status"] == "True")
}
