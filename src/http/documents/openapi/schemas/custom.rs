//! Schemas of custom resources, from what their CustomResourceDefinition declares (apiextensions-apiserver
//! `pkg/controller/openapi/builder`, and its `v2/conversion.go` for what Swagger cannot say).

use super::{GVK, Library, gvk};
use crate::http::documents::openapi::dialect::Dialect;
use crate::http::documents::openapi::names;
use crate::schema::kind::Shape;
use crate::schema::resource::ResourceDefinition;
use crate::tree::{Map, Value, json};

/// The texts of what all objects have stand at any kind of these.
const SOME_KIND: &str = "io.k8s.api.core.v1.Pod";
const SOME_LIST: &str = "io.k8s.api.core.v1.PodList";

/// The library of texts has none for metadata of lists.
const LIST_METADATA: &str = "Standard list metadata. More info: \
                             https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// The descriptions of the apiVersion and kind of embedded resources.
const EMBEDDED_TEXTS: [&str; 2] = [
    "apiVersion defines the versioned schema of this representation of an object. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
    "kind is a string value representing the type of this object. In CamelCase. More info: \
     https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
];

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// The members of a schema that are copied as they are, unless they are empty.
const COPIED: [&str; 22] = [
    "default",
    "description",
    "enum",
    "example",
    "externalDocs",
    "format",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "required",
    "title",
    "type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The members of a schema that say nothing when they are false.
const FLAGS: [&str; 7] =
    ["exclusiveMaximum", "exclusiveMinimum", "nullable", "uniqueItems", EMBEDDED, INT_OR_STRING, PRESERVES];

const RULES: &str = "x-kubernetes-validations";

/// Renders the schemas of one resource in one version.
pub(super) struct CustomSchemas<'a> {
    pub library: &'a Library,
    pub dialect: Dialect,
    pub definition: &'a ResourceDefinition,
}

