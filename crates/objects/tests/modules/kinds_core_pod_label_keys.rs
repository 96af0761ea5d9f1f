//! Tests of `kinds::core::pod::label_keys`.

use rowplane_objects::kinds::core::pod::label_keys::apply;
use rowplane_objects::kinds::prelude::*;
use rowplane_values::tree::json;

#[test]
fn labels_of_the_pod_go_into_selectors() {
    let pod = json!({
        "metadata": {"labels": {"a": "1", "b": "2"}},
        "spec": {
            "topologySpreadConstraints": [
                {"matchLabelKeys": ["a", "gone"], "labelSelector": {}},
                {"matchLabelKeys": ["a"]},
            ],
            "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                {"matchLabelKeys": ["a"], "mismatchLabelKeys": ["b"], "labelSelector": {"matchExpressions": [1]}},
            ]}},
        },
    });
    let Value::Object(mut pod) = pod else { unreachable!("an object") };
    apply(&mut pod);
    let spec = &pod["spec"];
    let one = json!({"key": "a", "operator": "In", "values": ["1"]});
    let other = json!({"key": "b", "operator": "NotIn", "values": ["2"]});
    assert_eq!(spec["topologySpreadConstraints"][0]["labelSelector"], json!({"matchExpressions": [one]}));
    assert_eq!(spec["topologySpreadConstraints"][1].get("labelSelector"), None);
    let terms = &spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(terms[0]["labelSelector"], json!({"matchExpressions": [1, one, other]}));
}
