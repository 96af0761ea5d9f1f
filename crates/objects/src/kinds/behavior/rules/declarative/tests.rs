//! Rules that the oracle of validation does not reach: what an update leaves as it was, and fields of features that are
//! off, which a write never brings here. Texts are those of upstream's `pkg/api/validate` v0.37.2.

use crate::causes::Causes;
use crate::fields::ObjectMap;
use crate::kinds::built_in;
use crate::tree::{Value, json};

fn object(value: Value) -> ObjectMap {
    value.as_object().expect("an object").clone()
}

/// The errors of an object, created or in the place of `old`.
fn errors(kind: &str, new: &Value, old: Option<&Value>) -> Vec<String> {
    let definitions = built_in::definitions();
    let definition = definitions.iter().find(|known| known.kind.gvk.kind.as_str() == kind).expect(kind);
    let rules = built_in::behavior(definition).rules;
    let conformed = |value: &Value| {
        let mut object = object(value.clone());
        definition.kind.conform(&mut object).expect("conforms");
        object
    };
    let found: Causes = match old {
        None => rules.create(&conformed(new)),
        Some(old) => rules.update(&conformed(new), &conformed(old)),
    }
    .expect("no expressions");
    found.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn node(keys: &[&str]) -> Value {
    let keys: Value = keys.iter().map(|key| Value::from(*key)).collect();
    json!({"metadata": {"name": "n"}, "spec": {"podPreemptionPolicy": {"disableResizePreemption": keys}}})
}

#[test]
fn elements_of_sets_differ_and_only_new_ones_are_judged() {
    let (bad, rule) = ("a b", "name part must consist of alphanumeric characters");
    // The policy's feature is off, so that it may not be set.
    let found = errors("Node", &node(&["x"]), None);
    assert_eq!(found, ["spec.podPreemptionPolicy: Forbidden"]);
    let found = errors("Node", &node(&["x", "x", bad, "y/z", "x"]), Some(&node(&["x", bad])));
    assert_eq!(found, ["spec.podPreemptionPolicy: Forbidden"]);
    assert_eq!(errors("Node", &node(&[bad]), Some(&node(&[bad]))), [""; 0]);
    let inside = super::Struct::of(message("Node")).expect("rules of nodes");
    let spec = inside
        .members
        .iter()
        .find(|member| member.name == "spec")
        .and_then(|spec| spec.inside)
        .expect("spec");
    let policy = spec.members.iter().find(|member| member.name == "podPreemptionPolicy").expect("a policy");
    let list = &policy.inside.expect("a struct").members[0];
    let judge = |new: &Value, old: Option<&Value>| {
        let mut found = super::Errors::default();
        let before = old.map_or(super::Before::Create, super::Before::Value);
        list.validate(&super::At::root(new), before, &mut found);
        found
            .into_causes()
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect::<Vec<_>>()
    };
    let found = judge(&json!(["x", "x", "a b", "y/z", "x"]), Some(&json!(["x"])));
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].starts_with("[2]: Invalid value: \"a b\": ") && found[0].contains(rule), "{found:?}");
    assert_eq!(found[1..], ["[1]: Duplicate value: \"x\"", "[4]: Duplicate value: \"x\""]);
    assert_eq!(judge(&json!(["x", "a b"]), Some(&json!(["a b"]))), [""; 0]);
    let long: Value = (0..21).map(|index| Value::from(format!("k{index}"))).collect();
    assert_eq!(judge(&long, None), [": Too many: 21: must have at most 20 items"]);
}

fn message(kind: &str) -> crate::schema::types::MessageId {
    let definitions = built_in::definitions();
    let definition = definitions.iter().find(|known| known.kind.gvk.kind.as_str() == kind).expect(kind);
    definition.kind.go().expect("a Go type").message
}

#[test]
fn formats_have_words_of_their_own() {
    let claim = |result: Value| {
        json!({
            "metadata": {"name": "c", "namespace": "t"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "d", "allocationMode": "All"}}]}},
            "status": {"allocation": {"devices": {"results": [result]}}},
        })
    };
    let result = |pool: &str, share: &str| json!({"request": "r", "driver": "d.example.com", "pool": pool, "device": "a", "shareID": share});
    let place = "status.allocation.devices.results[0]";
    let found = errors("ResourceClaim", &claim(result("a//b", "6B1F2C3D-0000-4000-8000-000000000002")), None);
    assert_eq!(
        found,
        [
            format!("{place}.pool: Invalid value: \"a//b\": segment 1: must not be empty"),
            format!(
                "{place}.shareID: Invalid value: \"6B1F2C3D-0000-4000-8000-000000000002\": must be a lowercase UUID in 8-4-4-4-12 format"
            ),
        ]
    );
    let good = claim(result("a/b", "6b1f2c3d-0000-4000-8000-000000000002"));
    assert_eq!(errors("ResourceClaim", &good, None), [""; 0]);
    let changed = claim(result("a/c", "6b1f2c3d-0000-4000-8000-000000000002"));
    assert_eq!(
        errors("ResourceClaim", &changed, Some(&good)),
        ["status.allocation: Invalid value: null: field cannot be modified once set"]
    );
}

#[test]
fn modes_forbid_the_members_of_others() {
    let level = |limit: Value| json!({"metadata": {"name": "l"}, "spec": {"type": "Limited", "limited": {"limitResponse": limit}}});
    let place = "spec.limited.limitResponse.queuing";
    let queuing = json!({"queues": 8, "handSize": 2, "queueLengthLimit": 5});
    let wrong = level(json!({"type": "Reject", "queuing": queuing}));
    assert_eq!(errors("PriorityLevelConfiguration", &wrong, None), [format!("{place}: Forbidden")]);
    let missing = level(json!({"type": "Queue"}));
    assert_eq!(errors("PriorityLevelConfiguration", &missing, None), [format!("{place}: Required value")]);
}
