//! Tolerations, topology spread, scheduling gates and resource claims.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key, label_value};
use crate::kinds::behavior::rules::selector;
use crate::kinds::core::pod_spec::affinity::label_keys;
use crate::kinds::prelude::*;

pub const TAINT_EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

pub fn tolerations(list: &At<'_, '_>, errors: &mut Errors) {
    for toleration in list.items() {
        let (key, operator, effect) =
            (toleration.get("key"), toleration.get("operator"), toleration.get("effect"));
        let value = toleration.get("value").text();
        if !key.text().is_empty() {
            selector::label_name(&key, errors);
        } else if operator.text() != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.invalid(&operator, operator.text(), why);
        }
        if toleration.get("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.invalid(&effect, effect.text(), why);
        }
        match operator.text() {
            "Equal" | "" => {
                let messages = label_value(value);
                if !messages.is_empty() {
                    errors.invalid(&operator, value, &messages.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    errors.invalid(&operator, value, "value must be empty when `operator` is 'Exists'");
                }
            }
            // Their feature gate is off in v1.37.
            other @ ("Lt" | "Gt") => errors.not_supported(&operator, other, &["Equal", "Exists", "Lt", "Gt"]),
            other => errors.not_supported(&operator, other, &["Equal", "Exists"]),
        }
        if !effect.text().is_empty() {
            errors.one_of(&effect, effect.text(), &TAINT_EFFECTS);
        }
    }
}

pub fn topology_spread<'v>(list: &At<'v, '_>, errors: &mut Errors) {
    let pair = |constraint: At<'v, '_>| {
        (constraint.get("topologyKey").text(), constraint.get("whenUnsatisfiable").text())
    };
    // The last index of each pair.
    let last: BTreeMap<(&str, &str), usize> = list.items().map(pair).zip(0..).collect();
    for (index, constraint) in list.items().enumerate() {
        errors.positive(&constraint.get("maxSkew"));
        let (key, action) = (constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        errors.present(&key, "can not be empty");
        errors.one_of(&action, action.text(), &["DoNotSchedule", "ScheduleAnyway"]);
        if last.get(&(key.text(), action.text())).is_some_and(|last| *last > index) {
            let at = constraint.get("{topologyKey, whenUnsatisfiable}");
            errors.duplicate(&at, &*format!("{{{}, {}}}", key.text(), action.text()));
        }
        let domains = constraint.get("minDomains");
        if domains.is_set() {
            errors.positive(&domains);
            if action.text() != "DoNotSchedule" {
                let why = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                );
                errors.invalid(&domains, domains.int(), &why);
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            let policy = constraint.get(name);
            if let Some(text) = policy.opt_text() {
                errors.one_of(&policy, text, &["Honor", "Ignore"]);
            }
        }
        label_keys(&constraint, errors);
        selector::validate(&constraint.get("labelSelector"), errors);
    }
}

pub fn readiness_gates(list: &At<'_, '_>, errors: &mut Errors) {
    for gate in list.items() {
        errors.in_format(&gate.get("conditionType"), label_key);
    }
}

pub fn scheduling_gates(list: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for gate in list.items() {
        let name = gate.get("name").text();
        errors.invalid_each(&gate, name, label_key(name));
        if !seen.insert(name) {
            errors.duplicate(&gate, name);
        }
    }
}

/// Validates the pod's claims of devices. Returns their names.
pub fn resource_claims<'v>(list: &At<'v, '_>, mirror: bool, errors: &mut Errors) -> BTreeSet<&'v str> {
    let mut seen = BTreeSet::new();
    for claim in list.items() {
        let name = claim.get("name");
        if mirror {
            errors.forbidden(&At::root(list.value()), "static pods do not support resource claims");
            continue;
        }
        if name.text().is_empty() {
            errors.required(&name, "");
        } else if seen.contains(name.text()) {
            errors.duplicate(&name, name.text());
        } else {
            errors.in_format(&name, dns1123_label);
            seen.insert(name.text());
        }
        let (own, template) = (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName"));
        let why = match (own.is_set(), template.is_set()) {
            (true, true) => {
                Some("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
            }
            (false, false) => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
            _ => None,
        };
        if let Some(why) = why {
            errors.invalid(&claim, internal_claim(&claim), why);
        }
        for reference in [own, template] {
            errors.in_format_if_set(&reference, dns1123_subdomain);
        }
    }
    list.items().map(|claim| claim.get("name").text()).filter(|name| !name.is_empty()).collect()
}

fn internal_claim(claim: &At<'_, '_>) -> crate::kinds::behavior::rules::errors::Verbatim {
    let json = |name: &str| crate::gotext::json(claim.get(name).value());
    let name = crate::gotext::json(&claim.get("name").text().into());
    crate::kinds::behavior::rules::errors::Verbatim(format!(
        "{{\"Name\":{name},\"ResourceClaimName\":{},\"ResourceClaimTemplateName\":{}}}",
        json("resourceClaimName"),
        json("resourceClaimTemplateName")
    ))
}
