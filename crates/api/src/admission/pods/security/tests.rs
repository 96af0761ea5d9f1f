//! Verdicts of upstream's package, on its own fixtures and on random Pods (`tests/upstream/podsecurity`).

use std::io::Read as _;

use super::checks::violations;
use super::detail;
use super::policy::{Level, Policy, Rule, Version};
use crate::tree::{Value, json};

#[test]
fn every_version_of_every_level_says_what_upstream_says() {
    let packed = &include_bytes!("../../../../../../testdata/podsecurity/cases.jsonl.gz")[..];
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("gzip");
    let mut compared = 0;
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case");
        let pod = case["pod"].as_object().expect("a Pod");
        let (metadata, spec) = (pod["metadata"].as_object(), pod["spec"].as_object().expect("a spec"));
        for level in [Level::Baseline, Level::Restricted] {
            let verdicts = case["forbidden"].as_array().expect("verdicts").iter();
            let verdicts: Vec<&Value> =
                verdicts.filter(|verdict| verdict["level"] == level.as_str()).collect();
            for minor in 0..=38 {
                let since = |verdict: &&&Value| verdict["since"].as_i64() <= Some(minor);
                let expected = verdicts
                    .iter()
                    .rfind(since)
                    .map_or("", |verdict| verdict["detail"].as_str().unwrap_or_default());
                let version = if minor == 38 { Version::Latest } else { Version::Minor(minor as u64) };
                let found = detail(&violations(Rule { level, version }, metadata, spec)).unwrap_or_default();
                assert_eq!(found, expected, "{} {version}: {line}", level.as_str());
                compared += 1;
            }
        }
    }
    assert!(compared > 100_000, "{compared}");
}

#[test]
fn labels_name_a_policy_and_bad_ones_fail_safe() {
    let policy = |labels: Value| {
        let namespace = json!({"metadata": {"labels": labels}});
        let (policy, causes) = Policy::of(namespace.as_object().expect("an object"), &Policy::default());
        let causes: Vec<String> =
            causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        ([policy.enforce, policy.audit, policy.warn].map(|rule| rule.to_string()).join(" "), causes)
    };
    let none = "privileged:latest privileged:latest privileged:latest";
    assert_eq!(policy(json!({})), (none.to_owned(), vec![]));
    let (found, causes) = policy(
        json!({"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.24"}),
    );
    assert_eq!((&*found, causes.len()), ("baseline:v1.24 privileged:latest baseline:v1.24", 0));
    let (found, _) = policy(
        json!({"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "baseline", "pod-security.kubernetes.io/audit-version": "v1.0"}),
    );
    assert_eq!(found, "restricted:latest privileged:v1.0 baseline:latest");
    let bad = json!({"pod-security.kubernetes.io/enforce": "x", "pod-security.kubernetes.io/audit": "y", "pod-security.kubernetes.io/warn-version": "v1.01", "pod-security.kubernetes.io/audit-version": "1.2"});
    let (found, causes) = policy(bad);
    assert_eq!(found, "restricted:latest privileged:latest privileged:latest");
    assert_eq!(
        causes,
        [
            "metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"x\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit]: Invalid value: \"y\": must be one of privileged, baseline, restricted",
            "metadata.labels[pod-security.kubernetes.io/audit-version]: Invalid value: \"1.2\": must be \"latest\" or \"v1.x\"",
            "metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: \"v1.01\": must be \"latest\" or \"v1.x\"",
        ]
    );
}
