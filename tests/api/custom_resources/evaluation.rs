//! Rules as they run: names, libraries, messages, budgets, the status.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::Setup;

on_both_databases! {
    cr70_names_that_are_no_words,
    cr78_rules_and_the_status,
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

async fn cr70_names_that_are_no_words(setup: Setup) {
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

async fn cr78_rules_and_the_status(setup: Setup) {
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
