use super::*;
use crate::admission::dynamic::policies::cases::{held, kind_of, lines, request, subject, text};
use crate::tree::json;

fn mutated(case: &Value, before: &ObjectMap) -> Result<ObjectMap, String> {
    let member = if text(case, "patch") == "JSONPatch" { "jsonPatch" } else { "applyConfiguration" };
    let mut mutation = json!({"patchType": case["patch"]});
    mutation[member] = json!({"expression": case["expression"]});
    let mut spec = json!({"mutations": [mutation]});
    spec["variables"] = case.get("variables").cloned().unwrap_or_else(|| json!([]));
    let policy = Policy::<Mutations>::of("p", spec.as_object().expect("a spec"));
    let request = request();
    let seen = Seen { object: Some(before), request: Some(&request), ..Seen::default() };
    let patch = Patch::of(&policy.body.list[0], &policy, seen)?;
    let kind = kind_of(before);
    patch.merged(before, &kind, Schema::of(&kind).as_ref()).map_err(|failure| match failure {
        Failure::OfPolicy(why) => why,
        Failure::OfRequest(error) => error.to_string(),
    })
}

/// Upstream goes through maps, so that it tells several mistakes in any order.
fn in_order(text: &str) -> Vec<&str> {
    let text = text.strip_prefix("Internal error occurred: ").unwrap_or(text);
    let mut parts: Vec<&str> = text.split([',', '\n', ' ']).collect();
    parts.sort_unstable();
    parts
}

/// Texts of Go's decoders that show Go's types, which rowplane has in words of its own.
fn shows_go(why: &str) -> bool {
    [
        "could not marshal to JSON",
        "cannot unmarshal",
        "Object 'Kind' is missing",
        "invalid return type",
        "json: ",
        "no kind ",
    ]
    .iter()
    .any(|text| why.contains(text))
}

/// Upstream stops at a field that nobody has declared, and comes to fields in any order.
fn stops_early(wanted: &str, found: &str) -> bool {
    let Some((_, mistake)) = wanted.split_once("typed object: ") else { return false };
    mistake.ends_with("field not declared in schema") && found.split("\n  ").any(|one| one == mistake)
}

/// Of several mistakes of a configuration, values of no JSON type are told alone.
fn tells_more(wanted: &str, found: &str) -> bool {
    let Some((start, all)) = wanted.split_once(" errors:\n  ") else { return false };
    let mut all = all.split("\n  ");
    found.strip_prefix(start).is_some_and(|found| {
        (found.contains("uint64") || found.contains("[]uint8")) && all.any(|one| one == found.trim_start())
    })
}

#[test]
fn mutations_come_to_what_upstreams_come_to() {
    let lines = lines();
    let (mut made, mut failed, mut differing) = (0, 0, Vec::new());
    for case in lines.iter().filter(|line| line.get("patch").is_some()) {
        let found = mutated(case, &subject(&lines, case));
        let same = match (&found, case.get("error").and_then(Value::as_str)) {
            (Ok(found), None) => {
                made += 1;
                let mut found = found.clone();
                conform(&kind_of(&found), &mut found).is_ok() && found == held(&case["result"])
            }
            (Err(found), Some(wanted)) => {
                failed += 1;
                in_order(found) == in_order(wanted)
                    || shows_go(wanted)
                    || tells_more(wanted, found)
                    || stops_early(wanted, found)
            }
            _ => false,
        };
        if !same {
            let wanted =
                [text(case, "error"), &case.get("result").map_or(String::new(), Value::to_string)].concat();
            let found = found.map(|object| Value::Object(object).to_string());
            differing.push(format!(
                "{}\n  {}\n  found  {found:?}\n  wanted {wanted:?}",
                case["of"], case["expression"]
            ));
        }
    }
    assert!(made > 500 && failed > 500, "{made} {failed}");
    assert!(differing.is_empty(), "{} of {}:\n{}", differing.len(), made + failed, differing.join("\n"));
}
