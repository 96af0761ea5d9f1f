//! Tests of `core::pod::qos`.

use rowplane_objects::kinds::core::pod::qos::class;
use rowplane_objects::kinds::prelude::*;
use rowplane_objects::tree::json;

fn class_of(spec: Value) -> &'static str {
    class(json!({"spec": spec}).as_object().expect("an object"))
}

#[test]
fn classes() {
    let with = |resources: &[Value]| {
        let containers: Vec<Value> =
            resources.iter().map(|resources| json!({"resources": resources})).collect();
        class_of(json!({"containers": containers}))
    };
    let both = json!({"cpu": "1", "memory": "1Gi"});
    let full = json!({"requests": both, "limits": {"cpu": "1000m", "memory": "1024Mi"}});
    assert_eq!(with(&[json!({}), json!({"requests": {"cpu": "0", "disk": "1"}})]), "BestEffort");
    assert_eq!(with(&[full.clone(), full.clone()]), "Guaranteed");
    assert_eq!(with(&[full.clone(), json!({})]), "Burstable");
    assert_eq!(with(&[json!({"requests": {"cpu": "1"}})]), "Burstable");
    assert_eq!(with(&[json!({"requests": {"cpu": "1", "memory": "1"}, "limits": both})]), "Burstable");
    assert_eq!(class_of(json!({"containers": [{}], "resources": full})), "Guaranteed");
    // Empty resources of the pod, or such as no pod has, say nothing.
    for own in [json!({"requests": {}, "limits": {}}), json!({"limits": {"example.com/x": "1"}})] {
        assert_eq!(class_of(json!({"containers": [{"resources": full}], "resources": own})), "Guaranteed");
    }
}
