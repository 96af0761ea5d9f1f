//! What upstream's plugin says of random objects (`tests/upstream/plugins`).

use std::collections::BTreeSet;

use super::{ANNOTATION, complete_by, problems_of_claim, problems_of_pod};
use crate::compared::cases;
use crate::tree::{Value, json};
use crate::{ObjectMap, fields};

fn texts(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn resources(pod: &ObjectMap, list: &str) -> Value {
    let containers = fields::items(pod, &["spec", list]).iter();
    let own = containers.map(|container| match &container["resources"] {
        Value::Null => json!({}),
        own => own.clone(),
    });
    own.collect::<Vec<_>>().into()
}

#[test]
fn limits_of_pods_and_claims_are_upstream_s() {
    let mut compared = 0;
    for case in cases("limited pods") {
        let range = case["range"].as_object().expect("a range");
        let mut pod = case["object"].as_object().expect("a Pod").clone();
        complete_by(range, &mut pod);
        let result = &case["result"];
        let note = fields::text(&pod, &["metadata", "annotations", ANNOTATION]);
        assert_eq!(Some(note), result["annotation"].as_str(), "{case}");
        for list in ["containers", "initContainers"] {
            assert_eq!(resources(&pod, list), result[list], "{case}");
        }
        let problems: BTreeSet<String> = problems_of_pod(range, &pod).into_iter().collect();
        assert_eq!(problems, texts(&case["problems"]), "{case}");
        compared += 1;
    }
    for case in cases("limited claims") {
        let range = case["range"].as_object().expect("a range");
        let claim = case["object"].as_object().expect("a claim");
        let problems: BTreeSet<String> = problems_of_claim(range, claim).into_iter().collect();
        assert_eq!(problems, texts(&case["problems"]), "{case}");
        compared += 1;
    }
    assert_eq!(compared, 2500);
}
