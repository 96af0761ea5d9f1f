//! What becomes of the values of custom objects.

use http::Method;
use rowplane::codec::object::Draft;
use rowplane::schema::names::Gvr;
use rowplane::storage::{Change, Expect, Key, Mutation};
use serde_json::{Value, json};

use super::{WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::Setup;

on_every_store! {
    custom_resources_43_44_45_unknown_members,
    custom_resources_46_embedded_resources,
    custom_resources_47_labels_that_are_no_texts,
    custom_resources_48_49_nulls_defaults_and_keys,
    custom_resources_52_to_57_what_is_wrong_with_values,
    custom_resources_58_59_junctors_and_formats,
    custom_resources_60_kinds_and_versions_of_bodies,
    custom_resources_61_62_what_was_wrong_may_stay,
    custom_resources_96_applied_lists_merge_by_key,
    what_is_applied_again_is_not_written_again,
}

/// W with more properties of its spec.
fn with_properties(more: Value) -> Value {
    let mut definition = widgets();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    let properties = schema["properties"]["spec"]["properties"].as_object_mut().expect("properties");
    properties.extend(more.as_object().expect("properties").clone());
    definition
}

/// Field and message of each cause.
fn causes(answer: &Answer) -> Vec<(String, String)> {
    let failure = answer.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes").clone();
    let text = |cause: &Value, name: &str| cause[name].as_str().expect(name).to_owned();
    causes.iter().map(|cause| (text(cause, "field"), text(cause, "message"))).collect()
}

fn message(answer: &Answer) -> String {
    answer.failure()["message"].as_str().expect("a message").to_owned()
}

async fn custom_resources_43_44_45_unknown_members(setup: Setup) {
    let server = setup.start().await;
    let part = json!({"type": "object", "properties": {"known": {"type": "integer"}}});
    let open =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"part": part}});
    let map = json!({"type": "object", "additionalProperties": true});
    with(&server, &with_properties(json!({"open": open, "map": map}))).await;
    let created = server.post(WIDGETS, &widget("w", json!({"foo": 1, "color": "red"}))).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("warning"), Some("299 - \"unknown field \\\"spec.foo\\\"\""));
    assert_eq!(created.json()["spec"], json!({"color": "red"}));
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    assert_eq!(server.post(strict, &widget("x", json!({"foo": 1}))).await.status, 400);
    let sent = json!({
        "free": {"a": {"b": 1}},
        "open": {"more": {"x": 1}, "part": {"known": 1, "unknown": 2}},
        "map": {"a": 1, "o": {"x": 1}},
    });
    let kept = server.post(WIDGETS, &widget("y", sent)).await.expect(201);
    let expected = json!({
        "free": {"a": {"b": 1}},
        "open": {"more": {"x": 1}, "part": {"known": 1}},
        "map": {"a": 1, "o": {}},
    });
    assert_eq!(kept["spec"], expected);
}

async fn custom_resources_46_embedded_resources(setup: Setup) {
    let server = setup.start().await;
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true});
    with(&server, &with_properties(json!({"inner": embedded}))).await;
    let inner = |inner: Value| widget("w", json!({"inner": inner}));
    let metadata = json!({"labels": {"a": "b"}, "foo": 1});
    let sent = inner(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata}));
    let created = server.post(WIDGETS, &sent).await.expect(201);
    assert_eq!(created["spec"]["inner"]["metadata"], json!({"labels": {"a": "b"}}));
    let kindless = causes(&server.post(WIDGETS, &inner(json!({"apiVersion": "v1"}))).await);
    let kind = ("spec.inner.kind".to_owned(), "Required value".to_owned());
    assert!(kindless.iter().any(|cause| cause.0 == kind.0 && cause.1.starts_with(&kind.1)), "{kindless:?}");
    let numbers = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}});
    let refused = server.post(WIDGETS, &inner(numbers)).await;
    assert_eq!(refused.status, 400);
    assert!(message(&refused).contains("cannot be handled as a Widget"), "{}", message(&refused));
}

