//! Parts of schemas that are the same are kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Weak};

use super::check::Pattern;
use super::{Node, SchemaNode};
use crate::regexp::Room;
use crate::tree::Text;

#[derive(Default)]
pub struct InternTable {
    /// By a hash of their own words and the addresses of the nodes below, which are known already.
    nodes: HashMap<u64, Vec<Weak<SchemaNode>>>,
    patterns: HashMap<Text, Weak<Pattern>>,
    /// How many entries there may be before those of schemas that are gone are removed.
    swept_at: usize,
    entries: usize,
}

impl InternTable {
    /// The node that says the same, which may be this one.
    pub fn node(&mut self, node: SchemaNode) -> Node {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let same_hash = self.nodes.entry(hasher.finish()).or_default();
        if let Some(known) = same_hash.iter().filter_map(Weak::upgrade).find(|known| **known == node) {
            return Node(known);
        }
        let node = Arc::new(node);
        same_hash.push(Arc::downgrade(&node));
        self.entries += 1;
        Node(node)
    }

    pub fn pattern(&mut self, text: &str, room: &Arc<Room>) -> Arc<Pattern> {
        if let Some(known) = self.patterns.get(text).and_then(Weak::upgrade) {
            return known;
        }
        let pattern = Arc::new(Pattern::new(text, room));
        if self.patterns.insert(text.into(), Arc::downgrade(&pattern)).is_none() {
            self.entries += 1;
        }
        pattern
    }

    /// How many parts of schemas that are in use there are.
    pub fn parts(&self) -> usize {
        self.nodes.values().flatten().filter(|node| node.strong_count() > 0).count()
    }

    /// Forgets parts that are gone, once there may be as many of them as of others.
    pub fn sweep(&mut self) {
        if self.entries < self.swept_at.max(1024) {
            return;
        }
        self.nodes.retain(|_, same_hash| {
            same_hash.retain(|node| node.strong_count() > 0);
            !same_hash.is_empty()
        });
        self.patterns.retain(|_, pattern| pattern.strong_count() > 0);
        self.entries = self.nodes.values().map(Vec::len).sum::<usize>() + self.patterns.len();
        self.swept_at = 2 * self.entries;
    }
}

/// Children are known already, so that the same content is the same address.
impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.address().hash(state);
    }
}
