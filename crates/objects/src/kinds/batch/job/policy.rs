//! Policies that decide when a job counts a pod as failed, and when the job has succeeded.

use std::collections::BTreeSet;

use crate::kinds::batch::job::{indexes, is_indexed};
use crate::kinds::behavior::format::label_key;
use crate::kinds::prelude::*;

const RULES: usize = 20;

const ACTIONS: [&str; 4] = ["Count", "FailIndex", "FailJob", "Ignore"];

/// A list of texts as Go prints it with `%q`.
fn choices(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| format!("\"{value}\"")).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

pub fn failure(policy: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    errors.at_most(&rules, RULES);
    let template = spec.dig(&["template", "spec"]);
    let containers: BTreeSet<&str> = ["containers", "initContainers"]
        .iter()
        .flat_map(|list| template.get(list).items().map(|c| c.get("name").text()).collect::<Vec<_>>())
        .collect();
    for rule in rules.items() {
        let action = rule.get("action");
        match action.text() {
            "" => errors.required(&action, &choices(&ACTIONS)),
            "FailIndex" if !spec.get("backoffLimitPerIndex").is_set() => {
                errors.invalid(&action, "FailIndex", "requires the backoffLimitPerIndex to be set");
            }
            other => _ = errors.one_of(&action, other, &ACTIONS),
        }
        let (codes, conditions) = (rule.get("onExitCodes"), rule.get("onPodConditions"));
        if codes.is_set() {
            exit_codes(&codes, &containers, errors);
        }
        pod_conditions(&conditions, errors);
        match (codes.is_set(), !conditions.is_empty()) {
            (true, true) => {
                errors.invalid_unsaid(
                    &rule,
                    "specifying both OnExitCodes and OnPodConditions is not supported",
                );
            }
            (false, false) => {
                errors.invalid_unsaid(&rule, "specifying one of OnExitCodes and OnPodConditions is required");
            }
            _ => {}
        }
    }
}

fn pod_conditions(list: &At<'_, '_>, errors: &mut Errors) {
    const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
    errors.at_most(list, RULES);
    for pattern in list.items() {
        let (kind, status) = (pattern.get("type"), pattern.get("status"));
        errors.in_format(&kind, label_key);
        // An empty status means True by default.
        errors.one_of(&status, status.text_or("True"), &STATUSES);
    }
}

fn exit_codes(at: &At<'_, '_>, containers: &BTreeSet<&str>, errors: &mut Errors) {
    let (operator, container, values) = (at.get("operator"), at.get("containerName"), at.get("values"));
    match operator.text() {
        "" => errors.required(&operator, &choices(&["In", "NotIn"])),
        other => _ = errors.one_of(&operator, other, &["In", "NotIn"]),
    }
    if let Some(name) = container.opt_text()
        && !containers.contains(name)
    {
        let why = "must be one of the container or initContainer names in the pod template";
        errors.invalid(&container, name, why);
    }
    if values.is_empty() {
        errors.invalid(&values, values.value(), "at least one value is required");
    } else if values.len() > 255 {
        errors.too_many(&values, values.len(), 255);
    }
    let mut seen = BTreeSet::new();
    for value in values.items() {
        if operator.text() == "In" && value.int() == 0 {
            errors.invalid(&value, 0, "must not be 0 for the In operator");
        }
        if !seen.insert(value.int()) {
            errors.duplicate(&value, value.int());
        }
    }
    let numbers: Vec<i64> = values.items().map(|value| value.int()).collect();
    if !numbers.is_sorted() {
        errors.invalid(&values, values.value(), "must be ordered");
    }
}

pub fn success(policy: &At<'_, '_>, spec: &At<'_, '_>, errors: &mut Errors) {
    let rules = policy.get("rules");
    if !is_indexed(spec) {
        return errors.invalid(policy, internal_success(policy), "requires indexed completion mode");
    }
    errors.present(&rules, "at least one rules must be specified when the successPolicy is specified");
    errors.at_most(&rules, RULES);
    let completions = spec.get("completions").int();
    for rule in rules.items() {
        success_rule(&rule, completions, errors);
    }
}

/// Upstream prints its internal struct.
pub fn internal_success(policy: &At<'_, '_>) -> crate::kinds::behavior::rules::errors::Verbatim {
    if !policy.is_set() {
        return crate::kinds::behavior::rules::errors::Verbatim("null".to_owned());
    }
    let rules = policy.get("rules");
    let json = |at: At<'_, '_>| crate::gotext::json(at.value());
    let rule = |rule: At<'_, '_>| {
        let (indexes, count) = (json(rule.get("succeededIndexes")), json(rule.get("succeededCount")));
        format!("{{\"SucceededIndexes\":{indexes},\"SucceededCount\":{count}}}")
    };
    let list = match rules.value() {
        crate::tree::Value::Null => "null".to_owned(),
        _ => format!("[{}]", rules.items().map(rule).collect::<Vec<_>>().join(",")),
    };
    crate::kinds::behavior::rules::errors::Verbatim(format!("{{\"Rules\":{list}}}"))
}

fn success_rule(rule: &At<'_, '_>, completions: i64, errors: &mut Errors) {
    let (count, set) = (rule.get("succeededCount"), rule.get("succeededIndexes"));
    if !count.is_set() && !set.is_set() {
        errors.required(rule, "at least one of succeededCount or succeededIndexes must be specified");
    }
    let mut total = 0;
    if let Some(text) = set.opt_text() {
        if text.len() > 64 * 1024 {
            errors.too_long(&set, 64 * 1024);
        }
        match indexes::count(text, completions) {
            Ok(number) => total = number,
            Err(why) => errors.invalid(&set, text, &format!("error parsing succeededIndexes: {why}")),
        }
    }
    let Some(number) = count.opt_int() else { return };
    errors.not_negative(&count);
    if number > completions {
        let why =
            format!("must be less than or equal to {completions} (the number of specified completions)");
        errors.invalid(&count, number, &why);
    }
    if set.is_set() && number > total {
        let why = format!(
            "must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        );
        errors.invalid(&count, number, &why);
    }
}
