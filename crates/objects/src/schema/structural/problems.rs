//! Problems that strict decoding finds in an object with a structural schema.

use super::place::ValuePath;
use super::prune::UnknownMembers;
use super::{Additional, SchemaNode, Structural};
use crate::gotext::quote;
use crate::json::Node;
use crate::schema::types;
use crate::schema::types::GoShape;
use crate::tree::Text;

impl Structural {
    /// Members that are there twice, then unknown members of metadata, then those that pruning drops, sorted, and unknown
    /// members of the metadata of embedded resources.
    pub fn problems(&self, text: &Node) -> Vec<String> {
        let mut found = types::duplicates(text);
        if let Some(metadata) = text.member("metadata") {
            found.extend(unknown_in(&self.metadata, metadata).map(|path| field(&format!("metadata.{path}"))));
        }
        let mut unknown = Unknown { metadata: &self.metadata, found: Vec::new(), of_metadata: Vec::new() };
        unknown.value(Some(&self.root), text, self.root.unknown_members(), &ValuePath::ROOT);
        // What is there twice was told above, and is unknown once.
        unknown.found.sort();
        unknown.found.dedup();
        unknown.of_metadata.sort();
        unknown.of_metadata.dedup();
        found.extend(unknown.found.iter().chain(&unknown.of_metadata).map(|path| field(path)));
        found
    }
}

fn field(path: &str) -> String {
    format!("unknown field {}", quote(path))
}

/// The unknown members of metadata.
fn unknown_in(metadata: &GoShape, text: &Node) -> impl Iterator<Item = String> + use<> {
    types::problems(Some(metadata), text).into_iter().filter_map(|problem| {
        let path = problem.strip_prefix("unknown field \"")?.strip_suffix('"')?;
        Some(path.to_owned())
    })
}

/// The paths of members that pruning drops.
struct Unknown<'a> {
    metadata: &'a GoShape,
    found: Vec<String>,
    /// The paths of unknown members of embedded resources' metadata.
    of_metadata: Vec<String>,
}

impl Unknown<'_> {
    fn value(
        &mut self,
        schema: Option<&SchemaNode>,
        node: &Node,
        unknown: UnknownMembers,
        at: &ValuePath<'_>,
    ) {
        match node {
            Node::Object(members) => {
                members.iter().for_each(|(name, value)| self.member(schema, name, value, unknown, at));
            }
            Node::Array(items) => {
                let schema = schema.and_then(|schema| schema.items.as_deref());
                let unknown = SchemaNode::unknown_members_of_items(schema, unknown);
                for (index, item) in items.iter().enumerate() {
                    self.value(schema, item, unknown, &at.item(index));
                }
            }
            Node::Number(_) | Node::Scalar => {}
        }
    }

    fn member(
        &mut self,
        schema: Option<&SchemaNode>,
        name: &Text,
        value: &Node,
        unknown: UnknownMembers,
        at: &ValuePath<'_>,
    ) {
        let Some(schema) = schema.filter(|schema| schema.knows(name)) else {
            if unknown == UnknownMembers::Dropped {
                self.found.push(at.property(name).dotted());
            }
            return;
        };
        let property = at.property(name);
        if schema.is_object_member(name) {
            if name == "metadata" && !at.is_root() {
                let unknown = unknown_in(self.metadata, value).map(|path| format!("{property}.{path}"));
                self.of_metadata.extend(unknown);
            }
            return;
        }
        let (below, place) = match (schema.properties.get(name), &schema.additional) {
            (Some(of_property), _) => (Some(of_property), property),
            (None, Additional::Schema(additional)) => (Some(&**additional), at.key(name)),
            (None, Additional::Allowed(_) | Additional::Unsaid) => (None, at.key(name)),
        };
        let unknown = below.map_or(UnknownMembers::Dropped, SchemaNode::unknown_members);
        self.value(below, value, unknown, &place);
    }
}