async fn custom_resources_47_labels_that_are_no_texts(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let mut sent = widget("w", json!({"color": "red"}));
    sent["metadata"]["labels"] = json!({"a": 1});
    let refused = server.post(WIDGETS, &sent).await;
    assert!(refused.status == 400 && message(&refused).contains("cannot be handled as a Widget"));

    // As somebody has written it who did not ask the server.
    sent["metadata"]["namespace"] = "d".into();
    sent["metadata"]["uid"] = "f2c8b1f4-6f0e-4b9e-8a39-0d2f0f1c6f55".into();
    let resource = server.api.catalog.served().get(&Gvr::fixed("ex.io/v1", "widgets")).expect("served").id;
    let draft = Draft::of_json("d", "w", sent.to_string().into());
    let uid = sent["metadata"]["uid"].as_str().expect("a uid").into();
    let put = Change::Put { uid, stored_version: "ex.io/v1".into(), value: draft.into() };
    let planted = Mutation::new(Key::new(resource, "d", "w"), Expect::Absent, put);
    server.api.store.write(planted).await.expect("written");
    let path = format!("{WIDGETS}/w");
    let read = server.get(&path).await.ok();
    assert_eq!((&read["metadata"]["labels"], &read["spec"]), (&Value::Null, &json!({"color": "red"})));
    assert_eq!(server.get(WIDGETS).await.ok()["items"], json!([read]));
    server.delete(&path).await.ok();
    assert_eq!(server.get(&path).await.status, 404);
}

async fn custom_resources_48_49_nulls_defaults_and_keys(setup: Setup) {
    let server = setup.start().await;
    let properties = json!({
        "plain": {"type": "string"},
        "given": {"type": "string", "default": "blue"},
        "empty": {"type": "string", "nullable": true},
    });
    with(&server, &with_properties(properties)).await;
    let nulls = json!({"plain": null, "given": null, "empty": null});
    let created = server.post(WIDGETS, &widget("w", nulls)).await.expect(201);
    assert_eq!(created["spec"], json!({"given": "blue", "empty": null}));
    let one = server.post(WIDGETS, &widget("x", json!({"ports": [{"port": 80}]}))).await.expect(201);
    assert_eq!(one["spec"]["ports"], json!([{"port": 80, "protocol": "TCP"}]));
    let two =
        causes(&server.post(WIDGETS, &widget("y", json!({"ports": [{"port": 80}, {"port": 80}]}))).await);
    let duplicate = "Duplicate value: {\"port\":80,\"protocol\":\"TCP\"}";
    assert_eq!(two, [("spec.ports[1]".to_owned(), duplicate.to_owned())]);
}

