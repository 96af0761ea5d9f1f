//! The networks that are open now: those of ServiceCIDRs which are ready and stay
//! (`pkg/registry/core/service/ipallocator/cidrallocator.go`). One of these is made of what the flags say; while it is
//! not there, the flags count.

use super::ranges::{Family, Network};
use crate::api::{Api, ObjectMap, fields};
use crate::cache::{Range, State};
use crate::tree::Value;

/// The ServiceCIDR of the flags.
pub const OF_FLAGS: &str = "kubernetes";

impl Api {
    /// Every network of a family once, those of the flags first.
    pub(super) fn open_networks(&self, state: &State, family: Family) -> Vec<Network> {
        let Some(resource) = self.resources.get("networking.k8s.io", "v1", "servicecidrs") else {
            return Vec::new();
        };
        let flags = &self.config.services.networks;
        let (objects, range) = (state.objects(resource.id), Range::of(None));
        let unsaid = objects.get("", OF_FLAGS).is_none();
        let objects = objects.range(&range).filter_map(|object| object.to_map().ok());
        let mut open: Vec<Network> = objects.filter(is_open).flat_map(|object| networks(&object)).collect();
        if unsaid {
            open.extend(flags);
        }
        open.retain(|network| network.family() == family);
        open.sort_by_key(|network| (!flags.contains(network), network.to_string()));
        open.dedup();
        open
    }
}

fn networks(range: &ObjectMap) -> Vec<Network> {
    let texts = fields::items(range, &["spec", "cidrs"]).iter().filter_map(Value::as_str);
    texts.filter_map(Network::parse).collect()
}

/// One that says nothing of itself is ready.
fn is_open(range: &ObjectMap) -> bool {
    let conditions = fields::items(range, &["status", "conditions"]);
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready");
    fields::at(range, &["metadata", "deletionTimestamp"]).is_none()
        && ready.is_none_or(|condition| condition["status"] == "True")
}
