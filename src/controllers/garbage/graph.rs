//! Who depends on whom, by uid. Only objects that have owners are in it.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::codec::object::Object;
use crate::storage::ResourceId;

/// An object by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node {
    pub resource: ResourceId,
    /// `namespace NUL name`.
    pub key: Box<str>,
}

impl Node {
    pub fn namespace(&self) -> &str {
        self.key.split_once('\0').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.key.split_once('\0').map_or(&*self.key, |(_, name)| name)
    }
}

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub uid: String,
    pub block_owner_deletion: Option<bool>,
}

impl OwnerReference {
    /// Whether an owner that is deleted in the foreground waits for who refers to it so.
    pub fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// What the collector has to know of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Facts {
    pub uid: String,
    pub owner_references: Vec<OwnerReference>,
    pub finalizers: Vec<String>,
    pub deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct Head {
    metadata: Facts,
}

impl Facts {
    /// `None` if the object cannot be read.
    pub fn of(object: &Object) -> Option<Self> {
        serde_json::from_slice::<Head>(object.json().ok()?).ok().map(|head| head.metadata)
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }
}

#[derive(Default)]
pub struct Graph {
    /// Owner's uid to dependents.
    dependents: HashMap<Box<str>, BTreeSet<Node>>,
    /// Dependent to its owners' uids, as they stand in `dependents`.
    owners: HashMap<Node, Vec<Box<str>>>,
}

impl Graph {
    /// Takes in an object as it is now. Returns whether the collector should look at it.
    pub fn put(&mut self, node: &Node, object: &Object) -> bool {
        let owned = object.mentions("ownerReferences");
        let terminating = object.mentions("deletionTimestamp");
        if !owned && !terminating {
            self.unlink(node);
            return false;
        }
        let Some(facts) = Facts::of(object) else { return false };
        self.unlink(node);
        for owner in &facts.owner_references {
            let uid: Box<str> = owner.uid.as_str().into();
            self.dependents.entry(uid.clone()).or_default().insert(node.clone());
            self.owners.entry(node.clone()).or_default().push(uid);
        }
        !facts.owner_references.is_empty() || facts.is_deleting()
    }

    /// Takes out an object that is gone. Returns who is to be looked at: its dependents. Owners that wait for it are
    /// found by the collector, which looks again while they wait.
    pub fn remove(&mut self, node: &Node, gone: &Object) -> Vec<Node> {
        self.unlink(node);
        let Some(facts) = Facts::of(gone) else { return Vec::new() };
        self.dependents(&facts.uid).cloned().collect()
    }

    pub fn dependents(&self, uid: &str) -> impl Iterator<Item = &Node> {
        self.dependents.get(uid).into_iter().flatten()
    }

    fn unlink(&mut self, node: &Node) {
        for uid in self.owners.remove(node).unwrap_or_default() {
            if let Some(dependents) = self.dependents.get_mut(&uid) {
                dependents.remove(node);
                if dependents.is_empty() {
                    self.dependents.remove(&uid);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tree::json;

    use super::*;
    use crate::codec::object::Draft;
    use crate::revision::Revision;

    fn object(name: &str, uid: &str, owners: &[&str]) -> (Node, Object) {
        let owners: Vec<_> = owners.iter().map(|uid| json!({"uid": uid, "kind": "K", "name": "o"})).collect();
        let object = json!({"metadata": {"name": name, "uid": uid, "ownerReferences": owners}});
        let draft = Draft::of_json("ns", name, object.to_string().into());
        let object = draft.into_object(Revision(1));
        (Node { resource: ResourceId(1), key: object.key().into() }, object)
    }

    #[test]
    fn dependents_follow_their_references() {
        let mut graph = Graph::default();
        let (node, owned) = object("d", "2", &["1", "9"]);
        assert!(graph.put(&node, &owned));
        assert_eq!(graph.dependents("1").collect::<Vec<_>>(), [&node]);
        let (_, other) = object("d", "2", &["9"]);
        graph.put(&node, &other);
        assert_eq!(graph.dependents("1").count(), 0);
        let (owner_node, owner) = object("o", "9", &[]);
        assert_eq!(graph.remove(&owner_node, &owner), std::slice::from_ref(&node));
        graph.remove(&node, &other);
        assert_eq!(graph.dependents("9").count(), 0);
        assert!(graph.owners.is_empty());
    }
}
