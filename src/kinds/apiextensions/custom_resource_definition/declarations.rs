//! What rules in a schema speak of: `self` and `oldSelf`, of the type that the schema gives them
//! (`apiserver/pkg/cel/common/schemas.go`).

use crate::expression::{Environment, Type, escape};
use crate::tree::Value;

const SELF: &str = "self";

pub const OLD_SELF: &str = "oldSelf";

/// Upstream makes a new name each time.
const NAME: &str = "selfType";

/// `None` if the schema says nothing that can be spoken of. `root` is the root of a resource, here or embedded.
pub fn environment(schema: &Value, root: bool) -> Option<Environment> {
    let mut structs = Vec::new();
    let is = declare(schema, root, NAME.to_owned(), &mut structs)?;
    let mut environment = Environment::default().with_variable(SELF, is.clone()).with_variable(OLD_SELF, is);
    for (name, fields) in structs {
        environment = environment.with_struct(&name, fields);
    }
    Some(environment)
}

type Structs = Vec<(String, Vec<(String, Type)>)>;

fn declare(schema: &Value, root: bool, name: String, structs: &mut Structs) -> Option<Type> {
    let text = |field: &str| schema.get(field).and_then(Value::as_str).unwrap_or_default();
    if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true) {
        return Some(Type::Dyn);
    }
    let below = |schema: &Value, name: String, structs: &mut Structs| {
        let embedded = schema.get("x-kubernetes-embedded-resource").and_then(Value::as_bool) == Some(true);
        declare(schema, embedded, name, structs)
    };
    Some(match text("type") {
        "array" => {
            let items = schema.get("items").filter(|items| items.is_object())?;
            Type::list(below(items, format!("{name}.@idx"), structs)?)
        }
        "object" => {
            if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
                return Some(Type::map(Type::String, below(values, format!("{name}.@elem"), structs)?));
            }
            let mut fields = Vec::new();
            for (property, schema) in
                schema.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                let escaped = escape(property);
                let is = match root {
                    true if ["apiVersion", "kind", "metadata"].contains(&property.as_str()) => None,
                    _ => below(schema, format!("{name}.{}", escaped.as_deref().unwrap_or_default()), structs),
                };
                fields.extend(escaped.zip(is));
            }
            if root {
                let texts = |names: [&str; 2]| names.map(|name| (name.to_owned(), Type::String));
                let metadata = format!("{name}.metadata");
                fields.extend(texts(["apiVersion", "kind"]));
                fields.push(("metadata".to_owned(), Type::Struct(metadata.as_str().into())));
                structs.push((metadata, texts(["name", "generateName"]).into()));
            }
            structs.push((name.clone(), fields));
            Type::Struct(name.into())
        }
        "string" => match text("format") {
            "byte" => Type::Bytes,
            "duration" => Type::Duration,
            "date" | "date-time" => Type::Timestamp,
            _ => Type::String,
        },
        "boolean" => Type::Bool,
        "number" => Type::Double,
        "integer" => Type::Int,
        _ => return None,
    })
}
