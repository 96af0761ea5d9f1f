//! A message and its fields, as schemas.

use super::{GVK, Schemas};
use crate::http::documents::openapi::dialect::Dialect;
use crate::http::documents::openapi::names;
use crate::schema::types::{Cardinality, Field, FieldKind, Format, Merging, Message, Role, Union};
use crate::tree::{Map, Value, json};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";

impl Schemas<'_> {
    /// The schema of a type; `name` is that of the schema.
    pub(super) fn message(&self, name: &str, message: &Message) -> Value {
        let mut schema = Map::new();
        if let Some(text) = self.library.texts.of_type(name) {
            schema.insert("description", json!(text));
        }
        match message.format {
            Format::Object => self.put_members(&mut schema, name, message),
            format => self.put_format(&mut schema, format, message),
        }
        put_merging(&mut schema, &message.merging, MAP_TYPE);
        if !message.unions.is_empty() {
            let unions: Value = message.unions.iter().map(union).collect();
            schema.insert("x-kubernetes-unions", unions);
        }
        if let Some(kinds) = self.kinds(message) {
            schema.insert(GVK, kinds);
        }
        schema.into()
    }

    fn put_members(&self, schema: &mut Map, owner: &str, message: &Message) {
        let members = self.members(message);
        let described = |name: &str, schema| (name.to_owned(), self.described(owner, name, schema));
        let mut properties: Map =
            members.iter().map(|field| described(&field.json_name, self.property(field))).collect();
        // To upstream, an event is no object.
        if message.role != Role::Part && message.name != "WatchEvent" {
            properties.extend(["apiVersion", "kind"].map(|name| described(name, json!({"type": "string"}))));
        }
        properties.sort_keys();
        schema.insert("type", json!("object"));
        let required: Vec<&str> =
            members.iter().filter(|field| field.required).map(|field| &*field.json_name).collect();
        if !required.is_empty() {
            schema.insert("required", json!(required));
        }
        if !properties.is_empty() {
            schema.insert("properties", properties.into());
        }
    }

    /// The schema with what is said of the field.
    fn described(&self, owner: &str, field: &str, mut schema: Value) -> Value {
        let Some(text) = self.library.texts.of_field(owner, field) else { return schema };
        let alone = schema.get("$ref").is_some() && self.dialect == Dialect::V3;
        if let Some(reference) =
            schema.as_object_mut().filter(|_| alone).and_then(|all| all.shift_remove("$ref"))
        {
            schema["allOf"] = json!([{"$ref": reference}]);
        }
        schema["description"] = json!(text);
        schema
    }

    /// Types whose JSON is not an object with their fields.
    fn put_format(&self, schema: &mut Map, format: Format, message: &Message) {
        let said = match (format, self.dialect) {
            (Format::Time | Format::MicroTime, _) => json!({"type": "string", "format": "date-time"}),
            (Format::Quantity, Dialect::V3) => json!({"oneOf": [{"type": "string"}, {"type": "number"}]}),
            (Format::Quantity, Dialect::V2) => json!({"type": "string"}),
            (Format::IntOrString, Dialect::V3) => {
                json!({"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]})
            }
            (Format::IntOrString, Dialect::V2) => json!({"type": "string", "format": "int-or-string"}),
            (Format::Raw, _) if message.name != "JSON" => json!({"type": "object"}),
            _ => json!({}),
        };
        schema.extend(said.as_object().cloned().unwrap_or_default());
    }

    /// The fields of a message, those of its inlined parts among them.
    pub(super) fn members<'m>(&'m self, message: &'m Message) -> Vec<&'m Field> {
        let mut members = Vec::with_capacity(message.fields.len());
        for field in message.fields {
            match field.kind {
                FieldKind::Message(id) if field.inline => {
                    members.extend(self.members(self.types.message(id)))
                }
                _ => members.push(field),
            }
        }
        members
    }

    /// The type that a field's schema names; lists with a type of their own are written out instead.
    pub(super) fn referred(&self, field: &Field) -> Option<&Message> {
        let FieldKind::Message(id) = field.kind else { return None };
        Some(self.types.message(id)).filter(|message| message.format != Format::List)
    }

    fn property(&self, field: &Field) -> Value {
        let mut schema = match field.cardinality {
            Cardinality::Single => {
                let default = match &field.default {
                    Some(said) => serde_json::from_str(said).ok(),
                    None if field.pointer => None,
                    None => self.zero(field).filter(|zero| field.always || zero.is_object()),
                };
                self.value(field, default)
            }
            // Elements are never absent, and so always have a default.
            Cardinality::List => {
                json!({"type": "array", "items": self.value(field, self.zero(field))})
            }
            Cardinality::Map => {
                json!({"type": "object", "additionalProperties": self.value(field, self.zero(field))})
            }
        };
        if let Some(schema) = schema.as_object_mut() {
            // To Go, bytes are a list.
            let list = field.cardinality == Cardinality::List || field.kind == FieldKind::Bytes;
            put_merging(schema, &field.merging, if list { LIST_TYPE } else { MAP_TYPE });
            if let Some(strategic) = &field.strategic {
                schema.insert("x-kubernetes-patch-strategy", json!(strategic.strategy));
                if !strategic.merge_key.is_empty() {
                    schema.insert("x-kubernetes-patch-merge-key", json!(strategic.merge_key));
                }
            }
        }
        schema
    }

    /// A field's value, or an element of it. Of defaults v2 says nothing.
    fn value(&self, field: &Field, default: Option<Value>) -> Value {
        let default = default.filter(|_| self.dialect == Dialect::V3);
        let mut schema = match self.referred(field) {
            Some(message) => {
                let reference = self.dialect.reference(&names::message(message));
                // In v3 nothing else counts beside a reference.
                if default.is_some() { json!({"allOf": [reference]}) } else { reference }
            }
            None => scalar(field.kind),
        };
        if !field.allowed.is_empty() {
            schema["enum"] = field.allowed.iter().map(|value| json!(&**value)).collect();
        }
        if let Some(default) = default {
            schema["default"] = default;
        }
        // The elements of a list of strings that is a type of its own.
        if let Some(items) = schema.get_mut("items").filter(|_| self.dialect == Dialect::V3) {
            items["default"] = json!("");
        }
        schema
    }

    /// The default of a value that cannot be absent.
    fn zero(&self, field: &Field) -> Option<Value> {
        match field.kind {
            FieldKind::Bool => Some(json!(false)),
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => Some(json!(0)),
            FieldKind::String => Some(json!("")),
            FieldKind::Bytes => None,
            FieldKind::Message(id) => (self.types.message(id).format == Format::Object).then(|| json!({})),
        }
    }
}

fn scalar(kind: FieldKind) -> Value {
    match kind {
        FieldKind::Bool => json!({"type": "boolean"}),
        FieldKind::Int32 => json!({"type": "integer", "format": "int32"}),
        FieldKind::Int64 => json!({"type": "integer", "format": "int64"}),
        FieldKind::Double => json!({"type": "number", "format": "double"}),
        FieldKind::String => json!({"type": "string"}),
        FieldKind::Bytes => json!({"type": "string", "format": "byte"}),
        // The only messages without a schema of their own are lists of strings.
        FieldKind::Message(_) => json!({"type": "array", "items": {"type": "string"}}),
    }
}

fn put_merging(schema: &mut Map, merging: &Merging, extension: &str) {
    let (word, keys) = match merging {
        Merging::Unsaid => return,
        Merging::Atomic => ("atomic", None),
        Merging::Granular => ("granular", None),
        Merging::Set => ("set", None),
        Merging::Map(keys) => ("map", Some(keys)),
    };
    schema.insert(extension, json!(word));
    if let Some(keys) = keys {
        let keys: Value = keys.iter().map(|key| json!(&**key)).collect();
        schema.insert("x-kubernetes-list-map-keys", keys);
    }
}

fn union(union: &Union) -> Value {
    let members: Map =
        union.members.iter().map(|(field, value)| (field.to_string(), json!(&**value))).collect();
    let mut schema = Map::new();
    if let Some(discriminator) = &union.discriminator {
        schema.insert("discriminator", json!(&**discriminator));
    }
    schema.insert("fields-to-discriminateBy", members.into());
    schema.into()
}
