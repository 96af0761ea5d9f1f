//! Rules as they run: names, libraries, messages, budgets, the status.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::Setup;

on_every_store! {
    custom_resources_70_names_that_are_no_words,
    custom_resources_73_messages_of_expressions,
    custom_resources_74_budgets_run_out,
    custom_resources_76_77_libraries_and_values,
    custom_resources_78_rules_and_the_status,
}

fn spec_of(definition: &mut Value) -> &mut Value {
    &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
}

fn with_rules(properties: Value, rules: Value) -> Value {
    let mut definition = widgets();
    let spec = spec_of(&mut definition);
    let own = spec["properties"].as_object_mut().expect("properties");
    own.extend(properties.as_object().expect("properties").clone());
    spec["x-kubernetes-validations"] = rules;
    definition
}

/// The messages of all causes.
fn messages(answer: &Answer) -> Vec<String> {
    let failure = answer.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes").clone();
    causes.iter().map(|cause| cause["message"].as_str().expect("a message").to_owned()).collect()
}

async fn custom_resources_70_names_that_are_no_words(setup: Setup) {
    let server = setup.start().await;
    let text = json!({"type": "string"});
    let properties = json!({"a-b": text, "x__y": text, "namespace": text, "1st": text});
    let rule = "self.a__dash__b == 'a' && self.x__underscores__y == 'x' && self.__namespace__ == 'n'";
    with(&server, &with_rules(properties.clone(), json!([{"rule": rule}]))).await;
    let good = json!({"a-b": "a", "x__y": "x", "namespace": "n", "1st": "1"});
    server.post(WIDGETS, &widget("w", good.clone())).await.expect(201);
    let mut bad = good;
    bad["a-b"] = "b".into();
    assert_eq!(messages(&server.post(WIDGETS, &widget("x", bad)).await).len(), 1);
    let mut first = with_rules(properties, json!([{"rule": "self.1st == ''"}]));
    first["metadata"]["name"] = "gadgets.ex.io".into();
    first["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    assert!(messages(&server.post(DEFINITIONS, &first).await)[0].contains("Syntax error"));
}

async fn custom_resources_73_messages_of_expressions(setup: Setup) {
    let server = setup.start().await;
    let rule = |message: &str| json!({"rule": "self.color != 'red'", "message": "no red", "messageExpression": message});
    let mut rules = vec![rule("'not ' + self.color"), rule("'a\\nb'"), rule("self.tags[999]")];
    rules.push(rule("self.note"));
    let text = |most: u32| json!({"type": "string", "maxLength": most});
    let tags = json!({"type": "array", "maxItems": 200, "items": text(10)});
    let properties = json!({"color": text(10), "tags": tags, "note": text(7_000)});
    with(&server, &with_rules(properties, rules.into())).await;
    let spec = json!({"color": "red", "tags": ["a"], "note": "n".repeat(6_000)});
    let refused = messages(&server.post(WIDGETS, &widget("w", spec)).await);
    let told = ["not red", "no red", "no red", "no red"].map(|text| format!("Invalid value: {text}"));
    assert_eq!(refused, told);
    let number = change(&server, WIDGETS_DEFINITION, |definition| {
        spec_of(definition)["x-kubernetes-validations"] = json!([rule("1")]);
    });
    let refused = messages(&number.await);
    assert!(refused[0].ends_with("messageExpression must evaluate to a string"), "{refused:?}");
}

async fn custom_resources_74_budgets_run_out(setup: Setup) {
    let server = setup.start().await;
    let list = |items: u64| json!({"type": "array", "maxItems": items, "items": {"type": "integer"}});
    // A definition may have rules of 10,000,000 units each, but one of them may not spend more than 1,000,000 on a value,
    // and all together no more than 10,000,000 on an object.
    let mut squares = list(1_000);
    squares["x-kubernetes-validations"] = json!([{"rule": "self.all(x, self.all(y, x + y >= 0))"}]);
    let cheap = json!({"type": "array", "maxItems": 1_000, "items": {"type": "array", "maxItems": 100,
        "items": {"type": "integer"}, "x-kubernetes-validations": vec![json!({"rule": "self.all(x, x + x + x + x + x >= 0)"}); 9]}});
    with(&server, &with_rules(json!({"squares": squares, "cheap": cheap}), json!([]))).await;
    let numbers: Vec<u64> = (0..1_000).collect();
    let dear = messages(&server.post(WIDGETS, &widget("w", json!({"squares": numbers}))).await);
    let told = "no further validation rules will be run due to call cost exceeds limit for rule: ";
    assert!(dear.len() == 1 && dear[0].contains(told), "{dear:?}");
    let hundred: Vec<u64> = (0..100).collect();
    let many = messages(&server.post(WIDGETS, &widget("x", json!({"cheap": vec![hundred; 1_000]}))).await);
    let told = "validation failed due to running out of cost budget, no further validation rules will be run";
    assert!(many.len() == 1 && many[0].contains(told), "{many:?}");
}

/// One rule of each library that is kept, and one that is not, and the values that schemas declare.
async fn custom_resources_76_77_libraries_and_values(setup: Setup) {
    let server = setup.start().await;
    let text = json!({"type": "string", "maxLength": 30});
    let formatted = |format: &str| json!({"type": "string", "maxLength": 30, "format": format});
    let list = |by: &str, item: Value| json!({"type": "array", "maxItems": 5, "x-kubernetes-list-type": by, "items": item});
    let mut ports = list(
        "map",
        json!({"type": "object", "required": ["port"],
        "properties": {"port": {"type": "integer"}}}),
    );
    ports["x-kubernetes-list-map-keys"] = json!(["port"]);
    let properties = json!({
        "amount": text, "address": text, "block": text, "link": text, "release": text,
        "at": formatted("date-time"), "wait": formatted("duration"), "data": formatted("byte"),
        "numbers": list("atomic", json!({"type": "integer"})), "tags": list("set", text.clone()),
        "ports": ports, "color": text,
        "weights": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
    });
    let sound = [
        "quantity(self.amount).isGreaterThan(quantity('1Gi'))",
        "ip(self.address).isLoopback()",
        "cidr(self.block).containsIP('10.1.2.3')",
        "url(self.link).getHost() == 'example.com:8080'",
        "semver(self.release).isGreaterThan(semver('1.0.0'))",
        "!format.dns1123Label().validate(self.color).hasValue()",
        "self.weights.all(k, v, k == 'a' && v == 1)",
        "self.numbers.slice(1, 3) == [2, 3] && self.numbers.reverse()[0] == 3",
        "self.tags == ['b', 'a'] && self.tags + ['a', 'c'] == ['a', 'b', 'c']",
        "(self.ports + self.ports).size() == 1 && self.ports + self.ports == self.ports",
        "self.at == timestamp('2026-01-01T00:00:00Z') && self.at < timestamp('2026-01-01T00:00:01Z')",
        "self.wait == duration('90s')",
        "self.data == b'abc'",
    ];
    let spec = json!({
        "amount": "2Gi", "address": "127.0.0.1", "block": "10.0.0.0/8", "link": "https://example.com:8080/a",
        "release": "1.2.3", "color": "red", "weights": {"a": 1}, "numbers": [1, 2, 3], "tags": ["a", "b"],
        "ports": [{"port": 80}], "at": "2026-01-01T01:00:00+01:00", "wait": "1m30s", "data": "YWJj",
    });
    let rule = |text: &str| json!({"rule": text});
    let negated = |text: &&str| rule(&format!("!({text})"));
    with(&server, &with_rules(properties.clone(), sound.iter().map(|text| rule(text)).collect())).await;
    server.post(WIDGETS, &widget("w", spec.clone())).await.expect(201);
    let all: Value = sound.iter().map(negated).collect();
    change(&server, WIDGETS_DEFINITION, |definition| {
        spec_of(definition)["x-kubernetes-validations"] = all.clone();
    })
    .await
    .ok();
    let refused = messages(&server.post(WIDGETS, &widget("x", spec)).await);
    let told: Vec<String> =
        sound.iter().map(|text| format!("Invalid value: failed rule: !({text})")).collect();
    assert_eq!(refused, told);
}

async fn custom_resources_78_rules_and_the_status(setup: Setup) {
    let server = setup.start().await;
    let mut definition = with_rules(json!({}), json!([{"rule": "self.replicas < 5", "message": "too many"}]));
    let rules = spec_of(&mut definition)["x-kubernetes-validations"].take();
    let root = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["x-kubernetes-validations"] =
        json!([{"rule": "!has(self.status) || self.status.replicas <= 3", "message": "no more"}]);
    with(&server, &definition).await;
    server.post(WIDGETS, &widget("w", json!({"replicas": 9}))).await.expect(201);
    change(&server, WIDGETS_DEFINITION, |definition| {
        spec_of(definition)["x-kubernetes-validations"] = rules.clone();
    })
    .await
    .ok();
    let status = format!("{WIDGETS}/w/status");
    let refused = messages(&server.patch(&status, &json!({"status": {"replicas": 4}})).await);
    assert_eq!(refused, ["Invalid value: no more"]);
    let taken = server.patch(&status, &json!({"status": {"replicas": 3}})).await;
    assert_eq!(taken.status, 200, "{taken:?}");
    assert!(taken.header("warning").unwrap_or_default().contains("too many"), "{taken:?}");
}
