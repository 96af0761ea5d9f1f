//! Parts of schemas that are the same are kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, Weak};

use super::check::Pattern;
use super::{Node, NotStructural, SchemaNode, Structural, read};
use crate::regexp::Room;
use crate::schema::kind::GoShape;
use crate::schema::types::Types;
use crate::tree::{Map, Text};

/// All schemas of a server, and what they share. Nothing in here keeps a schema alive.
pub struct Schemas {
    types: Arc<Types>,
    known: Mutex<InternTable>,
}

#[derive(Default)]
pub struct InternTable {
    /// By a hash of their own words and the addresses of the nodes below, which are known already.
    nodes: HashMap<u64, Vec<Weak<SchemaNode>>>,
    patterns: HashMap<Text, Weak<Pattern>>,
    /// How many entries there may be before those of schemas that are gone are removed.
    swept_at: usize,
    entries: usize,
}

impl Schemas {
    pub fn new(types: Arc<Types>) -> Self {
        Self { types, known: Mutex::default() }
    }

    /// Reads an `openAPIV3Schema` that validation has found structural.
    pub fn read(&self, schema: &Map) -> Result<Structural, NotStructural> {
        let message = self.types.message_named("ObjectMeta").ok_or(NotStructural::NoMetadata)?;
        let metadata = GoShape { types: self.types.clone(), message };
        let mut known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.sweep();
        let root = read::root(schema, &metadata, &mut known)?;
        Ok(Structural { root, metadata })
    }

    /// How many parts of schemas that are in use there are.
    pub fn parts(&self) -> usize {
        let known = self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        known.nodes.values().flatten().filter(|node| node.strong_count() > 0).count()
    }
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

    /// Forgets parts that are gone, once there may be as many of them as of others.
    fn sweep(&mut self) {
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
