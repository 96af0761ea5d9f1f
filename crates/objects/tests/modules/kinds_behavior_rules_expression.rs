//! Verdicts of upstream's own compilers (`tests/upstream/expressions`) beside ours, word for word.

use rowplane_objects::causes::CauseReason;
use rowplane_objects::kinds::apiextensions::custom_resource_definition::expressions::{
    Expressions, Spot, StoredExpressions,
};
use rowplane_objects::kinds::behavior::rules::at::At;
use rowplane_objects::kinds::behavior::rules::errors::Errors;
use rowplane_objects::kinds::behavior::rules::expression::{
    Admission, DeviceProblem, Purpose, device_problem,
};
use rowplane_objects::tree::{Value, json};
use serde::Deserialize;

#[derive(Deserialize)]
struct Verdict {
    environment: String,
    expression: String,
    #[serde(default)]
    error: String,
}

/// What every policy with variables has in `tests/upstream/expressions/admission.go`.
const VARIABLES: [(&str, &str); 10] = [
    ("count", "object.spec.containers.size()"),
    ("names", "object.spec.containers.map(c, c.name)"),
    ("kinds", "['a', 'b'].map(c, c + 'x')"),
    ("text", "'a' + request.name"),
    ("flags", "{'a': true}"),
    ("born", "timestamp('2026-01-02T03:04:05Z')"),
    ("old", "oldObject.?spec"),
    ("some", "quantity('1Gi')"),
    ("broken", "nobody"),
    ("earlier", "variables.count + 1"),
];

#[test]
fn verdicts_are_upstreams() {
    let verdicts = include_str!("../../../../testdata/cel/verdicts.jsonl").lines();
    let schema: Value =
        serde_saphyr::from_str(include_str!("../../../../testdata/cel/schema.yaml")).expect("YAML");
    let (mut compared, mut different) = (0, Vec::new());
    for line in verdicts {
        let Verdict { environment, expression, error } = serde_json::from_str(line).expect("a verdict");
        let found = match environment.split_once(' ').unwrap_or((&environment, "")) {
            ("device", _) => match device_problem(&expression, &mut Errors::with_expressions()) {
                Some(DeviceProblem::Invalid(why)) => Some(why),
                other => other.map(|other| format!("{other:?}")),
            },
            ("resource", place) => resource(&schema, place, &expression),
            (kind, with) => admission(kind, with, &expression),
        };
        let found = found.unwrap_or_default();
        compared += 1;
        if found != error {
            different.push(format!("{environment}: {expression}\n  upstream {error}\n  rowplane {found}"));
        }
    }
    assert!(compared > 0);
    assert!(different.is_empty(), "{} of {compared}:\n{}", different.len(), different.join("\n"));
}

fn admission(kind: &str, with: &str, expression: &str) -> Option<String> {
    let has = |word| with.split(' ').any(|known| known == word);
    let mut admission = Admission::new(has("params"));
    let purpose = match kind {
        "condition" | "validation" => Purpose::Truth,
        "message" => Purpose::Message,
        "audit" => Purpose::Annotation,
        "variable" => Purpose::Variable,
        "patch" => Purpose::JsonPatch,
        "configuration" => Purpose::Configuration,
        _ => panic!("no {kind}"),
    };
    if has("variables") {
        admission = admission.composed();
        for (name, expression) in VARIABLES {
            let expression = expression.into();
            admission.declare(name, &At::root(&expression), &mut Errors::with_expressions());
        }
    }
    if matches!(purpose, Purpose::JsonPatch | Purpose::Configuration) {
        admission = admission.patching();
    }
    if has("unauthorized") {
        admission = admission.unauthorized();
    }
    admission.problem(expression, purpose, &mut Errors::with_expressions())
}

fn resource(schema: &Value, place: &str, expression: &str) -> Option<String> {
    let (path, what) = place.split_once(' ').unwrap_or((place, ""));
    let (mut at, mut root) = (schema, true);
    for name in path.split('.') {
        let (name, inside) = name.strip_suffix("[]").map_or((name, false), |name| (name, true));
        if !name.is_empty() {
            at = at.get("properties").and_then(|all| all.get(name)).expect("a property");
            root = at.get("x-kubernetes-embedded-resource").is_some();
        }
        if inside {
            at = at.get("items").or_else(|| at.get("additionalProperties")).expect("something inside");
            root = false;
        }
    }
    let rule = match what {
        "message" => json!({"rule": "true", "messageExpression": expression}),
        "optional" => json!({"rule": expression, "optionalOldSelf": true}),
        _ => json!({"rule": expression}),
    };
    let mut here = at.clone();
    here.as_object_mut().expect("a schema").insert("x-kubernetes-validations", json!([rule]));
    let mut errors = Errors::with_expressions();
    look_at(&here, root, &mut errors);
    let mut causes = errors.into_causes().into_vec();
    causes
        .retain(|cause| !cause.field.ends_with("optionalOldSelf") && cause.reason != CauseReason::Forbidden);
    let cause = causes.pop()?;
    Some(cause.message.split_once("}: ").expect("the rule itself").1.to_owned())
}

fn look_at(schema: &Value, root: bool, errors: &mut Errors) {
    let stored = StoredExpressions::default();
    let mut expressions = Expressions::new(&stored, false, errors);
    expressions.look_at(&At::root(schema), &Spot::root(schema, root));
    expressions.tell(&At::root(schema), errors);
}

/// A rule that is too deep is refused in upstream's words, and passed over where expressions are.
#[test]
fn deep_rules_are_refused() {
    let deep = format!("self.size() > {}1", "1 + ".repeat(251));
    let causes = |rule: &str, mut errors: Errors| {
        let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
        look_at(&schema, true, &mut errors);
        (errors.passed_over_expressions(), errors.into_causes().into_vec())
    };
    let (_, wrong) = causes(&deep, Errors::with_expressions());
    let refused = "compilation failed: ERROR: <input>:-1:0: max recursion depth exceeded";
    assert!(wrong[0].message.ends_with(refused), "{wrong:?}");
    let (_, wrong) = causes("1", Errors::with_expressions());
    assert!(wrong[0].message.ends_with("cel expression must evaluate to a bool"), "{wrong:?}");
    assert_eq!(causes("1", Errors::default()), (true, Vec::new()));
}
