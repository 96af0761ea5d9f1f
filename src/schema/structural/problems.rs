//! What strict decoding says of an object with a structural schema.

use super::{Additional, SchemaNode, Structural, UnknownMembers};
use crate::gotext::quote;
use crate::json::Node;
use crate::schema::types;
use crate::tree::Text;

impl Structural {
    /// Members that are there twice, then unknown members of metadata, then those that pruning drops, sorted.
    pub fn problems(&self, text: &Node) -> Vec<String> {
        let mut found = types::duplicates(text);
        if let Some(metadata) = text.member("metadata") {
            let unknown = types::problems(Some(&self.metadata), metadata).into_iter();
            let unknown = unknown.filter_map(|problem| {
                let path = problem.strip_prefix("unknown field \"")?;
                Some(format!("unknown field \"metadata.{path}"))
            });
            found.extend(unknown);
        }
        let mut unknown = Unknown { path: String::new(), found: Vec::new() };
        unknown.value(Some(&self.root), text, self.root.unknown_members());
        unknown.found.sort();
        found.extend(unknown.found.iter().map(|path| format!("unknown field {}", quote(path))));
        found
    }
}

/// The paths of members that pruning drops.
struct Unknown {
    path: String,
    found: Vec<String>,
}

impl Unknown {
    fn value(&mut self, schema: Option<&SchemaNode>, node: &Node, unknown: UnknownMembers) {
        match node {
            Node::Object(members) => {
                members.iter().for_each(|(name, value)| self.member(schema, name, value, unknown));
            }
            Node::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                let unknown = SchemaNode::unknown_members_of_items(schema, unknown);
                for (index, item) in items.iter().enumerate() {
                    self.below(&format!("[{index}]"), |below| below.value(schema, item, unknown));
                }
            }
            Node::Number(_) | Node::Scalar => {}
        }
    }

    fn member(&mut self, schema: Option<&SchemaNode>, name: &Text, value: &Node, unknown: UnknownMembers) {
        let dot = if self.path.is_empty() { "" } else { "." };
        let step = format!("{dot}{name}");
        let Some(schema) = schema.filter(|schema| schema.knows(name)) else {
            if unknown == UnknownMembers::Dropped {
                self.found.push(format!("{}{step}", self.path));
            }
            return;
        };
        let below = match (schema.properties.get(name), &schema.additional) {
            _ if schema.is_object_member(name) => return,
            (Some(property), _) => Some(property),
            (None, Additional::Schema(additional)) => Some(&**additional),
            (None, Additional::Allowed(_) | Additional::Unsaid) => None,
        };
        let unknown = below.map_or(UnknownMembers::Dropped, SchemaNode::unknown_members);
        self.below(&step, |walker| walker.value(below, value, unknown));
    }

    fn below(&mut self, step: &str, visit: impl FnOnce(&mut Self)) {
        let end = self.path.len();
        self.path.push_str(step);
        visit(self);
        self.path.truncate(end);
    }
}
