//! What upstream's evaluators say of random objects (`tests/upstream/plugins`).

use super::evaluator::Evaluator;
use super::scopes::Requirement;
use super::{amounts, pods};
use crate::compared::cases;
use crate::quantity;
use crate::tree::{Value, json};

/// The scopes that upstream was asked about.
fn scopes() -> Vec<Value> {
    let plain = ["Terminating", "NotTerminating", "BestEffort", "NotBestEffort", "CrossNamespacePodAffinity"];
    let mut scopes: Vec<Value> =
        plain.into_iter().map(|name| json!({"scopeName": name, "operator": "Exists"})).collect();
    for name in ["PriorityClass", "VolumeAttributesClass"] {
        for (operator, values) in [
            ("Exists", json!([])),
            ("DoesNotExist", json!([])),
            ("In", json!(["a", "b"])),
            ("NotIn", json!(["a"])),
        ] {
            scopes.push(json!({"scopeName": name, "operator": operator, "values": values}));
        }
    }
    scopes
}

#[test]
fn usage_scopes_and_constraints_are_upstream_s() {
    let (scopes, mut compared) = (scopes(), 0);
    let obligatory =
        ["cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "pods"];
    for (kind, evaluator) in [
        ("pods", Evaluator::Pods(None)),
        ("services", Evaluator::Services),
        ("persistentvolumeclaims", Evaluator::Claims),
        ("resourceclaims", Evaluator::ResourceClaims(None)),
    ] {
        for case in cases(kind) {
            let object = case["object"].as_object().expect("an object");
            let (usage, expected) =
                (evaluator.usage(object), amounts::Amounts::of(case["usage"].as_object()));
            let names = |amounts: &amounts::Amounts| {
                amounts.iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(names(&usage), names(&expected), "{case}");
            for ((name, amount), (_, expected)) in usage.iter().zip(expected.iter()) {
                let is_same = quantity::compare(amount, expected) == Ok(std::cmp::Ordering::Equal);
                assert!(is_same, "{name}: {amount}, not {expected}: {case}");
            }
            let printed: Vec<String> = scopes
                .iter()
                .map(|scope| Requirement::selected(scope.as_object().expect("a scope")))
                .filter(|scope| evaluator.matches(std::slice::from_ref(scope), object))
                .map(|scope| scope.printed())
                .collect();
            let expected = case["scopes"].as_array().map(Vec::as_slice).unwrap_or_default();
            let expected: Vec<&str> = expected.iter().filter_map(Value::as_str).collect();
            assert_eq!(printed, expected, "{case}");
            if kind == "pods" {
                let missing = pods::constrain(obligatory.into_iter(), object).err().unwrap_or_default();
                assert_eq!(missing, case["missing"].as_str().unwrap_or_default(), "{case}");
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 3500);
}

#[test]
fn what_no_quota_covers_is_refused() {
    use super::limited::LimitedResources;
    use super::{Checked, Refusal, check};
    let parse = |text: Value| LimitedResources::parse(Some(&text));
    let head = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "ResourceQuotaConfiguration"});
    let with = |entries: Value| {
        let mut content = head.clone();
        content["limitedResources"] = entries;
        content
    };
    let limited = parse(with(json!([
        {"resource": "pods", "matchContains": ["requests.cpu"],
         "matchScopes": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system"]}]}
    ])))
    .expect("a configuration");
    let pod = |class: &str, cpu: &str| json!({"spec": {"priorityClassName": class, "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}});
    let quota = |spec: Value, names: Value| {
        let hard = names.as_array().expect("names").iter().filter_map(Value::as_str);
        let hard: crate::ObjectMap = hard.map(|name| (name, Value::from("9"))).collect();
        let used: crate::ObjectMap = hard.iter().map(|(name, _)| (name.clone(), Value::from("0"))).collect();
        let quota = json!({"spec": spec, "status": {"hard": hard, "used": used}});
        ("q".to_owned(), quota.as_object().expect("an object").clone())
    };
    let judge = |old: Option<&Value>, pod: &Value, quotas: &[(String, crate::ObjectMap)]| {
        let (old, new) = (old.and_then(Value::as_object), pod.as_object().expect("an object"));
        let write =
            Checked { evaluator: Evaluator::Pods(None), old, new, is_status: false, limited: &limited };
        check(write, quotas)
    };
    let consumes = || Err(Refusal::Forbidden("insufficient quota to consume: requests.cpu".to_owned()));
    let scope = || {
        let why = "insufficient quota to match these scopes: [{PriorityClass In [system]}]";
        Err(Refusal::Plain(why.to_owned()))
    };
    assert_eq!(judge(None, &pod("", "1"), &[]), consumes());
    assert_eq!(judge(None, &pod("", "0"), &[]), Ok(()));
    assert_eq!(judge(None, &pod("system", "0"), &[]), scope());
    let cpu = quota(json!({}), json!(["requests.cpu"]));
    assert_eq!(judge(None, &pod("", "1"), std::slice::from_ref(&cpu)), Ok(()));
    assert_eq!(judge(None, &pod("", "1"), &[quota(json!({}), json!(["pods"]))]), consumes());
    assert_eq!(judge(None, &pod("system", "1"), std::slice::from_ref(&cpu)), scope());
    let selector = json!({"scopeSelector": {"matchExpressions": [
        {"scopeName": "PriorityClass", "operator": "In", "values": ["system"]}]}});
    let covers = [cpu, quota(selector, json!(["pods"]))];
    assert_eq!(judge(None, &pod("system", "1"), &covers), Ok(()));
    // What adds nothing needs no cover.
    assert_eq!(judge(Some(&pod("", "1")), &pod("", "1"), &[]), Ok(()));
    assert_eq!(judge(Some(&pod("", "1")), &pod("", "2"), &[]), consumes());
    assert!(parse(json!({"kind": "X"})).is_err());
    assert_eq!(
        parse(with(json!([{"apiGroup": "g"}]))).expect_err("no resource"),
        "limitedResources[0].resource: Required value"
    );
}
