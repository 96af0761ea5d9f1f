//! What the schemas and rules of definitions have to be.

use http::Method;
use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, widget, widgets, with};
use crate::support::server::{Setup, TestServer};

on_every_store! {
    custom_resources_10_errors_name_where_a_schema_stands,
    custom_resources_11_12_13_14_15_schemas_are_structural,
    custom_resources_16_lists_by_key_have_keys,
    custom_resources_17_18_defaults_and_roots,
    custom_resources_19_21_22_what_is_declared_besides,
    custom_resources_20_formats_nobody_knows,
    custom_resources_23_a_large_definition,
    custom_resources_68_69_rules_speak_of_what_is_declared,
    custom_resources_71_72_rules_that_cost_too_much,
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

async fn custom_resources_10_errors_name_where_a_schema_stands(setup: Setup) {
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

async fn custom_resources_11_12_13_14_15_schemas_are_structural(setup: Setup) {
    let server = setup.start().await;
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "d"}})).await;
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let cases = [
        (json!({"description": "no type"}), "must not be empty for specified object fields"),
        (json!({"type": "array"}), ".items: Required value: must be specified"),
        (json!({"type": "array", "items": []}), ".items: Required value: must be specified"),
        (json!({"type": "array", "items": "x"}), ".items: Required value: must be specified"),
        (json!({"type": "string", "anyOf": [{"default": "a"}]}), "must be undefined to be structural"),
        (
            json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "string"}, {"type": "integer"}]}),
            "must be empty to be structural",
        ),
        (json!({"type": "string", "$ref": "#/x"}), "$ref is not supported"),
        (
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        ),
        (json!({"type": "null"}), "type cannot be set to null, use nullable as an alternative"),
    ];
    refused(&server, &cases).await;
    // What value validations speak of has to be there: upstream looks at those of the root only.
    let mut unspecified = widgets();
    unspecified["spec"]["versions"][0]["subresources"] = json!({});
    root(&mut unspecified)["allOf"] =
        json!([{"properties": {"spec": {"properties": {"a": {"minimum": 1}}}}}]);
    let told = refusal(&server, &unspecified).await;
    assert!(told.contains("because it is defined in"), "{told}");
    let mut labelled = widgets();
    root(&mut labelled)["properties"]["metadata"] =
        json!({"type": "object", "properties": {"labels": {"type": "object"}}});
    let told = refusal(&server, &labelled).await;
    assert!(told.contains("must not specify anything other than name and generateName"), "{told}");
    taken(&server, &of_x(json!({"x-kubernetes-int-or-string": true, "anyOf": either}))).await;

    let mut named = widgets();
    root(&mut named)["properties"]["metadata"] =
        json!({"type": "object", "properties": {"name": {"type": "string", "pattern": "^w-"}}});
    server.post(DEFINITIONS, &named).await.expect(201);
    server.post(WIDGETS, &widget("w-1", json!({}))).await.expect(201);
    let other = server.post(WIDGETS, &widget("x-1", json!({}))).await.failure();
    let message = other["message"].as_str().expect("a message");
    assert!(message.contains("metadata.name in body should match '^w-'"), "{message}");
}

async fn custom_resources_16_lists_by_key_have_keys(setup: Setup) {
    let server = setup.start().await;
    let list = |keys: Value, item: Value| {
        json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {"name": item}}})
    };
    let cases = [
        (list(json!([]), json!({"type": "string"})), "must not be empty if x-kubernetes-list-type is map"),
        (
            json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": 5}),
            "must only have a single schema if x-kubernetes-list-type is map",
        ),
        (list(json!(["port"]), json!({"type": "string"})), "entries must all be names of item properties"),
        (
            list(json!(["name"]), json!({"type": "string"})),
            "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
    ];
    refused(&server, &cases).await;
    taken(&server, &of_x(list(json!(["name"]), json!({"type": "string", "default": "main"})))).await;
}

