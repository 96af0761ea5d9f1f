//! A device of a slice.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::rules::selector;
use crate::kinds::core::pod_spec::affinity;
use crate::kinds::prelude::*;
use crate::kinds::resource::resource_slice::{NODE_NAME, capacity, flag, one_way};
use crate::kinds::resource::shared::within;
use crate::kinds::resource::{name, taint};

const KEYS: usize = 32;

const VALUES: usize = 48;

const VALUE_MAX: usize = 64;

const TAINTS: usize = 16;

const CONSUMED_SETS: usize = 2;

const BINDING_CONDITIONS: usize = 4;

const LISTS: [&str; 4] = ["bools", "ints", "strings", "versions"];

/// Whether the device uses features that reduce the permitted number of devices in a slice.
pub fn is_advanced(device: &At<'_, '_>) -> bool {
    let listed = |(_, attribute): (&str, At<'_, '_>)| LISTS.iter().any(|list| attribute.get(list).is_set());
    !device.get("taints").is_empty()
        || !device.get("consumesCounters").is_empty()
        || device.get("attributes").entries().any(listed)
}

pub fn validate(device: &At<'_, '_>, old: &At<'_, '_>, per_device: bool, errors: &mut Errors) {
    errors.in_format(&device.get("name"), dns1123_label);
    let (attributes, capacities) = (device.get("attributes"), device.get("capacity"));
    let keys = attributes.len() + capacities.len();
    if keys > KEYS {
        let why = format!("the total number of attributes and capacities must not exceed {KEYS}");
        errors.invalid(device, keys as i64, &why);
    }
    let values: usize = attributes.entries().map(|(_, attribute)| values(&attribute)).sum();
    if values > VALUES {
        let why = format!("the total number of attribute values must not exceed {VALUES}");
        errors.invalid(device, values as i64, &why);
    }
    for (key, attribute) in attributes.entries() {
        name::qualified(&attributes, key, errors);
        let key = shortened(key);
        self::attribute(&attributes.key(&key).holding(attribute.value()), errors);
    }
    let shared = device.get("allowMultipleAllocations").flag();
    for (key, amount) in capacities.entries() {
        name::qualified(&capacities, key, errors);
        // What was accepted once stays so.
        if same(amount.value(), old.get("capacity").key(key).value()) {
            continue;
        }
        let key = shortened(key);
        capacity::validate(&capacities.key(&key).holding(amount.value()), shared, errors);
    }
    let taints = device.get("taints");
    if !same(taints.value(), old.get("taints").value()) || !old.is_set() {
        errors.at_most(&taints, TAINTS);
        within(&taints, TAINTS).for_each(|taint| taint::taint(&taint, errors));
    }
    for consumed in within(&device.get("consumesCounters"), CONSUMED_SETS) {
        capacity::counters(&consumed.get("counters"), errors);
    }
    nodes(device, per_device, errors);
    binding_conditions(device, errors);
}

/// Upstream omits the middle of keys that are too long.
fn shortened(key: &str) -> Cow<'_, str> {
    const DOTS: &str = "...";
    if key.len() <= name::KEY_MAX {
        return key.into();
    }
    let kept = name::KEY_MAX - DOTS.len();
    let head = key.floor_char_boundary(kept.div_ceil(2));
    let tail = key.ceil_char_boundary(key.len() - kept / 2);
    format!("{}{DOTS}{}", &key[..head], &key[tail..]).into()
}

fn values(attribute: &At<'_, '_>) -> usize {
    LISTS.iter().map(|list| attribute.get(list).len()).sum::<usize>().max(1)
}

pub fn attribute(at: &At<'_, '_>, errors: &mut Errors) {
    if at.get("string").is_set() {
        text_value(&at.get("string"), errors);
    }
    if at.get("version").is_set() {
        version(&at.get("version"), errors);
    }
    for list in LISTS.map(|name| at.get(name)) {
        if list.is_set() && list.is_empty() {
            errors.invalid(&list, list.value(), "must not be empty if specified");
        }
    }
    at.get("strings").items().for_each(|text| text_value(&text, errors));
    at.get("versions").items().for_each(|text| version(&text, errors));
}

fn text_value(at: &At<'_, '_>, errors: &mut Errors) {
    errors.no_longer(at, VALUE_MAX);
}

fn version(at: &At<'_, '_>, errors: &mut Errors) {
    if !is_semantic(at.text()) {
        errors.invalid(at, at.text(), "must be a string compatible with semver.org spec 2.0.0");
    }
    text_value(at, errors);
}

/// Whether the text is a semantic version, for example `1.2.3-alpha.1+build.5`.
fn is_semantic(text: &str) -> bool {
    let known = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let number = |part: &str| is_number(part) && (part == "0" || !part.starts_with('0'));
    let (text, build) = match text.split_once('+') {
        Some((text, build)) => (text, Some(build)),
        None => (text, None),
    };
    let (core, early) = match text.split_once('-') {
        Some((core, early)) => (core, Some(early)),
        None => (text, None),
    };
    core.split('.').count() == 3
        && core.split('.').all(number)
        && early.is_none_or(|early| {
            early.split('.').all(|part| known(part) && (!is_number(part) || number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(known))
}

/// Validates for which nodes a device is, if the slice leaves that to its devices.
fn nodes(device: &At<'_, '_>, per_device: bool, errors: &mut Errors) {
    let (name, selector, all) = (device.get(NODE_NAME), device.get("nodeSelector"), device.get("allNodes"));
    if !per_device {
        if name.is_set() || selector.is_set() || all.is_set() {
            let why = "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
            errors.invalid(device, Verbatim("null".to_owned()), why);
        }
        return;
    }
    let mut said = Vec::new();
    match name.opt_text() {
        None => {}
        Some("") => errors.invalid(&name, "", "must not be empty"),
        Some(text) => {
            said.push("`nodeName`");
            errors.invalid_each(&name, text, dns1123_subdomain(text));
        }
    }
    if selector.is_set() {
        said.push("`nodeSelector`");
        affinity::node_selector(&selector, errors);
    }
    flag(&all, "`allNodes`", &mut said, errors);
    let rule = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec";
    one_way(device, &said, rule, errors);
}

/// Validates conditions that must, or must not, be true before pods are bound.
pub fn binding_conditions(at: &At<'_, '_>, errors: &mut Errors) {
    let (good, bad) = (at.get("bindingConditions"), at.get("bindingFailureConditions"));
    for list in [good, bad] {
        within(&list, BINDING_CONDITIONS).for_each(|one| selector::label_name(&one, errors));
    }
    for list in [good, bad] {
        errors.distinct(&list);
    }
    let known: BTreeSet<&str> = good.texts().collect();
    for one in bad.items().filter(|one| known.contains(one.text())) {
        errors.invalid(&one, one.text(), "bindingFailureConditions must not overlap with bindingConditions");
    }
    let pairs = [
        (good, bad, "bindingConditions are required to use bindingFailureConditions"),
        (bad, good, "bindingFailureConditions are required to use bindingConditions"),
    ];
    for (missing, other, why) in pairs {
        if missing.is_empty() && !other.is_empty() {
            errors.invalid(&missing, missing.value(), why);
        }
    }
}
