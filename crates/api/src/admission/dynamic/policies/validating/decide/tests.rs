use super::*;
use crate::admission::dynamic::policies::cases::{lines, request, subject, text};

/// Messages and reasons of the decisions that refuse, and what annotations come to.
async fn found(policy: &Policy<Validations>, seen: Seen<'_>) -> (Vec<String>, Vec<String>) {
    let mut stretch = Stretch::default();
    let evaluated = Evaluated::of(policy, seen, &mut stretch).await;
    let Evaluated { failed, annotations, unannotated } = evaluated;
    let refuses = |one: &&Failed| policy.fails_closed || one.fault == Fault::Refused;
    let failed = failed.iter().filter(refuses).map(|one| format!("{}|{}", one.message, one.reason));
    let notes = annotations.into_iter().map(|(key, value)| format!("{key}={value}"));
    let errors = unannotated.into_iter().map(|(why, _)| format!("error: {why}"));
    (failed.collect(), notes.chain(errors).collect())
}

fn wanted(case: &Value) -> (Vec<String>, Vec<String>) {
    let of = |member| case.get(member).and_then(Value::as_array).into_iter().flatten();
    let denials = of("decisions").filter(|decision| text(decision, "action") == "deny");
    let denials = denials.map(|one| format!("{}|{}", text(one, "message"), text(one, "reason")));
    let published = of("notes").filter(|note| text(note, "action") == "publish");
    let published = published.map(|note| format!("{}={}", text(note, "key"), text(note, "value")));
    let errors = of("notes").filter(|note| text(note, "action") == "error");
    let errors = errors.map(|note| format!("error: {}", text(note, "error")));
    (denials.collect(), published.chain(errors).collect())
}

#[tokio::test]
async fn validations_decide_as_upstreams_do() {
    let lines = lines();
    let (mut count, mut differing) = (0, Vec::new());
    for case in lines.iter().filter(|line| line.get("spec").is_some() && line.get("checked").is_none()) {
        let object = subject(&lines, case);
        let policy = Policy::<Validations>::of("p", case["spec"].as_object().expect("a spec"));
        let request = request();
        let seen = Seen { object: Some(&object), request: Some(&request), ..Seen::default() };
        let (found, wanted) = (found(&policy, seen).await, wanted(case));
        count += 1;
        if found != wanted {
            differing.push(format!("{}\n  found  {found:?}\n  wanted {wanted:?}", case["spec"]));
        }
    }
    assert!(count > 400, "{count}");
    assert!(differing.is_empty(), "{} of {count}:\n{}", differing.len(), differing.join("\n"));
}
