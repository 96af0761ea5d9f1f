//! Tests of `kinds::core::persistent_volume_claim::source`.

use rowplane_objects::kinds::core::persistent_volume_claim::source::prepare;
use rowplane_objects::kinds::prelude::*;
use rowplane_values::tree::json;

fn prepared(spec: Value, old: Option<Value>) -> Value {
    let object = |spec| json!({"spec": spec}).as_object().expect("an object").clone();
    let mut new = object(spec);
    prepare(&mut new, old.map(object).as_ref());
    new["spec"].clone()
}

#[test]
fn one_field_follows_the_other() {
    let claim = json!({"kind": "PersistentVolumeClaim", "name": "a"});
    let both = json!({"dataSource": claim, "dataSourceRef": claim});
    assert_eq!(prepared(json!({"dataSource": claim}), None), both);
    assert_eq!(prepared(json!({"dataSourceRef": claim}), None), both);
    let foreign = json!({"kind": "PersistentVolumeClaim", "name": "a", "namespace": "other"});
    assert_eq!(prepared(json!({"dataSourceRef": foreign}), None), json!({}));
    let stored = json!({"dataSourceRef": foreign});
    assert_eq!(prepared(stored.clone(), Some(stored.clone())), stored);
    let odd = json!({"kind": "Widget", "name": "a", "apiGroup": "example.com"});
    assert_eq!(prepared(json!({"dataSource": odd}), None), json!({}));
    let stored = json!({"dataSource": odd, "dataSourceRef": odd});
    assert_eq!(prepared(json!({"dataSource": odd}), Some(stored.clone())), stored);
}