impl CustomSchemas<'_> {
    /// The schema of an object.
    pub fn object(&self) -> Value {
        let spec = self.definition.declaration.as_ref().and_then(|declaration| declaration.spec());
        let version = spec.as_ref().and_then(|spec| self.version(spec));
        let preserves = spec.as_ref().is_some_and(|spec| is_set(spec, "preserveUnknownFields"));
        let mut schema = match version.and_then(open_api_schema).filter(|_| self.is_structural()) {
            Some(declared) if self.shows(declared, preserves) => self.native(declared),
            // Clients take an object without fields for one that may hold anything.
            _ => [("type".to_owned(), json!("object"))].into_iter().collect(),
        };
        schema.insert(GVK, json!([gvk(self.definition.gvk())]));
        put_selectable_fields(&mut schema, version);
        schema.into()
    }

    /// The schema of a list.
    pub fn list(&self) -> Value {
        let spec = self.definition.declaration.as_ref().and_then(|declaration| declaration.spec());
        let (kind, list) = (self.definition.kind_name(), &self.definition.list_kind);
        let items = format!(
            "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
            self.definition.plural
        );
        let mut properties = Map::new();
        properties.insert("apiVersion", self.text_of(SOME_KIND, "apiVersion"));
        properties.insert(
            "items",
            json!({"description": items, "type": "array",
                "items": self.dialect.reference(&names::schema(&self.definition.kind))}),
        );
        properties.insert("kind", self.text_of(SOME_KIND, "kind"));
        let mut metadata = self.reference(SOME_LIST, names::LIST_META);
        metadata["description"] = json!(LIST_METADATA);
        properties.insert("metadata", metadata);
        let gvk = gvk(&self.definition.group_version().with_kind(list.clone()));
        let mut schema = Map::new();
        schema.insert("description", json!(format!("{list} is a list of {kind}")));
        schema.insert("type", json!("object"));
        schema.insert("required", json!(["items"]));
        schema.insert("properties", properties.into());
        schema.insert(GVK, json!([gvk]));
        put_selectable_fields(&mut schema, spec.as_ref().and_then(|spec| self.version(spec)));
        schema.into()
    }

    fn version<'s>(&self, spec: &'s Map) -> Option<&'s Map> {
        let versions = spec.get("versions").and_then(Value::as_array)?;
        versions.iter().find(|version| version["name"] == self.definition.version())?.as_object()
    }

    fn is_structural(&self) -> bool {
        matches!(self.definition.kind.shape, Shape::Structural(_))
    }

    /// Swagger has no word for an object that keeps what it does not know.
    fn shows(&self, declared: &Map, preserves: bool) -> bool {
        self.dialect == Dialect::V3 || !(preserves || is_set(declared, PRESERVES))
    }

    /// The declared schema with what all objects have.
    fn native(&self, declared: &Map) -> Map {
        let mut schema = self.structural(declared);
        self.complete_embedded(&mut schema);
        let texts = ["apiVersion", "kind"].map(|field| self.text_of(SOME_KIND, field));
        self.put_object_members(&mut schema, texts);
        schema
    }

    fn put_object_members(&self, schema: &mut Map, [api_version, kind]: [Value; 2]) {
        let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            properties.insert("apiVersion", api_version);
            properties.insert("kind", kind);
            properties.insert("metadata", self.reference(SOME_KIND, names::OBJECT_META));
            properties.sort_keys();
        }
    }

    /// A text that all objects have.
    fn text_of(&self, owner: &str, field: &str) -> Value {
        let mut schema = json!({"type": "string"});
        if let Some(text) = self.library.texts.of_field(owner, field) {
            schema["description"] = json!(text);
        }
        schema
    }

    fn reference(&self, owner: &str, metadata: &str) -> Value {
        let reference = self.dialect.reference(metadata);
        let mut schema = match self.dialect {
            Dialect::V2 => reference,
            Dialect::V3 => json!({"allOf": [reference]}),
        };
        if let Some(text) = self.library.texts.of_field(owner, "metadata") {
            schema["description"] = json!(text);
        }
        schema
    }

    /// A schema and all below it. Definitions that nest deeper than objects may cannot be stored.
    fn structural(&self, declared: &Map) -> Map {
        let mut schema = copied(declared);
        self.put_below(&mut schema, declared, |below| self.structural(below));
        match declared.get("additionalProperties") {
            Some(Value::Object(additional)) => {
                schema.insert("additionalProperties", self.structural(additional).into());
            }
            Some(Value::Bool(allowed)) => {
                schema.insert("additionalProperties", (*allowed).into());
            }
            _ => {}
        }
        put_nested(&mut schema, declared);
        if is_set(declared, INT_OR_STRING) {
            unfold(&mut schema);
        }
        if self.dialect == Dialect::V2 {
            swagger(&mut schema, declared);
        }
        schema
    }

    fn put_below(&self, schema: &mut Map, declared: &Map, render: impl Fn(&Map) -> Map) {
        if let Some(items) = declared.get("items").and_then(Value::as_object) {
            schema.insert("items", render(items).into());
        }
        if let Some(properties) = declared.get("properties").and_then(Value::as_object) {
            let below = properties.iter().filter_map(|(name, below)| Some((name, below.as_object()?)));
            let mut below: Map = below.map(|(name, below)| (name.clone(), render(below).into())).collect();
            below.sort_keys();
            if !below.is_empty() {
                schema.insert("properties", below.into());
            }
        }
    }

    /// Embedded resources have the members of objects, from the innermost outwards.
    fn complete_embedded(&self, schema: &mut Map) {
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties
                .values_mut()
                .filter_map(Value::as_object_mut)
                .for_each(|below| self.complete_embedded(below));
        }
        for member in ["items", "additionalProperties"] {
            if let Some(Value::Object(below)) = schema.get_mut(member) {
                self.complete_embedded(below);
            }
        }
        if !is_set(schema, EMBEDDED) || (self.dialect == Dialect::V2 && is_set(schema, PRESERVES)) {
            return;
        }
        let texts = EMBEDDED_TEXTS.map(|text| json!({"type": "string", "description": text}));
        self.put_object_members(schema, texts);
        let required = schema.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            for member in ["kind", "apiVersion"] {
                if !required.iter().any(|name| name == member) {
                    required.push(member.into());
                }
            }
        }
    }
}

fn open_api_schema(version: &Map) -> Option<&Map> {
    version.get("schema")?.get("openAPIV3Schema")?.as_object()
}