async fn custom_resources_52_to_57_what_is_wrong_with_values(setup: Setup) {
    let server = setup.start().await;
    let properties = json!({
        "need": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        "one": {"type": "string", "enum": ["a", "b"]},
        "small": {"type": "integer", "format": "int32"},
        "text": {"type": "string", "maxLength": 3},
        "long": {"type": "string", "minLength": 3, "pattern": "^a"},
        "number": {"type": "number", "minimum": 2, "maximum": 10, "exclusiveMaximum": true, "multipleOf": 0.5},
        "list": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        "map": {"type": "object", "additionalProperties": {"type": "integer"}, "minProperties": 2, "maxProperties": 3},
    });
    let mut definition = with_properties(properties);
    // A scale would have its own say of replicas.
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    with(&server, &definition).await;
    let cases = [
        (json!({"tags": ["a", "b", "a", "a"]}), vec![("spec.tags[2]", "Duplicate value: \"a\"")]),
        (
            json!({"replicas": "3"}),
            vec![(
                "spec.replicas",
                "Invalid value: \"string\": spec.replicas in body must be of type integer: \"string\"",
            )],
        ),
        (
            json!({"replicas": 1.5}),
            vec![
                (
                    "spec.replicas",
                    "Invalid value: \"number\": spec.replicas in body must be of type integer: \"number\"",
                ),
                (
                    "<nil>",
                    "Invalid value: \"\": Checked value must be of type integer (default format) in spec.replicas",
                ),
            ],
        ),
        (
            json!({"need": {}, "one": "x"}),
            vec![
                ("spec.need.a", "Required value"),
                ("spec.one", "Unsupported value: \"x\": supported values: \"a\", \"b\""),
            ],
        ),
        (json!({"text": "äöüß"}), vec![("spec.text", "Too long: may not be more than 3 bytes")]),
        (
            json!({"long": "b"}),
            vec![("spec.long", "Invalid value: \"b\": spec.long in body should be at least 3 chars long")],
        ),
        (
            json!({"long": "bcd"}),
            vec![("spec.long", "Invalid value: \"bcd\": spec.long in body should match '^a'")],
        ),
        (
            json!({"number": 1.5}),
            vec![(
                "spec.number",
                "Invalid value: 1.5: spec.number in body should be greater than or equal to 2",
            )],
        ),
        (
            json!({"number": 10.5}),
            vec![("spec.number", "Invalid value: 10.5: spec.number in body should be less than 10")],
        ),
        (
            json!({"number": 2.25}),
            vec![("spec.number", "Invalid value: 2.25: spec.number in body should be a multiple of 0.5")],
        ),
        (
            json!({"list": [1]}),
            vec![("spec.list", "Invalid value: 1: spec.list in body should have at least 2 items")],
        ),
        (json!({"list": [1, 2, 3, 4]}), vec![("spec.list", "Too many: 4: must have at most 3 items")]),
        (
            json!({"map": {"a": 1}}),
            vec![("spec.map", "Invalid value: 1: spec.map in body should have at least 2 properties")],
        ),
        (
            json!({"map": {"a": 1, "b": 2, "c": 3, "d": 4}}),
            vec![("spec.map", "Too many: 4: must have at most 3 items")],
        ),
    ];
    for (spec, expected) in cases {
        let found = causes(&server.post(WIDGETS, &widget("w", spec.clone())).await);
        let found: Vec<(&str, &str)> = found.iter().map(|(field, text)| (&**field, &**text)).collect();
        assert_eq!(found, expected, "{spec}");
    }
    let wide = message(&server.post(WIDGETS, &widget("w", json!({"small": 3_000_000_000_u64}))).await);
    assert!(wide.contains("Checked value must be of type integer with format int32 in spec.small"), "{wide}");
    let good = widget("w", json!({"text": "äöü", "replicas": 3.0}));
    assert_eq!(server.post(WIDGETS, &good).await.expect(201)["spec"]["replicas"].to_string(), "3");
}

