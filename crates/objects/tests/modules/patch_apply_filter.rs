//! Tests of `apply::filter`.

use rowplane_objects::patch::apply::fields_v1;
use rowplane_objects::patch::apply::filter::Filter;
use rowplane_objects::tree::json;

#[test]
fn patterns_keep_what_is_below_and_on_the_way() {
    let set = json!({
        "f:metadata": {"f:labels": {"f:a": {}}},
        "f:spec": {
            ".": {},
            "f:nodeName": {},
            "f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}},
        },
    });
    let set = fields_v1::parse(set.as_object().unwrap()).unwrap();
    let filter = Filter::Include(&[&[Some("spec"), Some("containers"), None, Some("resources")]]);
    let passed: rowplane_objects::tree::Value =
        serde_json::from_str(&fields_v1::encode(&filter.pass(set))).unwrap();
    let want = json!({"f:spec": {".": {}, "f:containers": {
        "k:{\"name\":\"a\"}": {".": {}, "f:resources": {"f:limits": {"f:cpu": {}}}}}}});
    assert_eq!(passed, want);
}
