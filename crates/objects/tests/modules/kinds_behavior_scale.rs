//! Tests of `kinds::behavior::scale`.

use rowplane_objects::fields::ObjectMap;
use rowplane_objects::kinds::behavior::scale::ScalePaths;
use rowplane_values::tree::{Value, json};

fn object(value: Value) -> ObjectMap {
    value.as_object().cloned().expect("an object")
}

fn paths() -> ScalePaths {
    ScalePaths::read(
        &json!({"specReplicasPath": ".spec.size.replicas", "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector"}),
    )
}

#[test]
fn values_are_found_and_set() {
    let path = &paths().spec_replicas;
    let mut parent = object(json!({"spec": {"a": 1}}));
    assert_eq!(path.integer(&parent), Ok(None));
    path.set(&mut parent, 3.into()).expect("an object");
    assert_eq!(Value::Object(parent.clone()), json!({"spec": {"a": 1, "size": {"replicas": 3}}}));
    assert_eq!(path.integer(&parent), Ok(Some(3)));
    let error = path.set(&mut object(json!({"spec": {"size": 1}})), 3.into()).expect_err("no object");
    assert_eq!(error.to_string(), "value cannot be set because .spec.size is not a map[string]interface{}");
}

#[test]
fn causes_are_upstreams() {
    let texts = |value: Value| -> Vec<String> {
        let (object, paths) = (object(value), paths());
        let causes = paths.spec_causes(&object).into_iter().chain(paths.status_causes(&object));
        causes.map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    };
    assert_eq!(texts(json!({})), Vec::<String>::new());
    assert_eq!(
        texts(
            json!({"spec": {"size": {"replicas": -1}}, "status": {"replicas": 3_000_000_000i64, "selector": 5}})
        ),
        [
            ".spec.size.replicas: Invalid value: -1: should be a non-negative integer",
            ".status.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647",
            ".status.selector: Invalid value: \"\": .status.selector accessor error: 5 is of the type int64, expected string",
        ]
    );
    assert_eq!(
        texts(json!({"spec": {"size": "x"}})),
        [
            ".spec.size.replicas: Invalid value: 0: .spec.size.replicas accessor error: x is of the type string, \
             expected map[string]interface{}"
        ]
    );
}
