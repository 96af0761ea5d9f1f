//! Resources of a whole pod.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;
use crate::kinds::behavior::rules::resource;
use crate::kinds::behavior::rules::resource::Owner;
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
            if !pod.is_set() || (only_huge && !resource::is_huge_pages(name)) || sum <= resource::nanos(&pod)
            {
                continue;
            }
            let why = format!(
                "must be greater than or equal to aggregate container {field} of {}",
                shown(sum, pod.text().ends_with('i'))
            );
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

/// The sum of all containers: of those that run side by side, or of an init container if that is larger.
fn sums<'v>(spec: &At<'v, '_>, field: &str) -> BTreeMap<&'v str, i128> {
    let mut running: BTreeMap<&str, i128> = BTreeMap::new();
    let path = ["resources", field];
    for container in spec.get("containers").items() {
        for (name, at) in container.dig(&path).entries() {
            *running.entry(name).or_default() += resource::nanos(&at);
        }
    }
    let mut sidecars: BTreeMap<&str, i128> = BTreeMap::new();
    let mut before: BTreeMap<&str, i128> = BTreeMap::new();
    for container in spec.get("initContainers").items() {
        let sidecar = container.get("restartPolicy").text() == "Always";
        let mut needs = sidecars.clone();
        for (name, at) in container.dig(&path).entries() {
            *needs.entry(name).or_default() += resource::nanos(&at);
            if sidecar {
                *running.entry(name).or_default() += resource::nanos(&at);
            }
        }
        for (name, sum) in &needs {
            let most = before.entry(name).or_default();
            *most = (*most).max(*sum);
        }
        if sidecar {
            sidecars = needs;
        }
    }
    for (name, sum) in before {
        let all = running.entry(name).or_default();
        *all = (*all).max(sum);
    }
    running
}

/// A sum as Go prints it; with binary suffixes if the amounts had them.
fn shown(nanos: i128, binary: bool) -> String {
    const SUFFIXES: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    const UNIT: i128 = 1_000_000_000;
    if nanos % UNIT != 0 {
        let text = format!("{nanos}n");
        return quantity::normalize(&text).unwrap_or(text);
    }
    let (mut value, mut power) = (nanos / UNIT, 0);
    while binary && power < 6 && value != 0 && value % 1024 == 0 {
        value /= 1024;
        power += 1;
    }
    let text = format!("{value}{}", SUFFIXES[power]);
    quantity::normalize(&text).unwrap_or(text)
}
