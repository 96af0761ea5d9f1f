//! The addresses of a service and their IP families.

use std::collections::BTreeSet;

use crate::kinds::behavior::rules::ip;
use crate::kinds::core::service::{Service, kind};
use crate::kinds::prelude::*;

pub fn is_headless(spec: &At<'_, '_>) -> bool {
    addresses(spec) == ["None"]
}

/// The addresses. If the list is absent, upstream makes it from the single address.
pub fn addresses<'v>(spec: &At<'v, '_>) -> Vec<&'v str> {
    let list: Vec<&str> = spec.get("clusterIPs").texts().collect();
    match spec.get("clusterIP").text() {
        "" => list,
        single if list.is_empty() => vec![single],
        _ => list,
    }
}

pub fn validate(service: &Service<'_>, errors: &mut Errors) {
    if service.kind() == "ExternalName" {
        return;
    }
    let spec = &service.spec;
    let (list, single) = (spec.get("clusterIPs"), spec.get("clusterIP").text());
    let addresses = addresses(spec);
    match addresses.first() {
        Some(_) if single.is_empty() => {
            errors.invalid(&list, list.value(), "must be empty when `clusterIP` is not specified");
        }
        Some(first) if *first != single => {
            errors.invalid(&list, list.value(), "first value must match `clusterIP`");
        }
        _ => {}
    }
    families(spec, errors);
    let before = errors.len();
    let known: BTreeSet<&str> =
        service.old.map(|old| self::addresses(&old).into_iter().collect()).unwrap_or_default();
    for (index, text) in addresses.iter().enumerate() {
        if index == 0 && *text == "None" {
            if addresses.len() > 1 {
                errors.invalid(&list, list.value(), "'None' must be the first and only value");
            }
        } else {
            ip::legacy(&list.index(index), text, &known, errors);
        }
    }
    let invalid = errors.len() > before;
    if addresses.len() > 2 {
        errors.invalid(&list, list.value(), "may only hold up to 2 values");
    }
    if invalid {
        return;
    }
    if addresses.len() > 1 && !ip::dual_stack(addresses.iter().copied()) {
        errors.invalid(&list, list.value(), "may specify no more than one IP for each IP family");
    }
    if is_headless(spec) {
        return;
    }
    for (index, (text, family)) in addresses.iter().zip(spec.get("ipFamilies").texts()).enumerate() {
        let six = ip::parse(text).is_some_and(|ip| ip.is_ipv6());
        if (family == "IPv4" && six) || (family == "IPv6" && !six) {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{index}]`");
            errors.invalid(&list.index(index), *text, &why);
        }
    }
}

fn families(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = BTreeSet::new();
    for family in spec.get("ipFamilies").items() {
        errors.one_of(&family, family.text(), &["IPv4", "IPv6"]);
        errors.distinct_from(&family, &mut seen);
    }
    let policy = spec.get("ipFamilyPolicy");
    if let Some(text) = policy.opt_text() {
        errors.one_of(&policy, text, &["PreferDualStack", "RequireDualStack", "SingleStack"]);
    }
}

/// Changes that an update may not make. Addresses that it leaves out stay.
pub fn changes(service: &Service<'_>, old: &At<'_, '_>, errors: &mut Errors) {
    let spec = &service.spec;
    if [spec, old].iter().any(|spec| kind(spec) == "ExternalName") {
        return;
    }
    let (headless, was_headless) = (is_headless(spec), is_headless(old));
    let addresses = addresses(spec);
    let stays_headless = headless && was_headless;
    if !stays_headless && !addresses.is_empty() {
        address_changes(spec, &addresses, old, errors);
    }
    if !headless && !was_headless && !spec.get("ipFamilies").is_empty() {
        family_changes(spec, old, errors);
    }
}

fn address_changes(spec: &At<'_, '_>, new: &[&str], old: &At<'_, '_>, errors: &mut Errors) {
    let list = spec.get("clusterIPs");
    let before = addresses(old);
    let once = "may not change once set";
    if before.len() == new.len() {
        for (index, _) in before.iter().zip(new).enumerate().filter(|(_, (old, new))| old != new) {
            errors.invalid(&list.index(index), list.value(), once);
        }
        return;
    }
    if before.first().is_some_and(|first| *first != new[0]) {
        errors.invalid(&list.index(0), list.value(), once);
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(spec, "clusterIP", errors);
    }
}

fn family_changes(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let families = spec.get("ipFamilies");
    let new: Vec<&str> = families.texts().collect();
    let before: Vec<&str> = old.get("ipFamilies").texts().collect();
    let first = families.index(0);
    let once = "may not change once set";
    if before.len() == new.len() {
        for _ in before.iter().zip(&new).filter(|(old, new)| old != new) {
            errors.invalid(&first, families.value(), once);
        }
        return;
    }
    if before.first().is_some_and(|old| *old != new[0]) {
        // Upstream shows the addresses here.
        errors.invalid(&first, spec.get("clusterIPs").value(), once);
    }
    if before.len() > new.len() && new.len() == 1 {
        single_stack(spec, "ipFamily", errors);
    }
}

fn single_stack(spec: &At<'_, '_>, what: &str, errors: &mut Errors) {
    let policy = spec.get("ipFamilyPolicy");
    if policy.text() != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {what}");
        errors.invalid(&policy, policy.value(), &why);
    }
}