async fn custom_resources_58_59_junctors_and_formats(setup: Setup) {
    let server = setup.start().await;
    let formats = [
        ("date", "2020-02-29", "2021-02-29"),
        ("date-time", "2020-01-01T10:00:00Z", "2020-01-01"),
        ("duration", "1h30m", "an hour"),
        ("email", "a@example.com", "example.com"),
        ("hostname", "example.com", "a b"),
        ("ipv4", "10.0.0.1", "::1"),
        ("ipv6", "::1", "10.0.0.1"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("mac", "00:11:22:33:44:55", "00:11"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123"),
        ("byte", "YWJj", "a"),
        ("uri", "http://example.com/a", "example"),
    ];
    let mut properties = json!({
        "one": {"type": "integer", "oneOf": [{"minimum": 5}, {"maximum": 10}]},
        "none": {"type": "integer", "not": {"minimum": 5}},
        "any": {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": -5, "multipleOf": 2}]},
    });
    for (format, ..) in formats {
        properties[format] = json!({"type": "string", "format": format});
    }
    properties["frob"] = json!({"type": "string", "format": "frob"});
    with(&server, &with_properties(properties)).await;
    let two = causes(&server.post(WIDGETS, &widget("w", json!({"one": 7}))).await);
    let one_of = "\"spec.one\" must validate one and only one schema (oneOf). Found 2 valid alternatives";
    assert!(two.len() == 1 && two[0].0 == "<nil>" && two[0].1.ends_with(one_of), "{two:?}");
    let not = causes(&server.post(WIDGETS, &widget("w", json!({"none": 7}))).await);
    let text = "\"spec.none\" must not validate the schema (not)";
    assert!(not.len() == 1 && not[0].0 == "<nil>" && not[0].1.ends_with(text), "{not:?}");
    let any = causes(&server.post(WIDGETS, &widget("w", json!({"any": 0}))).await);
    let text = "\"spec.any\" must validate at least one schema (anyOf)";
    assert!(any.len() == 2 && any[0].1.ends_with(text) && any[1].0 == "spec.any", "{any:?}");
    for (format, good, bad) in formats {
        let bad = causes(&server.post(WIDGETS, &widget("w", json!({format: bad}))).await);
        let told = format!("spec.{format} in body must be of type {format}: ");
        assert!(bad.len() == 1 && bad[0].1.contains(&told), "{format}: {bad:?}");
        server.post(WIDGETS, &widget(&format!("of-{format}"), json!({format: good}))).await.expect(201);
    }
    server.post(WIDGETS, &widget("frob", json!({"frob": "anything"}))).await.expect(201);
}

async fn custom_resources_60_kinds_and_versions_of_bodies(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    let mut gadget = widget("w", json!({}));
    gadget["kind"] = "Gadget".into();
    let refused = causes(&server.post(WIDGETS, &gadget).await);
    assert_eq!(refused, [("kind".to_owned(), "Invalid value: \"Gadget\": must be Widget".to_owned())]);
    let mut newer = widget("w", json!({}));
    newer["apiVersion"] = "ex.io/v2".into();
    let refused = server.post(WIDGETS, &newer).await;
    assert_eq!(refused.status, 400);
    let text = "the API version in the data (ex.io/v2) does not match the expected API version (ex.io/v1)";
    assert_eq!(message(&refused), text);
    // Metadata is decoded before anybody looks at what the body claims.
    for wrong in [&gadget, &newer] {
        let mut wrong = wrong.clone();
        wrong["metadata"]["name"] = json!(["w"]);
        let kind = wrong["kind"].as_str().expect("a kind");
        let version = if kind == "Gadget" { "v1" } else { "v2" };
        let why = "json: cannot unmarshal array into Go struct field ObjectMeta.name of type string";
        let text = format!("{kind} in version \"{version}\" cannot be handled as a Widget: {why}");
        let refused = server.post(WIDGETS, &wrong).await;
        assert_eq!((refused.status, message(&refused)), (400, text));
    }
    gadget["metadata"]["junk"] = 1.into();
    gadget["junk"] = 1.into();
    let strict = server.post(format!("{WIDGETS}?fieldValidation=Strict"), &gadget).await;
    let text = "Gadget in version \"v1\" cannot be handled as a Gadget: strict decoding error: unknown field \"metadata.junk\"";
    assert_eq!((strict.status, message(&strict)), (400, text.to_owned()));
    let mut kindless = widget("w", json!({}));
    kindless.as_object_mut().expect("an object").remove("kind");
    for (query, begin) in [
        ("", "the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '"),
        (
            "?fieldValidation=Ignore",
            "Widget in version \"v1\" cannot be handled as a Widget: Object 'Kind' is missing in '",
        ),
    ] {
        let refused = server.post(format!("{WIDGETS}{query}"), &kindless).await;
        assert_eq!(refused.status, 400);
        assert!(message(&refused).starts_with(begin), "{}", message(&refused));
    }
    let mut versionless = widget("w", json!({}));
    versionless["apiVersion"] = Value::Null;
    let text = "Widget in version \"\" cannot be handled as a Widget: .apiVersion accessor error: <nil> is of the type <nil>, expected string";
    assert_eq!(message(&server.post(WIDGETS, &versionless).await), text);
    versionless.as_object_mut().expect("an object").remove("kind");
    let refused = server.post(format!("{WIDGETS}?fieldValidation=Ignore"), &versionless).await;
    let begin = "Widget in version \"v1\" cannot be handled as a Widget: Object 'Kind' is missing in '";
    assert!(message(&refused).starts_with(begin), "{}", message(&refused));
}

async fn custom_resources_61_62_what_was_wrong_may_stay(setup: Setup) {
    let server = setup.start().await;
    let lists = |restriction: Value| {
        let mut text = json!({"type": "string"});
        text.as_object_mut().expect("a schema").extend(restriction.as_object().expect("keywords").clone());
        let item = json!({"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string"}, "text": text}});
        with_properties(json!({
            "text": text,
            "atoms": {"type": "array", "items": text},
            "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": item},
        }))
    };
    with(&server, &lists(json!({}))).await;
    let keyed = |a: &str, b: &str| json!([{"name": "a", "text": a}, {"name": "b", "text": b}]);
    let spec = json!({"text": "BAD", "atoms": ["BAD", "good"], "keyed": keyed("BAD", "good")});
    server.post(WIDGETS, &widget("w", spec)).await.expect(201);
    let stricter = lists(json!({"pattern": "^[a-z]*$"}));
    change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"] = stricter["spec"]["versions"].clone();
    })
    .await
    .ok();
    let path = format!("{WIDGETS}/w");
    let patch = async |spec: Value| server.patch(&path, &json!({"spec": spec})).await.status;
    assert_eq!(patch(json!({"replicas": 2})).await, 200);
    assert_eq!(patch(json!({"text": "WORSE"})).await, 422);
    assert_eq!(patch(json!({"keyed": keyed("BAD", "better")})).await, 200);
    assert_eq!(patch(json!({"keyed": keyed("WORSE", "better")})).await, 422);
    assert_eq!(patch(json!({"atoms": ["BAD", "better"]})).await, 422);
    assert_eq!(patch(json!({"atoms": ["BAD", "good"]})).await, 200);
}

