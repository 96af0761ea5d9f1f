//! How values of custom resources are merged, derived from their structural schemas as kube-openapi's `schemaconv`
//! does.

use std::collections::HashMap;
use std::sync::Arc;

use super::{ATOMIC, Atom, Builder, DEDUCED, FieldType, ListType, MapType, Relation, Scalar, TypeId};
use crate::schema::structural::{self, Additional, SchemaNode, Structural, ValueType};
use crate::schema::types::MessageId;

impl Builder<'_> {
    /// The type of a whole object.
    pub(super) fn structural(&mut self, shape: &Structural) -> TypeId {
        StructuralBuilder { builder: self, metadata: shape.metadata.message }.node(&shape.root, false)
    }
}

struct StructuralBuilder<'b, 't> {
    builder: &'b mut Builder<'t>,
    metadata: MessageId,
}

impl StructuralBuilder<'_, '_> {
    /// The type of a schema. If a schema preserves unknown fields, so do all schemas below it.
    fn node(&mut self, node: &SchemaNode, preserves: bool) -> TypeId {
        let preserves = preserves || node.preserves_unknown;
        let scalar = |scalar| Atom { scalar: Some(scalar), ..Atom::default() };
        let atom = match node.value_type {
            ValueType::Any => Atom {
                scalar: Some(Scalar::Untyped),
                list: Some(self.list(node, preserves)),
                map: Some(self.map(node, preserves)),
            },
            ValueType::Object => Atom { map: Some(self.map(node, preserves)), ..Atom::default() },
            ValueType::Array => Atom { list: Some(self.list(node, preserves)), ..Atom::default() },
            ValueType::Integer | ValueType::Number => scalar(Scalar::Numeric),
            ValueType::Boolean => scalar(Scalar::Boolean),
            ValueType::String if matches!(node.format.as_str(), "" | "byte") => scalar(Scalar::String),
            ValueType::String | ValueType::Odd => scalar(Scalar::Untyped),
        };
        self.builder.add(atom)
    }

    fn list(&mut self, node: &SchemaNode, preserves: bool) -> ListType {
        let element = node.items.as_ref().map_or(ATOMIC, |items| self.node(items, preserves));
        let relation = match &node.list_type {
            structural::ListType::Atomic => Relation::Atomic,
            structural::ListType::Set => Relation::Set,
            structural::ListType::Map(keys) => {
                Relation::Keyed(keys.iter().map(|key| Arc::from(key.as_str())).collect())
            }
        };
        ListType { element, relation }
    }

    fn map(&mut self, node: &SchemaNode, preserves: bool) -> MapType {
        let mut fields: HashMap<Arc<str>, FieldType> = HashMap::new();
        for (name, property) in node.properties.iter() {
            let default = property.default.as_deref().cloned();
            let field = FieldType { id: self.node(property, preserves), default };
            fields.insert(name.as_str().into(), field);
        }
        if node.embedded {
            let text = self.builder.scalar(Scalar::String);
            let metadata = self.builder.message(self.metadata);
            for (name, id) in [("apiVersion", text), ("kind", text), ("metadata", metadata)] {
                fields.insert(name.into(), FieldType { id, default: None });
            }
        }
        let element = match &node.additional {
            Additional::Schema(schema) => Some(self.node(schema, preserves)),
            Additional::Allowed(allowed) => allowed.then_some(DEDUCED),
            Additional::Unsaid => (preserves || fields.is_empty()).then_some(DEDUCED),
        };
        MapType { fields, element, atomic: node.is_atomic_map }
    }
}
