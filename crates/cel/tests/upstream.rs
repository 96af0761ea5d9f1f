//! What upstream makes of thousands of expressions (`tests/upstream/cel`), beside what this crate makes of them: what is
//! wrong, values, errors, costs.

use std::io::Read;

use rowplane_cel::decl::{Decl, of_schema};
use rowplane_cel::value::{Error, Value, view};
use rowplane_cel::{Budget, Environment, Refusal, Variables, check, program, worst_cost};
use rowplane_values::tree;
use serde::Deserialize;

#[derive(Deserialize)]
struct Expected {
    e: String,
    #[serde(default)]
    w: String,
    #[serde(default)]
    s: u64,
    #[serde(default)]
    t: String,
    #[serde(default)]
    v: Vec<Outcome>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Outcome {
    #[serde(default)]
    v: String,
    #[serde(default)]
    e: String,
    c: u64,
}

struct Pair<'a> {
    decl: &'a Decl,
    of: &'a tree::Value,
}

impl<'a> Variables<'a> for Pair<'a> {
    fn get(&self, name: &str) -> Option<Result<Value<'a>, Error>> {
        let value = &self.of.as_object()?.get(if name == "self" { "self" } else { "old" })?;
        Some(view(value, self.decl))
    }
}

fn data(name: &str) -> String {
    format!("{}/../../testdata/cel/evaluate/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn results() -> String {
    let file = std::fs::File::open(data("results.jsonl.gz")).expect("results");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    text
}

fn outcome(
    text: &str,
    decl: &Decl,
    environment: &Environment,
    pairs: &[tree::Value],
) -> (String, String, u64, Vec<Outcome>) {
    let checked = match check(text, environment) {
        Ok(checked) => checked,
        Err(Refusal::Wrong(why)) => return (why, String::new(), 0, Vec::new()),
        Err(Refusal::NoStack) => panic!("no stack"),
    };
    let program = match program(&checked, environment) {
        Ok(program) => program,
        Err(why) => {
            let why = format!("program instantiation failed: {why}");
            return (why, checked.result.to_string(), 0, Vec::new());
        }
    };
    let values = pairs.iter().map(|of| {
        let mut budget = Budget::of(1_000_000);
        let outcome = program.evaluate(&Pair { decl, of }, &mut budget);
        let (v, e) = match outcome {
            Ok(value) => (value.canonical(), String::new()),
            Err(fault) => (String::new(), fault.message().to_owned()),
        };
        Outcome { v, e, c: budget.spent }
    });
    (String::new(), checked.result.to_string(), worst_cost(&checked, decl), values.collect())
}

/// Whether two texts tell of a syntax error at the same place first. Its words and later errors may differ.
fn begin_alike(one: &str, other: &str) -> bool {
    const KIND: &str = ": Syntax error: ";
    let place = |text: &str| text.find(KIND).map(|at| text[..at].to_owned());
    place(one).is_some() && place(one) == place(other)
}

#[test]
fn admission_118_verdicts_values_and_costs_are_upstreams() {
    let schema: tree::Value =
        serde_saphyr::from_str(&std::fs::read_to_string(data("schema.yaml")).expect("a schema"))
            .expect("YAML");
    let objects = std::fs::read_to_string(data("objects.yaml")).expect("objects");
    let pairs: Vec<tree::Value> =
        objects.split("\n---\n").map(|text| serde_saphyr::from_str(text).expect("YAML")).collect();
    let decl = of_schema(&schema, false, "selfType");
    let of = decl.cel_type().expect("a type");
    let environment = Environment::default().with_variable("self", of.clone()).with_variable("oldSelf", of);
    let environment = decl.declare(environment);
    let (mut compared, mut alike, mut different) = (0, 0, Vec::new());
    for line in results().lines() {
        let expected: Expected = serde_json::from_str(line).expect("a result");
        let (wrong, of, worst, values) = outcome(&expected.e, &decl, &environment, &pairs);
        compared += 1;
        if wrong != expected.w && begin_alike(&wrong, &expected.w) {
            alike += 1;
            continue;
        }
        if (&wrong, &of, worst, &values) != (&expected.w, &expected.t, expected.s, &expected.v) {
            different.push(format!(
                "{}\n  upstream {} {} {} {:?}\n  rowplane {wrong} {of} {worst} {values:?}",
                expected.e, expected.w, expected.t, expected.s, expected.v
            ));
        }
    }
    assert!(compared > 5000, "{compared}");
    assert!(alike <= 10, "{alike} syntax errors are told in other words");
    assert!(
        different.is_empty(),
        "{} of {compared}:\n{}",
        different.len(),
        different[..different.len().min(50)].join("\n")
    );
}
