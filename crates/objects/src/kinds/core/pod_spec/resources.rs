//! Resources of a whole pod.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::behavior::rules::resource;
use crate::kinds::behavior::rules::resource::Owner;
use crate::kinds::prelude::*;
use crate::quantity;

pub fn overhead(map: &At<'_, '_>, errors: &mut Errors) {
    for (name, at) in map.entries() {
        // Upstream validates them as limits, and its errors say so.
        let limits = map.get("limits");
        let place = limits.key(name).holding(at.value());
        resource::container_name(&place, name, errors);
        resource::amount(&place, name, errors);
    }
}

pub fn validate(spec: &At<'_, '_>, claims: &BTreeSet<&str>, errors: &mut Errors) {
    let at = spec.get("resources");
    if !at.is_set() {
        return;
    }
    if spec.dig(&["os", "name"]).text() == "windows" {
        return errors.forbidden(&at, "may not be set for a windows pod");
    }
    if at.get("claims").is_set() {
        errors.forbidden(&at.get("claims"), "claims may not be set for Resources at pod-level");
    }
    resource::requirements(&at, Owner::Pod, claims, errors);
    consistent(spec, &at, errors);
}

/// A pod's own request must not be less than the sum of its containers'.
fn consistent(spec: &At<'_, '_>, at: &At<'_, '_>, errors: &mut Errors) {
    for (field, only_huge) in [("requests", false), ("limits", true)] {
        let own = at.get(field);
        for (name, sum) in sums(spec, field) {
            let pod = own.key(name);
            let is_checked = pod.is_set() && (!only_huge || resource::is_huge_pages(name));
            if !is_checked || !exceeds(&sum, &resource::shown(&pod)) {
                continue;
            }
            let why = format!("must be greater than or equal to aggregate container {field} of {sum}");
            errors.invalid(&pod, &*resource::shown(&pod), &why);
        }
    }
    let limits = at.get("limits");
    for container in spec.get("containers").items() {
        for (name, limit) in container.dig(&["resources", "limits"]).entries() {
            let pod = limits.key(name);
            if pod.is_set() && resource::nanos(&limit) > resource::nanos(&pod) {
                // Upstream reports errors at this place.
                let containers = at.get("containers");
                let (place, index) = (containers.path().to_string(), container.path().to_string());
                let index = index.rsplit_once('[').map_or("", |(_, rest)| rest);
                let field = format!("{place}[{index}[{name}].limits");
                let why = format!("must be less than or equal to pod limits of {}", resource::shown(&pod));
                let shown = crate::gotext::quote(&resource::shown(&limit));
                errors.push(crate::causes::Cause::invalid(field, shown, &why));
            }
        }
    }
}

/// Amounts of resources, as Go prints them.
type Amounts<'v> = BTreeMap<&'v str, String>;

/// The sum of all containers: of those that run side by side, or of an init container if that is larger.
fn sums<'v>(spec: &At<'v, '_>, field: &str) -> Amounts<'v> {
    let own = |container: &At<'v, '_>| -> Amounts<'v> {
        let path = ["resources", field];
        let list = container.dig(&path);
        list.entries().map(|(name, at)| (name, resource::shown(&at))).collect()
    };
    let mut running = Amounts::new();
    for container in spec.get("containers").items() {
        add(&mut running, &own(&container));
    }
    let (mut sidecars, mut largest) = (Amounts::new(), Amounts::new());
    for container in spec.get("initContainers").items() {
        let mut needs = own(&container);
        if container.get("restartPolicy").text() == "Always" {
            add(&mut running, &needs);
            add(&mut sidecars, &needs);
            needs = sidecars.clone();
        } else {
            add(&mut needs, &sidecars);
        }
        raise(&mut largest, needs);
    }
    raise(&mut running, largest);
    running
}

/// A sum is written like the first of its amounts.
fn add<'v>(list: &mut Amounts<'v>, more: &Amounts<'v>) {
    for (name, amount) in more {
        let sum = match list.get(name) {
            // A sum beyond all bounds, which no quantity can be, stays as it is.
            Some(own) => quantity::sum(own, amount).unwrap_or_else(|_| own.clone()),
            None => amount.clone(),
        };
        list.insert(name, sum);
    }
}

fn raise<'v>(list: &mut Amounts<'v>, other: Amounts<'v>) {
    for (name, amount) in other {
        if list.get(name).is_none_or(|own| exceeds(&amount, own)) {
            list.insert(name, amount);
        }
    }
}

fn exceeds(amount: &str, bound: &str) -> bool {
    quantity::compare(amount, bound) == Ok(Ordering::Greater)
}