async fn custom_resources_17_18_defaults_and_roots(setup: Setup) {
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

async fn custom_resources_19_21_22_what_is_declared_besides(setup: Setup) {
    let server = setup.start().await;
    let mut nine = widgets();
    let names: Vec<String> = (0..9).map(|number| format!("f{number}")).collect();
    for name in &names {
        root(&mut nine)["properties"]["spec"]["properties"][name] = json!({"type": "string"});
    }
    let paths: Vec<Value> = names.iter().map(|name| json!({"jsonPath": format!(".spec.{name}")})).collect();
    nine["spec"]["versions"][0]["selectableFields"] = paths.into();
    let told = refusal(&server, &nine).await;
    assert!(told.contains("must have at most 8 items"), "{told}");
    let version = |name: &str, value: Value| {
        let mut definition = widgets();
        definition["spec"]["versions"][0][name] = value;
        definition
    };
    let field = |path: &str| {
        let mut definition = version("selectableFields", json!([{"jsonPath": path}]));
        root(&mut definition)["properties"]["metadata"] =
            json!({"type": "object", "properties": {"name": {"type": "string"}}});
        definition
    };
    let scale =
        |path: &str| json!({"scale": {"specReplicasPath": path, "statusReplicasPath": ".status.replicas"}});
    let column = json!([{"name": "c", "type": "bool", "jsonPath": ".spec.color"}]);
    let webhook = |webhook: Value| {
        let mut definition = widgets();
        definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
        definition
    };
    let service = json!({"namespace": "d", "name": "hook"});
    let both = json!({"url": "https://a.b", "service": service});
    let cases = [
        (field(".metadata.name"), "must not point to fields in metadata"),
        (field(".spec.ports"), "must point to a field of type string, boolean or integer"),
        (field(".spec.tags[0]"), "array notation is not allowed"),
        (version("subresources", scale(".status.x")), "should be a json path under .spec"),
        (version("additionalPrinterColumns", column), "must be one of boolean,date,integer,number,string"),
        (webhook(Value::Null), "required when strategy is set to Webhook"),
        (
            webhook(json!({"conversionReviewVersions": ["v1"], "clientConfig": both})),
            "exactly one of url or service is required",
        ),
        (
            webhook(json!({"conversionReviewVersions": ["v1"], "clientConfig": {"url": "http://a.b"}})),
            "desired format: https://host[/path]",
        ),
        (
            webhook(json!({"conversionReviewVersions": ["v9"], "clientConfig": {"service": service}})),
            "must include at least one of v1, v1beta1",
        ),
    ];
    for (definition, text) in &cases {
        let told = refusal(&server, definition).await;
        assert!(told.contains(text), "{text}: {told}");
    }
}

async fn custom_resources_20_formats_nobody_knows(setup: Setup) {
    let server = setup.start().await;
    let odd = of_x(json!({"type": "string", "format": "frob"}));
    let created = server.post(DEFINITIONS, &odd).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("warning"), Some("299 - \"unrecognized format \\\"frob\\\"\""));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let labelled = server.patch(WIDGETS_DEFINITION, &label).await;
    assert_eq!((labelled.status, labelled.header("warning")), (200, None));
}

async fn custom_resources_23_a_large_definition(setup: Setup) {
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

async fn custom_resources_68_69_rules_speak_of_what_is_declared(setup: Setup) {
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

async fn custom_resources_71_72_rules_that_cost_too_much(setup: Setup) {
    let server = setup.start().await;
    let nested = |items: Option<u32>| {
        let rule = json!([{"rule": "self.all(x, self.all(y, x == y))"}]);
        let mut list =
            json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule});
        if let Some(items) = items {
            list["maxItems"] = items.into();
        }
        list
    };
    let hint = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and \
                strings are declared)";
    let told = format!("estimated rule cost exceeds budget by factor of more than 100x {hint}");
    refused(&server, &[(nested(None), told.as_str())]).await;
    taken(&server, &of_x(nested(Some(10)))).await;

    // Each costs 7,600,000: below the limit of one, but not of twenty.
    let dear = json!({"rule": "self.all(x, x != '')"});
    let list = json!({"type": "array", "maxItems": 1_900_000, "items": {"type": "string", "maxLength": 5},
        "x-kubernetes-validations": vec![dear; 20]});
    let told = refusal(&server, &of_x(list)).await;
    let total = "openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 \
                 schema exceeds budget by factor of";
    assert!(told.contains(total), "{told}");
    let contributed =
        "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
    assert_eq!(told.matches(contributed).count(), 4, "{told}");
}
