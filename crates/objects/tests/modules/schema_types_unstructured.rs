//! Tests of `schema::types::unstructured`.

use rowplane_objects::schema::builtin;
use rowplane_objects::schema::names::Gvk;
use rowplane_values::tree::Map;
use rowplane_values::tree::Value;
use rowplane_values::tree::json;

fn read(mut object: Value) -> Result<Value, String> {
    let Value::Object(members) = &mut object else { panic!("an object") };
    let pod = builtin::kind(&Gvk::fixed("v1", "Pod")).expect("a kind");
    pod.convert(members).map(|()| object)
}

#[test]
fn what_does_not_fit_is_told_in_the_words_of_the_converter() {
    let container = |member: &str, value: Value| {
        let mut container = Map::new();
        container.insert(member, value);
        json!({"spec": {"containers": [Value::Object(container)]}})
    };
    let cases = [
        (json!({"spec": 1}), "cannot restore struct from: int64"),
        (json!({"spec": {"containers": "x"}}), "cannot restore slice from string"),
        (json!({"metadata": {"labels": []}}), "cannot restore map from slice"),
        (json!({"metadata": {"labels": {"a": 1}}}), "cannot convert int64 to string"),
        (json!({"metadata": {"labels": {"a": 1.5}}}), "unrecognized type: string"),
        (json!({"metadata": {"labels": {"a": true}}}), "unrecognized type: string"),
        (json!({"spec": {"dnsPolicy": 1}}), "cannot convert int64 to v1.DNSPolicy"),
        (json!({"spec": {"priority": "1"}}), "unrecognized type: int32"),
        (json!({"spec": {"priority": 1.5}}), "cannot convert float64 to int32"),
        (json!({"spec": {"hostPID": 1}}), "unrecognized type: bool"),
        (json!({"spec": {"hostPID": "x"}}), "unrecognized type: bool"),
        (
            container("livenessProbe", json!({"httpGet": {"port": true}})),
            "json: cannot unmarshal bool into Go value of type int32",
        ),
        (
            json!({"metadata": {"creationTimestamp": 1}}),
            "json: cannot unmarshal number into Go value of type string",
        ),
    ];
    for (object, want) in cases {
        assert_eq!(read(object.clone()), Err(want.to_owned()), "{object}");
    }
}

#[test]
fn numbers_are_made_to_fit() {
    let read = |value: Value| read(json!({"spec": {"priority": value}}));
    let priority = |value: i64| Ok(json!({"spec": {"priority": value}}));
    assert_eq!(read(json!(3.0)), priority(3));
    assert_eq!(read(json!(2_147_483_648_i64)), priority(-2_147_483_648));
    assert_eq!(read(json!(null)), Ok(json!({"spec": {"priority": null}})));
}
