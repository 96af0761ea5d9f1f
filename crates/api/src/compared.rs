//! Cases of upstream's code that several modules are compared with (`tests/upstream/plugins`).

use std::io::Read as _;

use crate::tree::Value;

/// The cases of a kind.
pub fn cases(kind: &str) -> Vec<Value> {
    let packed = &include_bytes!("../../../testdata/plugins/cases.jsonl.gz")[..];
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case"));
    cases.filter(|case| case["kind"] == kind).collect()
}
