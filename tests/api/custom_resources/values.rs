//! What becomes of the values of custom objects.

use http::Method;
use serde_json::{Value, json};

use super::{WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::Setup;

on_both_databases! {
    cr43_cr44_cr45_unknown_members,
    cr46_embedded_resources,
    cr48_cr49_nulls_defaults_and_keys,
    cr58_cr59_junctors_and_formats,
    cr61_cr62_what_was_wrong_may_stay,
    cr96_applied_lists_merge_by_key,
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

async fn cr43_cr44_cr45_unknown_members(setup: Setup) {
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

async fn cr46_embedded_resources(setup: Setup) {
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
    let mut own = widget("w2", json!({}));
    own["metadata"]["labels"] = json!({"a": 1});
    let refused = server.post(WIDGETS, &own).await;
    assert!(refused.status == 400 && message(&refused).contains("cannot be handled as a Widget"));
}

async fn cr48_cr49_nulls_defaults_and_keys(setup: Setup) {
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

async fn cr58_cr59_junctors_and_formats(setup: Setup) {
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

async fn cr61_cr62_what_was_wrong_may_stay(setup: Setup) {
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

async fn cr96_applied_lists_merge_by_key(setup: Setup) {
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
