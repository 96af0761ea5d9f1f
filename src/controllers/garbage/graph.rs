//! The graph of owners and dependents, by uid. Contains only objects that have owners.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;

use crate::cache::State;
use crate::codec::object::{Object, Undecodable};
use crate::revision::Revision;
use crate::storage::ResourceId;

/// The finalizer of a foreground deletion: the owner waits for its blocking dependents.
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an orphaning deletion: the owner waits until no dependent names it any more.
pub const ORPHAN: &str = "orphan";

/// An object, identified by resource and key.
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
    /// Whether the owner waits for this dependent in a foreground deletion.
    pub fn blocks(&self) -> bool {
        self.block_owner_deletion == Some(true)
    }
}

/// The metadata of an object that the collector needs to know.
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
    /// Fails if the object cannot be read: its owners, dependents and finalizers are then unknown.
    pub fn of(object: &Object) -> Result<Self, Undecodable> {
        let head = serde_json::from_slice::<Head>(object.json()?);
        head.map(|head| head.metadata).map_err(|_| Undecodable {
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
            revision: object.revision(),
            why: None,
        })
    }

    pub fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    /// Whether the object is in a foreground deletion.
    pub fn waits_for_dependents(&self) -> bool {
        self.is_deleting() && self.has_finalizer(FOREGROUND)
    }

    /// Whether the object is in an orphaning deletion.
    pub fn waits_to_orphan(&self) -> bool {
        self.is_deleting() && self.has_finalizer(ORPHAN)
    }
}

#[derive(Default)]
pub struct Graph {
    /// The dependents by their owner's uid.
    dependents: HashMap<Box<str>, BTreeSet<Node>>,
    /// The uids of each dependent's owners, as in `dependents`. An object that has become unreadable keeps them.
    owners: HashMap<Node, Vec<Box<str>>>,
    /// Objects that cannot be read.
    unreadable: BTreeSet<Node>,
    /// For each resource, the revision up to which its objects are in the graph.
    reached: HashMap<ResourceId, Revision>,
}

impl Graph {
    /// Adds an object or updates it. Returns whether the collector should check it.
    pub fn put(&mut self, node: &Node, object: &Object) -> Result<bool, Undecodable> {
        let facts = match facts_of_some(object) {
            Ok(facts) => facts,
            Err(error) => {
                self.unreadable.insert(node.clone());
                return Err(error);
            }
        };
        self.unreadable.remove(node);
        self.unlink(node);
        let Some(facts) = facts else { return Ok(false) };
        for owner in &facts.owner_references {
            let uid: Box<str> = owner.uid.as_str().into();
            self.dependents.entry(uid.clone()).or_default().insert(node.clone());
            self.owners.entry(node.clone()).or_default().push(uid);
        }
        Ok(!facts.owner_references.is_empty() || facts.is_deleting())
    }

    /// Removes an object that is gone. Returns the objects to check: its dependents; `None` if these are unknown and
    /// everything must be checked. Owners that wait for the object are checked again anyway.
    pub fn remove(&mut self, node: &Node, gone: &Object) -> Option<Vec<Node>> {
        self.unreadable.remove(node);
        self.unlink(node);
        let facts = Facts::of(gone).ok()?;
        Some(self.dependents(&facts.uid).cloned().collect())
    }

    /// All objects with owners.
    pub fn all_dependents(&self) -> impl Iterator<Item = &Node> {
        self.owners.keys()
    }

    /// Whether an unreadable object may be a dependent of an object in this namespace, or of a cluster-scoped one if
    /// `namespace` is empty.
    pub fn may_hide_dependents(&self, namespace: &str) -> bool {
        self.unreadable.iter().any(|node| namespace.is_empty() || node.namespace() == namespace)
    }

    /// Whether the graph contains the resource.
    pub fn holds(&self, resource: ResourceId) -> bool {
        self.reached.contains_key(&resource)
    }

    /// Removes all objects of a resource that is not served any more. Their dependents stay: it is unknown whether the
    /// owners are gone.
    pub fn forget(&mut self, resource: ResourceId) {
        self.reached.remove(&resource);
        self.unreadable.retain(|node| node.resource != resource);
        let gone: Vec<Node> = self.owners.keys().filter(|node| node.resource == resource).cloned().collect();
        for node in gone {
            self.unlink(&node);
        }
    }

    /// Notes that the graph contains all changes of the resource up to `at`.
    pub fn reach(&mut self, resource: ResourceId, at: Revision) {
        self.reached.insert(resource, at);
    }

