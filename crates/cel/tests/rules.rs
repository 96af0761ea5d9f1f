//! What upstream's rules (`x-kubernetes-validations`) say of objects (`tests/upstream/cel rules`), beside what these say.

use rowplane_cel::rules::Rules;
use rowplane_values::tree::{Map, Value};
use serde::Deserialize;

#[derive(Deserialize)]
struct Document {
    schema: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    new: Map,
    #[serde(default)]
    old: Option<Map>,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
    budget: i64,
}

fn data(name: &str) -> String {
    let path = format!("{}/../../testdata/cel/rules/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("data")
}

fn findings(rules: &Rules, case: &Case) -> Findings {
    let found = rules.validate(&case.new, case.old.as_ref());
    let shown =
        |violation: rowplane_cel::rules::Violation| format!("{}: {}", violation.field, violation.message);
    let mut errors: Vec<String> = found.violations.into_iter().map(shown).collect();
    let mut warnings = found.warnings;
    errors.sort();
    warnings.sort();
    Findings { errors, warnings, budget: found.budget }
}

#[test]
fn rules_find_what_upstreams_find() {
    let expected: Vec<Vec<Findings>> = serde_json::from_str(&data("results.json")).expect("results");
    let (mut compared, mut different) = (0, Vec::new());
    for (text, expected) in data("rules.yaml").split("\n---\n").zip(&expected) {
        let document: Document = serde_saphyr::from_str(text).expect("YAML");
        let rules = Rules::compile(&document.schema, true).expect("rules");
        for (case, expected) in document.cases.iter().zip(expected) {
            let found = findings(&rules, case);
            compared += 1;
            if found != *expected {
                different.push(format!("case {compared}\n upstream {expected:#?}\n rowplane {found:#?}"));
            }
        }
    }
    assert_eq!(compared, expected.iter().map(Vec::len).sum::<usize>());
    assert!(different.is_empty(), "{}", different.join("\n"));
}
