//! The Pods that are bound to each node, and the objects that they and their volumes refer to.
//!
//! A question is about one node, and a node has few Pods, so that they are looked at one after the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use super::references::{Sort, of_pod, secrets_of_volume};
use crate::cache::event::Event;
use crate::codec::object::{Object, joined_key};
use crate::fields;
use crate::json::scan;

type References = Box<[(Sort, Box<str>)]>;

#[derive(Default)]
pub struct Graph {
    /// The references of each node's Pods, by the Pods' keys.
    pods: HashMap<Box<str>, BTreeMap<Box<str>, References>>,
    /// The nodes of Pods, by the Pods' keys.
    nodes: HashMap<Box<str>, Box<str>>,
    /// Volumes with Secrets, by their names.
    volumes: HashMap<Box<str>, Volume>,
    /// The names of volumes by the keys of their Secrets.
    by_secret: HashMap<Box<str>, BTreeSet<Box<str>>>,
}

struct Volume {
    claim: Claim,
    secrets: Vec<Box<str>>,
}

/// The claim that a volume is bound to.
pub struct Claim {
    namespace: Box<str>,
    name: Box<str>,
}

impl Graph {
    /// Whether a Pod on the node refers to an object.
    pub fn uses(&self, node: &str, sort: Sort, namespace: &str, name: &str) -> bool {
        let Some(pods) = self.pods.get(node) else { return false };
        let (first, behind) = (joined_key(namespace, ""), format!("{namespace}\u{1}"));
        let pods = pods.range::<str, _>((Bound::Included(&*first), Bound::Excluded(&*behind)));
        let is_wanted = |(own, other): &(Sort, Box<str>)| *own == sort && **other == *name;
        pods.into_iter().any(|(_, references)| references.iter().any(is_wanted))
    }

    pub fn uses_claim(&self, node: &str, claim: &Claim) -> bool {
        self.uses(node, Sort::Claim, &claim.namespace, &claim.name)
    }

    /// The claims of the volumes that need a Secret.
    pub fn volumes_with(&self, namespace: &str, secret: &str) -> impl Iterator<Item = &Claim> {
        let names = self.by_secret.get(&*joined_key(namespace, secret)).into_iter().flatten();
        names.filter_map(|name| Some(&self.volumes.get(name)?.claim))
    }

    pub fn change_pod(&mut self, change: &Event) {
        match (&change.previous, &change.current) {
            (Some(previous), Some(current)) if refers_as_before(previous, current) => {}
            (_, Some(current)) => self.put_pod(current),
            (Some(previous), None) => self.remove_pod(previous.key()),
            (None, None) => {}
        }
    }

    pub fn put_pod(&mut self, pod: &Arc<Object>) {
        self.remove_pod(pod.key());
        let Ok(content) = pod.to_closed_map() else { return };
        let node = fields::text(&content, &["spec", "nodeName"]);
        if node.is_empty() {
            return;
        }
        self.nodes.insert(pod.key().into(), node.into());
        self.pods.entry(node.into()).or_default().insert(pod.key().into(), of_pod(&content));
    }

    fn remove_pod(&mut self, key: &str) {
        let Some(node) = self.nodes.remove(key) else { return };
        let Some(pods) = self.pods.get_mut(&node) else { return };
        pods.remove(key);
        if pods.is_empty() {
            self.pods.remove(&node);
        }
    }

    pub fn change_volume(&mut self, change: &Event) {
        match (&change.previous, &change.current) {
            (_, Some(current)) => self.put_volume(current),
            (Some(previous), None) => self.remove_volume(previous.name()),
            (None, None) => {}
        }
    }

    pub fn put_volume(&mut self, volume: &Arc<Object>) {
        self.remove_volume(volume.name());
        let Ok(content) = volume.to_closed_map() else { return };
        let claim = |part| fields::text(&content, &["spec", "claimRef", part]);
        let secrets = secrets_of_volume(&content);
        if claim("name").is_empty() || secrets.is_empty() {
            return;
        }
        let keys: Vec<_> = secrets.iter().map(|(namespace, name)| joined_key(namespace, name)).collect();
        for key in &keys {
            self.by_secret.entry(key.clone()).or_default().insert(volume.name().into());
        }
        let claim = Claim { namespace: claim("namespace").into(), name: claim("name").into() };
        self.volumes.insert(volume.name().into(), Volume { claim, secrets: keys });
    }

    fn remove_volume(&mut self, name: &str) {
        let Some(volume) = self.volumes.remove(name) else { return };
        for key in volume.secrets {
            if let Some(names) = self.by_secret.get_mut(&key) {
                names.remove(name);
                if names.is_empty() {
                    self.by_secret.remove(&key);
                }
            }
        }
    }
}

/// Whether a Pod's spec is the same text, and its status names no claims. Most writes of a Pod are of its status, and
/// comparing texts takes less time than reading them.
fn refers_as_before(previous: &Object, current: &Object) -> bool {
    fn spec(object: &Object) -> Option<&[u8]> {
        let json = object.json().ok()?;
        json.get(scan::member(json, 0, "spec")?)
    }
    let names_claims = |object: &Object| {
        object.mentions("resourceClaimStatuses") || object.mentions("extendedResourceClaimStatus")
    };
    match (spec(previous), spec(current)) {
        (Some(one), Some(other)) => one == other && !names_claims(previous) && !names_claims(current),
        _ => false,
    }
}
