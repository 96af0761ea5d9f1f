//! LimitRanges: limits of what pods and claims in a namespace may ask for.

use std::collections::BTreeSet;

use crate::kinds::behavior::columns::DEFAULT;
use crate::kinds::behavior::format::label_key;
use crate::kinds::behavior::rules::resource;
use crate::kinds::prelude::*;
use crate::quantity::units;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("limitranges", "LimitRange").short(&["limits"]).creates_on_update(),
    strategy: Strategy { hooks: &LimitRangeHooks, ..Strategy::PLAIN },
    rules: Rules::timeless(create),
    warnings: KindWarnings::NONE,
    columns: &DEFAULT,
    fields: SelectableFields::metadata,
    other_version: None,
};

#[derive(Debug)]
struct LimitRangeHooks;

impl Hooks for LimitRangeHooks {
    fn own_name(&self, uuid: &dyn Fn() -> String) -> Option<String> {
        Some(uuid())
    }
}

/// Larger amounts are compared in whole units by upstream.
const MILLI_MAX: i64 = i64::MAX / 1000;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    let mut kinds = BTreeSet::new();
    for limit in spec.get("limits").items() {
        let kind = limit.get("type");
        limit_kind(&kind, errors);
        errors.distinct_from(&kind, &mut kinds);
        amounts(&limit, kind.text(), errors);
    }
}

fn limit_kind(at: &At<'_, '_>, errors: &mut Errors) {
    let kind = at.text();
    let messages = label_key(kind);
    let known = matches!(kind, "Pod" | "Container" | "PersistentVolumeClaim");
    if messages.is_empty() && !kind.contains('/') && !known {
        errors.invalid(at, kind, "must be a standard limit type or fully qualified");
    }
    errors.invalid_each(at, kind, messages);
}

fn amounts(limit: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let of_pod = kind == "Pod";
    let mut names = BTreeSet::new();
    for list in ["max", "min", "default", "defaultRequest"] {
        let at = limit.get(list);
        if of_pod && list.starts_with("default") {
            if !at.is_empty() {
                errors.forbidden(&at, "may not be specified when `type` is 'Pod'");
            }
            continue;
        }
        listed(&at, kind, &mut names, errors);
    }
    if kind == "PersistentVolumeClaim"
        && !["min", "max"].iter().any(|list| limit.get(list).key("storage").is_set())
    {
        let why = "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&limit.get("limits"), why);
    }
    listed(&limit.get("maxLimitRequestRatio"), kind, &mut names, errors);
    for name in names {
        compare(limit, name, of_pod, errors);
        ratio(limit, name, errors);
    }
}

fn listed<'v>(list: &At<'v, '_>, kind: &str, names: &mut BTreeSet<&'v str>, errors: &mut Errors) {
    for (name, amount) in list.entries() {
        if matches!(kind, "Pod" | "Container") {
            resource::container_name(&amount, name, errors);
        } else {
            resource::name(&amount, name, errors);
        }
        names.insert(name);
    }
}

/// Pairs of amounts of which the first must not exceed the second: both names, the field of the error, the field whose
/// value it shows, and upstream's words for both.
const ORDER: [(&str, &str, &str, &str, &str, &str); 6] = [
    ("min", "max", "min", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value", "max value"),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value",
        "default limit value",
    ),
    ("min", "default", "default", "min", "min value", "default value"),
    ("default", "max", "default", "max", "default value", "max value"),
];

fn compare(limit: &At<'_, '_>, name: &str, of_pod: bool, errors: &mut Errors) {
    for (small, large, place, value, small_name, large_name) in ORDER {
        if of_pod && [small, large].iter().any(|list| list.starts_with("default")) {
            continue;
        }
        let lists = [limit.get(small), limit.get(large)];
        let (small, large) = (lists[0].key(name), lists[1].key(name));
        if small.is_set() && large.is_set() && resource::nanos(&small) > resource::nanos(&large) {
            let (list, from) = (limit.get(place), limit.get(value));
            let why = format!(
                "{small_name} {} is greater than {large_name} {}",
                resource::shown(&small),
                resource::shown(&large)
            );
            errors.invalid(&list.key(name), &*resource::shown(&from.key(name)), &why);
        }
    }
    if of_pod || resource::allows_overcommit(name) {
        return;
    }
    let (defaults, requests) = (limit.get("default"), limit.get("defaultRequest"));
    let (default, request) = (defaults.key(name), requests.key(name));
    if default.is_set() && request.is_set() && resource::nanos(&default) != resource::nanos(&request) {
        let (default, shown) = (resource::shown(&default), resource::shown(&request));
        let why = format!("default value {default} must equal to defaultRequest value {shown} in {name}");
        errors.invalid(&request, &*shown, &why);
    }
}

fn ratio(limit: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let lists = [limit.get("maxLimitRequestRatio"), limit.get("min"), limit.get("max")];
    let [ratio, min, max] = [lists[0].key(name), lists[1].key(name), lists[2].key(name)];
    if !ratio.is_set() {
        return;
    }
    let shown = resource::shown(&ratio);
    if resource::nanos(&ratio) < 1_000_000_000 {
        errors.invalid(&ratio, &*shown, &format!("ratio {shown} is less than 1"));
    }
    if !min.is_set() || !max.is_set() {
        return;
    }
    let nanos = [&ratio, &min, &max].map(resource::nanos);
    let fine = nanos.iter().all(|nanos| units(*nanos) < MILLI_MAX);
    let number = |nanos: i128| if fine { units(nanos * 1000) } else { units(nanos) } as f64;
    let value = if fine { number(nanos[0]) / 1000.0 } else { number(nanos[0]) };
    let most = number(nanos[2]) / number(nanos[1]);
    if value > most {
        errors.invalid(&ratio, &*shown, &format!("ratio {shown} is greater than max/min = {most:.6}"));
    }
}
