//! The cases in `testdata/strategic`.

use serde::Deserialize;

use super::*;
use crate::tree::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    api_version: String,
    kind: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    live: Map,
    patch: Value,
    result: Option<Map>,
    /// The class of the error, as in `PatchError`, and its text where it has one.
    error: Option<String>,
}

#[test]
fn cases() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/strategic");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let file: File =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let message = Types::built_in().kind(&file.api_version, &file.kind).unwrap();
        for case in file.cases {
            let found = apply(case.live, &case.patch, Types::built_in(), message);
            let found = found.map_err(|error| format!("{error:?}"));
            match (case.result, case.error) {
                (Some(result), None) => assert_eq!(found, Ok(result), "{}", case.name),
                (None, Some(error)) => assert_eq!(found, Err(error), "{}", case.name),
                _ => panic!("{}: a case has a result or an error", case.name),
            }
            count += 1;
        }
    }
    assert!(count > 40, "{count} cases");
}
