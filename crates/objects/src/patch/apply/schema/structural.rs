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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::apply::fields_v1;
    use crate::patch::apply::owned::owned;
    use crate::patch::apply::schema::Schema;
    use crate::schema::builtin;
    use crate::schema::kind::{Kind, Shape};
    use crate::schema::names::Gvk;
    use crate::tree::{Map, Value};

    /// Expected results, made with upstream's own code by `tests/upstream/structural`.
    const UPSTREAM: &str = include_str!("../../../../../../testdata/structural/upstream.jsonl");

    /// `tests/upstream/structural random` makes schemas and objects.
    const RANDOM: &[u8] = include_bytes!("../../../../../../testdata/structural/random.jsonl.gz");

    fn schema_of(line: &Map) -> Schema {
        let shape = Structural::read(line["schema"].as_object().expect("a schema"), &builtin::types());
        let shape = Shape::Structural(Arc::new(shape.expect("structural")));
        let kind = Kind { gvk: Gvk::fixed("example.com/v1", "Widget"), shape };
        Schema::of(&kind).expect("a schema")
    }

    fn fields_of(schema: &Schema, object: &Map) -> Value {
        let mut object = object.clone();
        object.shift_remove("metadata");
        let found = owned(schema, &object);
        let mut found: Value = serde_json::from_str(&fields_v1::encode(&found)).expect("JSON");
        found.sort_all();
        found
    }

    fn sorted(value: &Value) -> Value {
        let mut value = value.clone();
        value.sort_all();
        value
    }

    #[test]
    fn objects_own_what_upstream_says_they_own() {
        let mut compared = 0;
        for line in UPSTREAM.lines() {
            let line: Map = serde_json::from_str(line).expect("JSON");
            let Some(want) = line.get("fields") else { continue };
            let object = line["defaulted"].as_object().expect("an object");
            assert_eq!(fields_of(&schema_of(&line), object), sorted(want), "{} {object:?}", line["name"]);
            compared += 1;
        }
        assert!(compared >= 25, "{compared}");
    }

    #[test]
    fn random_objects_own_what_upstream_says_they_own() {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(RANDOM), &mut text).expect("gzip");
        let mut compared = 0;
        for line in text.lines() {
            let line: Map = serde_json::from_str(line).expect("JSON");
            let schema = schema_of(&line);
            for case in line["cases"].as_array().expect("cases") {
                let Some(want) = case.get("fields") else { continue };
                let object = case.get("defaulted").unwrap_or(&case["conformed"]);
                let found = fields_of(&schema, object.as_object().expect("an object"));
                assert_eq!(found, sorted(want), "{}\n{object}", line["schema"]);
                compared += 1;
            }
        }
        assert!(compared > 1000, "{compared}");
    }
}
