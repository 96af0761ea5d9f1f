//! Tests of `claims`.

use rowplane_api::decode::claims::claim;
use rowplane_objects::schema::names::Gvk;
use rowplane_objects::tree::{Value, json};

#[test]
fn the_last_spelling_counts() {
    let pod = Gvk::fixed("v1", "Pod");
    let claimed = |object: Value| {
        let Value::Object(mut object) = object else { panic!("an object") };
        let claimed = claim(&mut object, &pod).map(|gvk| format!("{} {}", gvk.api_version(), gvk.kind));
        (claimed, object["kind"].clone())
    };
    let unfit = "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field \
                 .apiVersion of type string";
    for (object, expected, kind) in [
        (json!({"kind": "Pod", "apiVersion": "v1"}), Ok("v1 Pod"), "Pod"),
        (json!({}), Ok("v1 Pod"), "Pod"),
        (json!({"KIND": "Node", "apiVersion": "v1"}), Ok("v1 Node"), "Node"),
        (json!({"kind": "Pod", "apiVersion": "v1", "Kind": "Node"}), Ok("v1 Node"), "Node"),
        (json!({"Kind": "Node", "kind": "Pod", "apiVersion": "v1"}), Ok("v1 Pod"), "Pod"),
        (json!({"kind": "Pod", "kInd": null}), Ok("v1 Pod"), "Pod"),
        (json!({"kind": "Pod", "apiVersion": "v1", "apiversion": 1}), Err(unfit), "Pod"),
    ] {
        let expected = expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(claimed(object), (expected, kind.into()));
    }
}
