//! `x-kubernetes-validations` of custom objects.

use serde_json::{Value, json};

use super::{DEFINITIONS, WIDGETS, WIDGETS_DEFINITION, change, widget, widgets, with};
use crate::support::client::Answer;
use crate::support::server::Setup;

on_every_store! {
    custom_resources_64_65_75_what_rules_say,
    custom_resources_66_67_rules_of_what_was,
    custom_resources_63_what_was_wrong_before_is_told_only,
    a_rule_with_a_type_error_is_refused,
}

/// W with rules on its spec.
fn with_rules(rules: Value) -> Value {
    let mut definition = widgets();
    let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["properties"]["spec"]["x-kubernetes-validations"] = rules;
    definition
}

/// Field, reason and message of each cause.
fn causes(answer: &Answer) -> Vec<[String; 3]> {
    let failure = answer.failure();
    assert_eq!(failure["code"], 422, "{failure}");
    let causes = failure["details"]["causes"].as_array().expect("causes").clone();
    let text = |cause: &Value, name: &str| cause[name].as_str().expect(name).to_owned();
    causes.iter().map(|cause| ["field", "reason", "message"].map(|name| text(cause, name))).collect()
}

async fn custom_resources_64_65_75_what_rules_say(setup: Setup) {
    let server = setup.start().await;
    let definition = with_rules(json!([
        {"rule": "!has(self.replicas) || self.replicas < 5"},
        {"rule": "!has(self.replicas) || self.replicas < 6", "message": "too many"},
        {"rule": "!has(self.replicas) || self.replicas < 7", "messageExpression": "'not ' + self.color"},
        {"rule": "!has(self.color) || self.color != 'red'", "message": "no red", "reason": "FieldValueForbidden",
         "fieldPath": ".color"},
    ]));
    with(&server, &definition).await;
    server.post(WIDGETS, &widget("good", json!({"replicas": 4, "color": "blue"}))).await.expect(201);
    let refused = causes(&server.post(WIDGETS, &widget("bad", json!({"replicas": 9, "color": "red"}))).await);
    let expected = [
        ["spec", "FieldValueInvalid", "Invalid value: failed rule: !has(self.replicas) || self.replicas < 5"],
        ["spec", "FieldValueInvalid", "Invalid value: too many"],
        ["spec", "FieldValueInvalid", "Invalid value: not red"],
        ["spec.color", "FieldValueForbidden", "Forbidden: no red"],
    ];
    assert_eq!(refused, expected);
    let unchecked = causes(&server.post(WIDGETS, &widget("odd", json!({"color": 9}))).await);
    let last = "Invalid value: null: some validation rules were not checked because the object was invalid; correct \
                the existing errors to complete validation";
    assert_eq!(unchecked.len(), 2);
    assert_eq!(unchecked[1], ["<nil>", "FieldValueInvalid", last]);
}

async fn custom_resources_66_67_rules_of_what_was(setup: Setup) {
    let server = setup.start().await;
    let mut definition = with_rules(json!([]));
    let spec = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    spec["properties"]["color"]["x-kubernetes-validations"] =
        json!([{"rule": "self == oldSelf", "message": "stays"}]);
    with(&server, &definition).await;
    server.post(WIDGETS, &widget("w", json!({"color": "red"}))).await.expect(201);
    let path = format!("{WIDGETS}/w");
    let refused = causes(&change(&server, &path, |object| object["spec"]["color"] = "blue".into()).await);
    assert_eq!(refused, [["spec.color", "FieldValueInvalid", "Invalid value: \"blue\": stays"]]);
    change(&server, &path, |object| object["spec"] = json!({"replicas": 1})).await.ok();
    change(&server, &path, |object| object["spec"]["color"] = "blue".into()).await.ok();
}

async fn custom_resources_63_what_was_wrong_before_is_told_only(setup: Setup) {
    let server = setup.start().await;
    with(&server, &widgets()).await;
    server.post(WIDGETS, &widget("w", json!({"replicas": 9}))).await.expect(201);
    let rules = json!([{"rule": "self.replicas < 5", "message": "too many"}]);
    let later = with_rules(rules);
    let changed = change(&server, WIDGETS_DEFINITION, |definition| {
        definition["spec"]["versions"] = later["spec"]["versions"].clone();
    });
    changed.await.ok();
    let path = format!("{WIDGETS}/w");
    let labelled = server.patch(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.status, 200, "{labelled:?}");
    let warning = labelled.header("warning").unwrap_or_default();
    assert!(warning.contains("too many"), "{warning}");
    let refused = causes(&server.patch(&path, &json!({"spec": {"replicas": 8}})).await);
    assert_eq!(refused, [["spec", "FieldValueInvalid", "Invalid value: too many"]]);
}

async fn a_rule_with_a_type_error_is_refused(setup: Setup) {
    let server = setup.start().await;
    let refused = causes(&server.post(DEFINITIONS, &with_rules(json!([{"rule": "self.z == 1"}]))).await);
    assert!(refused.iter().any(|[_, _, message]| message.contains("undefined field 'z'")), "{refused:?}");
}
