//! Anchors and what aliases of them may cost (go-yaml's `decodeCount` and `aliasCount`).

use std::collections::HashMap;
use std::rc::Rc;

use super::node::{Form, Measure, Node};
use crate::codec::depth;
use crate::tree::Value;

/// How many bytes of text aliases may stand for in all. go-yaml counts nodes only, so that a long text can be repeated
/// without end; no object that is larger than this is stored.
const MAX_BYTES: usize = 16 << 20;

const EXCESSIVE: &str = "yaml: document contains excessive aliasing";

/// A node with an anchor.
pub(super) struct Anchored {
    pub value: Value,
    pub form: Form,
    pub depth: usize,
    /// The repeated keys inside of it, which each alias repeats.
    pub repeated: Vec<String>,
    nodes: usize,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Aliases {
    /// `None` until the node has ended.
    anchored: HashMap<String, Option<Rc<Anchored>>>,
    /// How many nodes were decoded, and how many of these by aliases.
    pub nodes: usize,
    aliased: usize,
    /// The bytes of their scalars, and how many of these by aliases.
    pub bytes: usize,
    aliased_bytes: usize,
}

impl Aliases {
    pub fn knows(&self, anchor: &str) -> bool {
        self.anchored.contains_key(anchor)
    }

    pub fn declare(&mut self, anchor: &str) {
        self.anchored.insert(anchor.to_owned(), None);
    }

    pub fn keep(&mut self, anchor: String, node: &Node, before: Measure, repeated: Vec<String>) {
        // Another node inside of this one may have taken the name.
        let Some(entry) = self.anchored.get_mut(&anchor) else { return };
        *entry = Some(Rc::new(Anchored {
            value: node.value.clone(),
            form: node.form.clone(),
            depth: depth::depth(&node.value),
            repeated,
            nodes: self.nodes - before.nodes,
            bytes: self.bytes - before.bytes,
        }));
    }

    /// The node that an alias stands for.
    pub fn expand(&mut self, anchor: &str) -> Result<Rc<Anchored>, String> {
        let Some(Some(anchored)) = self.anchored.get(anchor).cloned() else {
            return Err(format!("yaml: anchor '{anchor}' value contains itself"));
        };
        self.aliased = self.aliased.saturating_add(anchored.nodes);
        self.aliased_bytes = self.aliased_bytes.saturating_add(anchored.bytes);
        self.count(1 + anchored.nodes, anchored.bytes)?;
        if self.aliased_bytes > MAX_BYTES { Err(EXCESSIVE.to_owned()) } else { Ok(anchored) }
    }

    /// Counts nodes that are decoded, and refuses those of a document that consists of aliases.
    pub fn count(&mut self, nodes: usize, bytes: usize) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(nodes);
        self.bytes = self.bytes.saturating_add(bytes);
        let share = self.aliased as f64 / self.nodes as f64;
        if self.aliased > 100 && self.nodes > 1000 && share > allowed_share(self.nodes) {
            return Err(EXCESSIVE.to_owned());
        }
        Ok(())
    }
}

/// The share of a document's nodes that may come from aliases: 99 % of a small document's, 10 % of a large one's.
fn allowed_share(nodes: usize) -> f64 {
    const SMALL: f64 = 400_000.0;
    const LARGE: f64 = 4_000_000.0;
    0.99 - 0.89 * ((nodes as f64 - SMALL) / (LARGE - SMALL)).clamp(0.0, 1.0)
}
