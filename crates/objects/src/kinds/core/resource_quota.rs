//! ResourceQuotas.

pub mod columns;
pub mod warnings;

use std::collections::{BTreeMap, BTreeSet};

use crate::causes::Cause;
use crate::gotext;
use crate::kinds::behavior::rules::resource;
use crate::kinds::behavior::rules::same::IMMUTABLE;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("resourcequotas", "ResourceQuota")
        .short(&["quota"])
        .sub(&["status"])
        .returns_deleted(),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::on_create(warnings::warn),
    columns: &columns::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const SCOPES: [&str; 7] = [
    "Terminating",
    "NotTerminating",
    "BestEffort",
    "NotBestEffort",
    "PriorityClass",
    "CrossNamespacePodAffinity",
    "VolumeAttributesClass",
];

/// Pairs of scopes that cannot occur together, since no object is in both.
const OPPOSITES: [[&str; 2]; 2] = [["BestEffort", "NotBestEffort"], ["Terminating", "NotTerminating"]];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
    used(object, errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (new, old) = (At::member(new, "spec"), At::member(old, "spec"));
    spec(&new, errors);
    let scopes = new.get("scopes");
    let set =
        |spec: &At<'_, '_>| -> BTreeSet<String> { spec.get("scopes").texts().map(str::to_owned).collect() };
    if set(&new) != set(&old) {
        errors.invalid(&scopes, scopes.value(), IMMUTABLE);
    }
}

pub fn status(new: &ObjectMap, _: &ObjectMap, errors: &mut Errors) {
    used(new, errors);
}

fn used(object: &ObjectMap, errors: &mut Errors) {
    let status = At::member(object, "status");
    for list in ["hard", "used"] {
        amounts(&status.get(list), errors);
    }
}

fn amounts(list: &At<'_, '_>, errors: &mut Errors) {
    for (name, amount) in list.entries() {
        resource::quota_name(&amount, name, errors);
        resource::amount(&amount, name, errors);
    }
}

fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    let hard = spec.get("hard");
    amounts(&hard, errors);
    let scopes = spec.get("scopes");
    let mut misapplied = Misapplied { hard: &hard, known: BTreeMap::new() };
    for scope in scopes.texts() {
        if !SCOPES.contains(&scope) {
            errors.invalid(&scopes, scopes.value(), "unsupported scope");
        }
        errors.add_times(misapplied.of(scope), || {
            let value = gotext::json(scopes.value());
            Cause::invalid(scopes.path().to_string(), value, "unsupported scope applied to resource")
        });
    }
    conflicts(&scopes, &scopes, scopes.texts().collect(), errors);
    let selector = spec.get("scopeSelector");
    if selector.is_set() {
        scope_selector(&selector, &scopes, &hard, errors);
    }
}

/// Counts the limited resources to which a scope does not apply. A scope may occur several times.
struct Misapplied<'h, 'v, 'p> {
    hard: &'h At<'v, 'p>,
    known: BTreeMap<&'v str, usize>,
}

impl<'v> Misapplied<'_, 'v, '_> {
    fn of(&mut self, scope: &'v str) -> usize {
        match SCOPES.contains(&scope) {
            true => *self.known.entry(scope).or_insert_with(|| misapplied(scope, self.hard)),
            false => 0,
        }
    }
}

fn misapplied(scope: &str, hard: &At<'_, '_>) -> usize {
    const COMPUTE: [&str; 7] =
        ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];
    let applies = |name: &str| match scope {
        "Terminating"
        | "NotTerminating"
        | "NotBestEffort"
        | "PriorityClass"
        | "CrossNamespacePodAffinity" => COMPUTE.contains(&name),
        "BestEffort" => name == "pods",
        "VolumeAttributesClass" => matches!(name, "persistentvolumeclaims" | "requests.storage"),
        _ => true,
    };
    hard.entries().filter(|(name, _)| resource::is_standard_quota(name) && !applies(name)).count()
}

fn conflicts(at: &At<'_, '_>, shown: &At<'_, '_>, scopes: BTreeSet<&str>, errors: &mut Errors) {
    for _ in OPPOSITES.iter().filter(|pair| pair.iter().all(|scope| scopes.contains(scope))) {
        errors.invalid(at, shown.value(), "conflicting scopes");
    }
}

fn scope_selector(selector: &At<'_, '_>, scopes: &At<'_, '_>, hard: &At<'_, '_>, errors: &mut Errors) {
    let list = selector.get("matchExpressions");
    let mut seen = BTreeSet::new();
    let mut misapplied = Misapplied { hard, known: BTreeMap::new() };
    for requirement in list.items() {
        let (scope, operator, values) = (
            requirement.get("scopeName").text(),
            requirement.get("operator").text(),
            requirement.get("values"),
        );
        // Upstream's errors name the list instead of the requirement.
        if !SCOPES.contains(&scope) {
            errors.invalid(&list.get("scopeName"), scope, "unsupported scope");
        }
        errors.add_times(misapplied.of(scope), || {
            Cause::invalid(list.path().to_string(), internal(&list), "unsupported scope applied to resource")
        });
        let exists_only =
            !matches!(scope, "PriorityClass" | "VolumeAttributesClass") && SCOPES.contains(&scope);
        if exists_only && operator != "Exists" {
            let why = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid(&list.get("operator"), operator, why);
        }
        match operator {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector";
                errors.required(&list.get("values"), why);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector";
                errors.invalid(&list.get("values"), values.value(), why);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.invalid(&list.get("operator"), other, "not a valid selector operator"),
        }
        seen.insert(scope);
    }
    conflicts(&list, scopes, seen, errors);
}

/// Upstream prints its internal struct.
fn internal(list: &At<'_, '_>) -> String {
    let requirement = |at: At<'_, '_>| {
        let text = |name: &str| gotext::json(&at.get(name).text().into());
        let values = gotext::json(at.get("values").value());
        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{values}}}",
            text("scopeName"),
            text("operator")
        )
    };
    let list: Vec<String> = list.items().map(requirement).collect();
    format!("{{\"MatchExpressions\":[{}]}}", list.join(","))
}
