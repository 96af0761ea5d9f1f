//! Tests of `encryption::configuration`.

use std::path::Path;

use rowplane_store::encryption::configuration::{Configuration, Reload};
use serde::Deserialize;

/// A configuration, and upstream's words about it; the file's path in them is `FILE`.
#[derive(Deserialize)]
struct Case {
    text: String,
    reload: bool,
    error: String,
}

#[test]
fn auth_108_files_are_judged_as_upstream_judges_them() {
    let cases: Vec<Case> =
        serde_json::from_str(include_str!("../../../../testdata/encryption/configurations.json"))
            .expect("JSON");
    let mut wrong = Vec::new();
    for Case { text, reload, error } in &cases {
        let reload = if *reload { Reload::Yes } else { Reload::No };
        let found = Configuration::parse(text.as_bytes(), Path::new("FILE"), reload);
        let found = found.err().unwrap_or_default();
        // Where upstream's scheme is made, and a document with its keys, are told of there alone.
        let error = error.replace(" in scheme \"pkg/runtime/scheme.go:111\"", "");
        let told = |text: &str| text.split_once(" is missing in").map_or(text, |(told, _)| told).to_owned();
        if told(&found) != told(&error) {
            wrong.push(format!("{text}\n  upstream: {error}\n  here:     {found}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
