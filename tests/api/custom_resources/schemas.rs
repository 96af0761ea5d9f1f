//! What the schemas and rules of definitions have to be.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, widget, widgets, with};
use crate::support::server::{Setup, TestServer};

on_both_databases! {
    cr10_errors_name_where_a_schema_stands,
    cr16_lists_by_key_have_keys,
    cr17_cr18_defaults_and_roots,
    cr20_formats_nobody_knows,
    cr23_a_large_definition,
    cr68_cr69_rules_speak_of_what_is_declared,
}

/// The messages of all causes, each with its field.
async fn refusal(server: &TestServer, definition: &Value) -> String {
    let answer = server.post(DEFINITIONS, definition).await;
    let failure = answer.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes");
    let text = |cause: &Value, name: &str| cause[name].as_str().expect(name).to_owned();
    let causes = causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message")));
    causes.collect::<Vec<_>>().join("\n")
}

/// Definitions whose `spec.properties.x` is such a schema are refused with such texts.
async fn refused(server: &TestServer, cases: &[(Value, &str)]) {
    for (schema, text) in cases {
        let told = refusal(server, &of_x(schema.clone())).await;
        assert!(told.contains(text), "{schema}: {text}\n{told}");
    }
}

fn of_x(schema: Value) -> Value {
    let mut definition = widgets();
    root(&mut definition)["properties"]["spec"]["properties"]["x"] = schema;
    definition
}

fn root(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
}

/// Takes a definition of such a property and removes it again.
async fn taken(server: &TestServer, definition: &Value) {
    server.post(DEFINITIONS, definition).await.expect(201);
    server.delete(WIDGETS_DEFINITION).await.ok();
    while server.get(WIDGETS_DEFINITION).await.status != 404 {}
}

async fn cr10_errors_name_where_a_schema_stands(setup: Setup) {
    let server = setup.start().await;
    let bad = json!({"type": "string", "pattern": "("});
    let told = refusal(&server, &of_x(bad.clone())).await;
    let field = "spec.validation.openAPIV3Schema.properties[spec].properties[x].pattern: ";
    assert!(told.starts_with(field), "{told}");
    let mut two = widgets();
    let mut second = of_x(bad)["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().expect("versions").push(second);
    let told = refusal(&server, &two).await;
    let field = "spec.versions[1].schema.openAPIV3Schema.properties[spec].properties[x].pattern: ";
    assert!(told.starts_with(field), "{told}");
}

async fn cr16_lists_by_key_have_keys(setup: Setup) {
    let server = setup.start().await;
    let list = |keys: Value, item: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {"name": item}}})
    };
    let cases = [
        (list(json!([]), json!({"type": "string"})), "must not be empty if x-kubernetes-list-type is map"),
        (list(json!(["port"]), json!({"type": "string"})), "entries must all be names of item properties"),
        (
            list(json!(["name"]), json!({"type": "string"})),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
    ];
    refused(&server, &cases).await;
    taken(&server, &of_x(list(json!(["name"]), json!({"type": "string", "default": "main"})))).await;
}

async fn cr17_cr18_defaults_and_roots(setup: Setup) {
    let server = setup.start().await;
    let at = ".properties[spec].properties[x].default: ";
    let cases = [
        (json!({"type": "integer", "default": "a"}), at),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            "must not have unknown fields",
        ),
        (
            json!({"type": "integer", "default": 1, "x-kubernetes-validations": [{"rule": "self > 1"}]}),
            "x].default: Invalid value: 1: failed rule: self > 1",
        ),
    ];
    refused(&server, &cases).await;
    let mut metadata = widgets();
    root(&mut metadata)["properties"]["metadata"] = json!({"type": "object", "default": {"name": "a"}});
    let told = refusal(&server, &metadata).await;
    assert!(told.contains("must not be set in top-level metadata"), "{told}");
    let mut any_of = widgets();
    root(&mut any_of)["anyOf"] = json!([{"required": ["spec"]}]);
    let told = refusal(&server, &any_of).await;
    assert!(
        told.contains("fields are allowed at the root of the schema if the status subresource"),
        "{told}"
    );
    any_of["spec"]["versions"][0]["subresources"] = json!({});
    taken(&server, &any_of).await;
}

async fn cr20_formats_nobody_knows(setup: Setup) {
    let server = setup.start().await;
    let odd = of_x(json!({"type": "string", "format": "frob"}));
    let created = server.post(DEFINITIONS, &odd).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("warning"), Some("299 - \"unrecognized format \\\"frob\\\"\""));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = server.patch(WIDGETS_DEFINITION, &label).await;
    assert_eq!((labelled.status, labelled.header("warning")), (200, None));
}

async fn cr23_a_large_definition(setup: Setup) {
    let server = setup.start().await;
    let mut large = widgets();
    let properties = &mut root(&mut large)["properties"]["spec"]["properties"];
    for number in 0..1_400 {
        properties[format!("field{number}")] = json!({"type": "string", "description": "d".repeat(970)});
    }
    let sent = large["spec"]["versions"][0]["schema"].clone();
    assert!(sent.to_string().len() > 1_400_000);
    let mut annotated = large.clone();
    annotated["metadata"]["annotations"] = json!({"last-applied": large.to_string()});
    let told = refusal(&server, &annotated).await;
    assert!(told.contains("may not be more than 262144 bytes"), "{told}");
    let created = server.post(DEFINITIONS, &large).await.expect(201);
    assert_eq!(created["spec"]["versions"][0]["schema"], sent);
    let path = format!("{WIDGETS_DEFINITION}?fieldManager=me&force=true");
    let request = server.request(Method::PATCH, &path);
    let applied = request.body("application/apply-patch+yaml", large.to_string()).await.ok();
    assert_eq!(applied["spec"]["versions"][0]["schema"], sent);
    assert_eq!(server.get(WIDGETS_DEFINITION).await.ok()["spec"]["versions"][0]["schema"], sent);
}

async fn cr68_cr69_rules_speak_of_what_is_declared(setup: Setup) {
    let server = setup.start().await;
    let rule = |kind: Value, rule: &str| {
        let mut schema = kind;
        schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
        schema
    };
    let string = json!({"type": "string", "maxLength": 10});
    let list = |by: &str| json!({"type": "array", "maxItems": 9, "x-kubernetes-list-type": by, "items": rule(string.clone(), "self == oldSelf")});
    let cases = [
        (list("atomic"), "oldSelf cannot be used on the uncorrelatable portion of the schema within"),
        (rule(string.clone(), "self +"), "Syntax error"),
        (rule(string.clone(), "self"), "cel expression must evaluate to a bool"),
        (rule(json!({"type": "object", "properties": {}}), "self.z == 1"), "undefined field 'z'"),
        (rule(string.clone(), "self == 'a' || self.includes('b')"), "undeclared reference to 'includes'"),
    ];
    refused(&server, &cases).await;
    let mut of_root = widgets();
    root(&mut of_root)["x-kubernetes-validations"] = json!([{"rule": "has(self.metadata.labels)"}]);
    let told = refusal(&server, &of_root).await;
    assert!(told.contains("undefined field 'labels'"), "{told}");
    root(&mut of_root)["x-kubernetes-validations"] = json!([{"rule": "self.metadata.name.startsWith('w')"}]);
    with(&server, &of_root).await;
    server.post(WIDGETS, &widget("w", json!({}))).await.expect(201);
    assert_eq!(server.post(WIDGETS, &widget("x", json!({}))).await.status, 422);
}
