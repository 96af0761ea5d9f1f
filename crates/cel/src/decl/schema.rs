//! Declarations from a schema of a CustomResourceDefinition, as `apiserver/pkg/cel/common/schemas.go` reads them: types, and
//! how large values may be.

use std::collections::HashSet;
use std::sync::Arc;

use rowplane_values::tree::{Map, Value};

use super::{Decl, FieldDecl, Kind, ListDecl, ListKind, ObjectDecl};
use crate::reserved::escape;

/// The most bytes that a request may hold.
pub const LARGEST_REQUEST: i64 = 3 << 20;
/// The longest name of an object.
const LONGEST_NAME: i64 = 253;

/// The type of a schema's values, with this name for its structs. `root` is the root of a resource, here or embedded,
/// which has a kind and a name whatever the schema says.
pub fn of_schema(schema: &Value, root: bool, name: &str) -> Decl {
    let nullable = flag(schema, "nullable");
    let mut decl = Reader { name }.read(schema, root);
    decl.nullable = nullable;
    decl
}

fn flag(schema: &Value, name: &str) -> bool {
    schema.get(name).and_then(Value::as_bool) == Some(true)
}

fn text<'s>(schema: &'s Value, name: &str) -> &'s str {
    schema.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(schema: &Value, name: &str) -> Option<i64> {
    schema.get(name).and_then(Value::as_i64).map(|number| number.max(0))
}

fn sized(kind: Kind, min_size: i64, max_elements: i64) -> Decl {
    Decl { kind, nullable: false, min_size, max_elements }
}

fn is_embedded(schema: &Value) -> bool {
    flag(schema, "x-kubernetes-embedded-resource")
}

/// Whether the schema of a resource itself says what the members are that every resource has.
fn declares_own_members(schema: &Value) -> bool {
    let member = |of: &Value, name: &str, kind: &str| {
        of.get("properties").and_then(|all| all.get(name)).is_some_and(|member| text(member, "type") == kind)
    };
    let metadata = schema.get("properties").and_then(|all| all.get("metadata"));
    member(schema, "kind", "string")
        && member(schema, "apiVersion", "string")
        && member(schema, "metadata", "object")
        && metadata.is_some_and(|of| member(of, "name", "string") && member(of, "generateName", "string"))
}

struct Reader<'n> {
    name: &'n str,
}

impl Reader<'_> {
    fn read(&self, schema: &Value, root: bool) -> Decl {
        if flag(schema, "x-kubernetes-int-or-string") {
            let longest = number(schema, "maxLength").map_or(LARGEST_REQUEST - 2, |length| length * 4);
            return sized(Kind::IntOrString, 1, longest);
        }
        match text(schema, "type") {
            "array" => self.list(schema),
            "object" => self.object(schema, root),
            "string" => string(schema),
            "boolean" => sized(Kind::Bool, 4, 0),
            "number" => sized(Kind::Double, 1, 0),
            "integer" => sized(Kind::Int, 1, 0),
            _ => Decl::of(Kind::Preserved),
        }
    }

    fn below(&self, schema: &Value, step: &str) -> Decl {
        of_schema(schema, is_embedded(schema), &format!("{}{step}", self.name))
    }

    fn list(&self, schema: &Value) -> Decl {
        let Some(items) = schema.get("items").filter(|items| items.is_object()) else {
            return Decl::of(Kind::Untyped);
        };
        let items = self.below(items, ".@idx");
        let most = number(schema, "maxItems").unwrap_or((LARGEST_REQUEST - 2) / (items.min_size + 1));
        let kind = match text(schema, "x-kubernetes-list-type") {
            "set" => ListKind::Set,
            "map" => {
                let keys =
                    schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten();
                let keys = keys.filter_map(Value::as_str);
                ListKind::Map(keys.map(|key| escape(key).unwrap_or_else(|| key.to_owned())).collect())
            }
            _ => ListKind::Atomic,
        };
        sized(Kind::List(Arc::new(ListDecl { items, kind })), 2, most)
    }

    fn object(&self, schema: &Value, root: bool) -> Decl {
        let root = root && !declares_own_members(schema);
        if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
            let values = self.below(values, ".@elem");
            let most =
                number(schema, "maxProperties").unwrap_or((LARGEST_REQUEST - 2) / (values.min_size + 6));
            return sized(Kind::Map(Arc::new(values)), 2, most);
        }
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let required: HashSet<&str> = required.filter_map(Value::as_str).collect();
        let mut size = 2;
        let mut fields = Vec::new();
        for (name, property) in properties {
            if root && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                continue;
            }
            let escaped = escape(name);
            let decl = self.below(property, &format!(".{}", escaped.as_deref().unwrap_or_default()));
            if required.contains(name.as_str())
                && property.get("default").is_none()
                && decl.cel_type().is_some()
            {
                size += name.len() as i64 + decl.min_size + 4;
            }
            fields.push(FieldDecl { name: name.clone(), escaped: escaped.map(Into::into), decl });
        }
        if root {
            let own = self.of_every_resource(properties.get("metadata"));
            for field in &own {
                if required.contains(field.name.as_str()) {
                    size += field.name.len() as i64 + field.decl.min_size + 4;
                }
            }
            fields.extend(own);
        }
        sized(Kind::Object(Arc::new(ObjectDecl::new(self.name, fields))), size, 0)
    }

    fn of_every_resource(&self, metadata: Option<&Value>) -> [FieldDecl; 3] {
        let field = |name: &str, decl| FieldDecl { name: name.into(), escaped: Some(name.into()), decl };
        let longest = |name: &str, most: i64| {
            let given = metadata
                .and_then(|of| of.get("properties")?.get(name))
                .and_then(|of| number(of, "maxLength"));
            sized(Kind::String, 2, given.map_or(most, |given| given.min(most)) * 4)
        };
        let names = vec![
            field("name", longest("name", LONGEST_NAME)),
            field("generateName", longest("generateName", LONGEST_NAME - 1)),
        ];
        let metadata = ObjectDecl::new(&format!("{}.metadata", self.name), names);
        let any = || sized(Kind::String, 2, LARGEST_REQUEST - 2);
        [
            field("apiVersion", any()),
            field("kind", any()),
            field("metadata", sized(Kind::Object(Arc::new(metadata)), 2, 0)),
        ]
    }
}

fn string(schema: &Value) -> Decl {
    let longest = number(schema, "maxLength");
    match text(schema, "format") {
        "byte" => sized(Kind::Bytes, 2, longest.unwrap_or(LARGEST_REQUEST - 2)),
        "duration" => sized(Kind::Duration, 3, 32),
        "date" => sized(Kind::Date, 12, 12),
        "date-time" => sized(Kind::DateTime, 21, 32),
        _ => {
            let allowed = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.is_empty());
            let of_enum = |allowed: &Vec<Value>| {
                let lengths = allowed.iter().filter_map(Value::as_str).map(|text| text.len() as i64);
                lengths.max().unwrap_or_default()
            };
            let most = match (longest, allowed) {
                (Some(longest), _) => longest * 4,
                (None, Some(allowed)) => of_enum(allowed),
                (None, None) => LARGEST_REQUEST - 2,
            };
            sized(Kind::String, 2, most)
        }
    }
}