    /// Whether the graph contains all changes up to `at`, which must not be later than the state. Each resource has its
    /// own reporter, and one without changes reports nothing.
    pub fn covers(&self, at: Revision, state: &State) -> bool {
        let covered = |(resource, reached): (&ResourceId, &Revision)| {
            *reached >= at || state.unchanged_since(*resource, *reached).is_some()
        };
        self.reached.iter().all(covered)
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

/// The object's facts; `None` if it has no owners and is not being deleted.
fn facts_of_some(object: &Object) -> Result<Option<Facts>, Undecodable> {
    // A search in unreadable bytes would prove nothing.
    object.json()?;
    let concerned = object.mentions("ownerReferences") || object.mentions("deletionTimestamp");
    concerned.then(|| Facts::of(object)).transpose()
}

#[cfg(test)]
mod tests {
    use crate::cache::Objects;
    use crate::tree::json;

    use super::*;
    use crate::codec::object::Draft;

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
        assert!(graph.put(&node, &owned).expect("readable"));
        assert_eq!(graph.dependents("1").collect::<Vec<_>>(), [&node]);
        let (_, other) = object("d", "2", &["9"]);
        graph.put(&node, &other).expect("readable");
        assert_eq!(graph.dependents("1").count(), 0);
        let (owner_node, owner) = object("o", "9", &[]);
        assert_eq!(graph.remove(&owner_node, &owner), Some(vec![node.clone()]));
        graph.remove(&node, &other);
        assert_eq!(graph.dependents("9").count(), 0);
        assert!(graph.owners.is_empty());
    }

    #[test]
    fn a_resource_that_is_removed_is_forgotten_and_those_it_owned_are_not() {
        let mut graph = Graph::default();
        let (node, owned) = object("d", "2", &["1"]);
        let other = Node { resource: ResourceId(2), key: node.key.clone() };
        for (node, resource) in [(&node, 1), (&other, 2)] {
            graph.put(node, &owned).expect("readable");
            graph.reach(ResourceId(resource), Revision(7));
        }
        assert_eq!(graph.dependents("1").collect::<Vec<_>>(), [&node, &other]);
        graph.forget(ResourceId(1));
        assert_eq!(graph.dependents("1").collect::<Vec<_>>(), [&other]);
        assert!(!graph.holds(ResourceId(1)) && graph.holds(ResourceId(2)));
    }

    #[test]
    fn what_becomes_unreadable_keeps_its_owners() {
        let mut graph = Graph::default();
        let (node, owned) = object("d", "2", &["1"]);
        assert!(graph.put(&node, &owned).expect("readable"));
        let damaged = Draft::parse("ns", "d", "{{".into()).into_object(Revision(2));
        assert!(graph.put(&node, &damaged).is_err());
        assert_eq!(graph.dependents("1").collect::<Vec<_>>(), [&node]);
        assert!(graph.may_hide_dependents("ns") && graph.may_hide_dependents(""));
        assert!(!graph.may_hide_dependents("other"));
        // The dependents of an unreadable object are unknown.
        assert_eq!(graph.remove(&node, &damaged), None);
        assert!(graph.owners.is_empty() && !graph.may_hide_dependents("ns"));
    }

    #[test]
    fn a_graph_holds_a_state_once_all_resources_are_taken_in() {
        let (_, object) = object("d", "2", &["1"]);
        let object = std::sync::Arc::new(object);
        let mut state = State::at(Revision(7));
        state.load(ResourceId(2), Objects::default());
        let mut graph = Graph::default();
        for resource in [1, 2] {
            graph.reach(ResourceId(resource), Revision(7));
        }
        assert!(graph.covers(Revision(7), &state));
        state.apply(ResourceId(2), object.key(), Revision(8), Some(object.clone())).expect("held");
        state.revision = Revision(9);
        assert!(!graph.covers(Revision(9), &state), "the reports of 2 are still on their way");
        assert!(graph.covers(Revision(7), &state), "what is on its way came later than this");
        graph.reach(ResourceId(2), Revision(8));
        assert!(graph.covers(Revision(9), &state), "1 has nothing to report");
        // A resource that is written to constantly is covered, too.
        state.apply(ResourceId(2), object.key(), Revision(10), Some(object.clone())).expect("held");
        state.revision = Revision(10);
        graph.reach(ResourceId(2), Revision(9));
        assert!(graph.covers(Revision(9), &state) && !graph.covers(Revision(10), &state));
    }
}
