//! A document of OpenAPI v3 made of an extension server's part of v2, for servers that have v2 alone (kube-openapi's
//! `ConvertV2ToV3`). A server may say anything: what has not the form of v2 is left out or passed on.

use super::openapi::{DEFINITION, V2Part};
use crate::tree::{Map, Value, json};

const SCHEMA: &str = "#/components/schemas/";
/// The members of a parameter of v2 that stand in its schema in v3.
const OF_SCHEMA: [&str; 3] = ["type", "format", "uniqueItems"];
const METHODS: [&str; 7] = ["get", "put", "post", "delete", "options", "head", "patch"];

/// Makes the document.
pub fn v3_of(part: &V2Part) -> Value {
    let schemas: Map = part.definitions.iter().map(|(name, one)| (name.clone(), schema(one))).collect();
    let paths: Map = part.paths.iter().map(|(path, item)| (path.clone(), path_item(item))).collect();
    json!({
        "openapi": "3.0.0",
        "info": part.info.clone(),
        "paths": Value::Object(paths),
        "components": {"schemas": Value::Object(schemas)},
    })
}

/// A schema whose references lead to the components. A reference with members beside it stands in `allOf`, since v3
/// ignores what is beside a reference.
fn schema(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let mut made: Map = object.iter().map(|(name, member)| (name.clone(), schema(member))).collect();
            let name = object.get("$ref").and_then(Value::as_str).and_then(|to| to.strip_prefix(DEFINITION));
            if let Some(name) = name {
                let reference = json!({"$ref": format!("{SCHEMA}{name}")});
                if object.len() == 1 {
                    return reference;
                }
                made.shift_remove("$ref");
                made.insert("allOf", vec![reference].into());
            }
            Value::Object(made)
        }
        Value::Array(items) => items.iter().map(schema).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

fn path_item(item: &Value) -> Value {
    let Some(item) = item.as_object() else { return item.clone() };
    let member = |(name, member): (&crate::tree::Text, &Value)| {
        let made = match name.as_str() {
            "parameters" => parameters(member.as_array().into_iter().flatten()),
            method if METHODS.contains(&method) => operation(member),
            _ => member.clone(),
        };
        (name.clone(), made)
    };
    Value::Object(item.iter().map(member).collect())
}

fn operation(operation: &Value) -> Value {
    let Some(of_v2) = operation.as_object() else { return operation.clone() };
    let list = |name: &str| of_v2.get(name).and_then(Value::as_array).map_or(&[][..], |list| list);
    let is_body = |one: &&Value| one["name"] == "body" && one["schema"].is_object();
    let mut made = Map::new();
    for (name, member) in of_v2 {
        match name.as_str() {
            "consumes" | "produces" | "schemes" | "parameters" | "responses" => {}
            _ => _ = made.insert(name.clone(), member.clone()),
        }
    }
    let others = list("parameters").iter().filter(|one| !is_body(one));
    if others.clone().next().is_some() {
        made.insert("parameters", parameters(others));
    }
    if let Some(body) = list("parameters").iter().find(is_body) {
        made.insert("requestBody", json!({"content": content(&body["schema"], list("consumes"))}));
    }
    let responses = of_v2.get("responses").and_then(Value::as_object);
    let response =
        |(code, one): (&crate::tree::Text, &Value)| (code.clone(), response(one, list("produces")));
    made.insert("responses", Value::Object(responses.into_iter().flatten().map(response).collect()));
    Value::Object(made)
}

fn response(of_v2: &Value, produces: &[Value]) -> Value {
    let Some(members) = of_v2.as_object() else { return of_v2.clone() };
    let mut made = Map::new();
    for (name, member) in members {
        match name.as_str() {
            "schema" => _ = made.insert("content", content(member, produces)),
            "headers" | "examples" => {}
            _ => _ = made.insert(name.clone(), member.clone()),
        }
    }
    Value::Object(made)
}

/// The same schema for each media type.
fn content(of_v2: &Value, types: &[Value]) -> Value {
    let made = json!({"schema": schema(of_v2)});
    let types = types.iter().filter_map(Value::as_str);
    Value::Object(types.map(|name| (crate::tree::Text::from(name.to_owned()), made.clone())).collect())
}

fn parameters<'a>(of_v2: impl Iterator<Item = &'a Value>) -> Value {
    of_v2.map(parameter).collect::<Vec<_>>().into()
}

fn parameter(of_v2: &Value) -> Value {
    let Some(members) = of_v2.as_object() else { return of_v2.clone() };
    let (mut made, mut simple) = (Map::new(), Map::new());
    for (name, member) in members {
        match name.as_str() {
            "name" | "description" | "in" | "required" | "allowEmptyValue" => {
                made.insert(name.clone(), member.clone());
            }
            "schema" => _ = made.insert("schema", schema(member)),
            name if OF_SCHEMA.contains(&name) => {
                simple.insert(crate::tree::Text::from(name.to_owned()), member.clone());
            }
            extension if extension.starts_with("x-") => {
                made.insert(crate::tree::Text::from(extension.to_owned()), member.clone());
            }
            _ => {}
        }
    }
    if !made.contains_key("schema") {
        made.insert("schema", Value::Object(simple));
    }
    Value::Object(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::names::GroupVersion;

    #[test]
    fn bodies_parameters_and_references_move_to_their_places() {
        let reference = json!({"$ref": "#/definitions/T"});
        let document = json!({"swagger": "2.0", "info": {"title": "ext", "version": "v1"},
            "paths": {"/apis/g/v1/things": {
                "parameters": [{"name": "pretty", "in": "query", "type": "string", "uniqueItems": true}],
                "post": {"operationId": "create", "consumes": ["*/*"], "produces": ["application/json"], "schemes": ["https"],
                    "parameters": [{"name": "body", "in": "body", "required": true, "schema": reference}],
                    "responses": {"200": {"description": "OK", "schema": reference}, "401": {"description": "no"}},
                    "x-kubernetes-action": "post"}}},
            "definitions": {"T": {"type": "object", "properties": {
                "inner": {"description": "said", "$ref": "#/definitions/T"}, "all": {"type": "array", "items": reference}}}}});
        let part = V2Part::of(&GroupVersion::new("g", "v1"), document.to_string().as_bytes()).expect("JSON");
        let reference = json!({"$ref": "#/components/schemas/T"});
        let want = json!({"openapi": "3.0.0", "info": {"title": "ext", "version": "v1"},
            "paths": {"/apis/g/v1/things": {
                "parameters": [{"name": "pretty", "in": "query", "schema": {"type": "string", "uniqueItems": true}}],
                "post": {"operationId": "create", "x-kubernetes-action": "post",
                    "requestBody": {"content": {"*/*": {"schema": reference}}},
                    "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}},
                        "401": {"description": "no"}}}}},
            "components": {"schemas": {"T": {"type": "object", "properties": {
                "inner": {"description": "said", "allOf": [reference]}, "all": {"type": "array", "items": reference}}}}}});
        assert_eq!(v3_of(&part), want);
    }
}
