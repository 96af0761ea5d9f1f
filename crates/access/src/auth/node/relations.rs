//! The relations of objects to nodes: through a field of the object, or through the Pods that are bound to a node.

use super::Shared;
use super::graph::Graph;
use super::references::Sort;
use crate::cache::{Range, State};
use crate::fields;
use crate::revision::Revision;
use crate::storage::ResourceId;

impl Shared {
    /// Whether an object's `spec.nodeName` is this node.
    pub(super) fn names_node(
        &self,
        state: &State,
        id: Option<ResourceId>,
        namespace: &str,
        name: &str,
        node: &str,
    ) -> bool {
        let object = id.and_then(|id| state.get(id, namespace, name));
        let content = object.and_then(|object| object.to_closed_map().ok());
        content.is_some_and(|content| fields::text(&content, &["spec", "nodeName"]) == node)
    }

    /// Whether a Pod on the node refers to an object, or to a volume that refers to it.
    pub(super) fn is_used(&self, state: &State, sort: Sort, node: &str, namespace: &str, name: &str) -> bool {
        self.catch_up(state);
        let graph = self.graph.read().unwrap_or_else(|e| e.into_inner());
        let Some(graph) = &*graph else { return false };
        graph.uses(node, sort, namespace, name)
            || sort == Sort::Secret
                && graph.volumes_with(namespace, name).any(|claim| graph.uses_claim(node, claim))
    }

    pub(super) fn is_volume_used(&self, state: &State, node: &str, name: &str) -> bool {
        let volume = self.ids.volumes.and_then(|id| state.get(id, "", name));
        let Some(content) = volume.and_then(|volume| volume.to_closed_map().ok()) else { return false };
        let claim = |part| fields::text(&content, &["spec", "claimRef", part]);
        !claim("name").is_empty() && self.is_used(state, Sort::Claim, node, claim("namespace"), claim("name"))
    }

    pub(super) fn catch_up(&self, state: &State) {
        let followed = || [self.ids.pods, self.ids.volumes].into_iter().flatten();
        if !self.position.is_behind(state, followed()) {
            return;
        }
        let mut graph = self.graph.write().unwrap_or_else(|e| e.into_inner());
        let state = self.cache.any();
        let known = graph.as_mut().zip(self.position.reached(&state));
        let is_known = known.is_some_and(|(graph, reached)| self.follow_changes(graph, reached, &state));
        if !is_known {
            *graph = Some(self.whole(&state));
        }
        self.position.advance(&state);
    }

    /// Whether memory reaches back so far.
    fn follow_changes(&self, graph: &mut Graph, reached: Revision, state: &State) -> bool {
        for (id, is_pod) in [(self.ids.pods, true), (self.ids.volumes, false)] {
            let Some(id) = id else { continue };
            let Some(changes) = self.cache.changes(id, reached) else { return false };
            for change in changes.iter().take_while(|change| change.revision <= state.revision) {
                match is_pod {
                    true => graph.change_pod(change),
                    false => graph.change_volume(change),
                }
            }
        }
        true
    }

    fn whole(&self, state: &State) -> Graph {
        let mut graph = Graph::default();
        let objects = |id: Option<ResourceId>| id.map(|id| state.objects(id)).unwrap_or_default();
        objects(self.ids.pods).range(&Range::of(None)).for_each(|pod| graph.put_pod(pod));
        objects(self.ids.volumes).range(&Range::of(None)).for_each(|volume| graph.put_volume(volume));
        graph
    }
}