fn put_selectable_fields(schema: &mut Map, version: Option<&Map>) {
    let fields = version.and_then(|version| version.get("selectableFields")).and_then(Value::as_array);
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return };
    let path = |field: &Value| {
        let path = field["jsonPath"].as_str().unwrap_or_default();
        json!({"fieldPath": path.strip_prefix('.').unwrap_or(path)})
    };
    schema.insert("x-kubernetes-selectable-fields", fields.iter().map(path).collect());
}

fn is_set(schema: &Map, flag: &str) -> bool {
    schema.get(flag).and_then(Value::as_bool).unwrap_or_default()
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// The members of a schema that are about the value itself.
fn copied(declared: &Map) -> Map {
    let plain = COPIED.iter().chain([&RULES]).filter_map(|name| Some((*name, declared.get(name)?)));
    // An empty text is a default, and so is an empty list.
    let plain = plain.filter(|(name, value)| matches!(*name, "default" | "example") || !is_empty(value));
    let flags = FLAGS.iter().filter(|flag| is_set(declared, flag)).map(|flag| (*flag, Value::Bool(true)));
    let mut schema: Map = plain.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    schema.extend(flags.map(|(name, value)| (name.to_owned(), value)));
    schema
}

/// `allOf`, `anyOf`, `oneOf` and `not`.
fn put_nested(schema: &mut Map, declared: &Map) {
    for junctor in ["allOf", "anyOf", "oneOf"] {
        let clauses = declared.get(junctor).and_then(Value::as_array);
        if let Some(clauses) = clauses.filter(|clauses| !clauses.is_empty()) {
            let clauses = clauses.iter().filter_map(Value::as_object);
            schema.insert(junctor, clauses.map(|clause| Value::Object(nested(clause))).collect());
        }
    }
    if let Some(clause) = declared.get("not").and_then(Value::as_object) {
        schema.insert("not", nested(clause).into());
    }
}

/// A clause, which only validates.
fn nested(declared: &Map) -> Map {
    let mut schema = copied(declared);
    if let Some(items) = declared.get("items").and_then(Value::as_object) {
        schema.insert("items", nested(items).into());
    }
    if let Some(properties) = declared.get("properties").and_then(Value::as_object) {
        let below = properties.iter().filter_map(|(name, below)| Some((name, below.as_object()?)));
        let mut below: Map = below.map(|(name, below)| (name.clone(), nested(below).into())).collect();
        below.sort_keys();
        if !below.is_empty() {
            schema.insert("properties", below.into());
        }
    }
    put_nested(&mut schema, declared);
    schema
}

/// Spells out what an integer or a text is, where the schema does not.
fn unfold(schema: &mut Map) {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first = schema.get("allOf").and_then(|clauses| clauses.get(0));
    let says_so = schema.get("anyOf") == Some(&either) || first == Some(&json!({"anyOf": either.clone()}));
    if says_so {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf", either);
        return;
    }
    let clauses = schema.entry("allOf").or_insert_with(|| json!([]));
    if let Value::Array(clauses) = clauses {
        clauses.insert(0, json!({"anyOf": either}));
    }
}

/// Takes out what Swagger cannot say, and what kubectl would read wrongly.
fn swagger(schema: &mut Map, declared: &Map) {
    for member in ["allOf", "anyOf", "oneOf", "not", "default"] {
        schema.shift_remove(member);
    }
    if schema.shift_remove("nullable").is_some() {
        for member in ["type", "items", "properties"] {
            schema.shift_remove(member);
        }
    }
    if is_set(schema, PRESERVES) {
        schema.shift_remove("items");
        schema.shift_remove("properties");
        if schema.get("type").is_some_and(|kind| kind == "object") {
            schema.shift_remove("type");
        }
    }
    if !schema.contains_key("items") && schema.get("type").is_some_and(|kind| kind == "array") {
        schema.shift_remove("type");
    }
    let additional = declared.get("additionalProperties").and_then(Value::as_object);
    if additional.is_some_and(|additional| is_set(additional, "nullable")) {
        schema.shift_remove("required");
        return;
    }
    // Properties that are gone by now do not count.
    let shown = schema.contains_key("properties");
    let properties = declared.get("properties").and_then(Value::as_object).filter(|_| shown);
    let is_nullable = |name: &Value| {
        let property = name.as_str().and_then(|name| properties?.get(name)?.as_object());
        property.is_some_and(|property| is_set(property, "nullable"))
    };
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !is_nullable(name));
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

#[cfg(test)]
mod tests;