async fn custom_resources_96_applied_lists_merge_by_key(setup: Setup) {
    let server = setup.start().await;
    let whole = json!({"type": "object", "x-kubernetes-map-type": "atomic",
        "additionalProperties": {"type": "string"}});
    with(&server, &with_properties(json!({"whole": whole}))).await;
    let apply = async |manager: &str, spec: Value| {
        let path = format!("{WIDGETS}/w?fieldManager={manager}");
        let body = widget("w", spec).to_string();
        server.request(Method::PATCH, path).body("application/apply-patch+yaml", body).await
    };
    let port = |port: u32| json!([{"port": port}]);
    apply("one", json!({"ports": port(80), "tags": ["a"], "whole": {"a": "1"}})).await.expect(201);
    let second = apply("two", json!({"ports": port(81), "tags": ["b"]})).await.ok();
    let ports = json!([{"port": 80, "protocol": "TCP"}, {"port": 81, "protocol": "TCP"}]);
    assert_eq!(second["spec"]["ports"], ports);
    assert_eq!(second["spec"]["tags"], json!(["a", "b"]));
    let conflict = apply("two", json!({"ports": port(81), "tags": ["b"], "whole": {"b": "2"}})).await;
    assert_eq!(conflict.status, 409);
    let told = conflict.failure()["details"]["causes"][0]["field"].clone();
    assert_eq!(told, ".spec.whole");
    let fewer = apply("one", json!({"tags": ["c"]})).await.ok();
    assert_eq!(fewer["spec"]["ports"], json!([{"port": 81, "protocol": "TCP"}]));
    assert_eq!(fewer["spec"]["tags"], json!(["b", "c"]));
}

/// The sets of managers are compared as sets: a list's keys that are numbers are in another order as texts.
async fn what_is_applied_again_is_not_written_again(setup: Setup) {
    let server = setup.start().await;
    let numbers = json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}});
    with(&server, &with_properties(json!({"numbers": numbers}))).await;
    let spec = json!({"ports": [{"port": 443}, {"port": 80}], "numbers": [443, 80]});
    server.post(WIDGETS, &widget("w", spec.clone())).await.expect(201);
    let apply = async |manager: &str, body: &Value| {
        let path = format!("{WIDGETS}/w?fieldManager={manager}");
        let body = body.to_string();
        let request = server.request(Method::PATCH, path).body("application/apply-patch+yaml", body);
        request.await.ok()["metadata"]["resourceVersion"].clone()
    };
    let first = apply("one", &widget("w", spec.clone())).await;
    assert_eq!(apply("one", &widget("w", spec.clone())).await, first);
    let mut nothing = widget("w", json!({}));
    nothing.as_object_mut().expect("an object").remove("spec");
    assert_eq!(apply("two", &nothing).await, first);
    let other =
        apply("one", &widget("w", json!({"ports": [{"port": 443}, {"port": 81}], "numbers": [443, 80]})))
            .await;
    assert_ne!(other, first);
}
