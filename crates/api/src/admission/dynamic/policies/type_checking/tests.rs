//! Warnings about types are upstream's (`tests/upstream/policies`).

use std::io::Read as _;

use flate2::read::GzDecoder;

use super::*;
use crate::catalog::samples;

const CASES: &[u8] = include_bytes!("../../../../../../../testdata/policies/cases.jsonl.gz");

#[test]
fn expressions_are_warned_about_as_upstreams_are() {
    let mut lines = String::new();
    GzDecoder::new(CASES).read_to_string(&mut lines).expect("text");
    let served = samples::first();
    let (mut warned, mut differing) = (0, Vec::new());
    for case in lines.lines().filter(|line| line.contains(r#""checked":true"#)) {
        let case: Value = serde_json::from_str(case).expect("JSON");
        let wanted = case.get("warnings").and_then(Value::as_array).into_iter().flatten();
        let wanted: Vec<Value> = wanted.cloned().collect();
        let found = warnings(&served, case["spec"].as_object().expect("a spec"));
        let found = found.iter().map(|one| json!({"fieldRef": one.field, "warning": one.text}));
        let found: Vec<Value> = found.collect();
        warned += found.len();
        if found != wanted {
            let show = |list: &[Value]| list.iter().map(Value::to_string).collect::<Vec<_>>().join("\n    ");
            let (found, wanted) = (show(&found), show(&wanted));
            differing.push(format!("{}\n  found\n    {found}\n  wanted\n    {wanted}", case["spec"]));
        }
    }
    assert!(warned > 200, "{warned}");
    assert!(differing.is_empty(), "{}:\n{}", differing.len(), differing.join("\n"));
}
