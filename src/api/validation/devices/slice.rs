//! What a driver has on a node, or for several.

use super::super::at::At;
use super::super::errors::{Errors, Verbatim};
use super::super::format::{dns1123_label, dns1123_subdomain};
use super::super::pod;
use super::super::same::{immutable, immutable_text};
use super::super::volume_source::csi_driver;
use super::{capacity, device, each_once, name};
use crate::api::ObjectMap;
use crate::gotext;

const DEVICES: usize = 128;
const ADVANCED_DEVICES: usize = 64;
const COUNTER_SETS: usize = 8;
pub(super) const NODE_NAME: &str = "nodeName";

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let nothing = crate::tree::Value::Null;
    spec(&At::member(object, "spec"), &At::root(&nothing), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    self::spec(&spec, &old, errors);
}

fn spec(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    csi_driver(&spec.get("driver"), errors);
    let pool = spec.get("pool");
    name::pool(&pool.get("name"), errors);
    errors.positive(&pool.get("resourceSliceCount"));
    let generation = pool.get("generation");
    if generation.int() < 0 {
        errors.invalid(&generation, generation.int(), "must be greater than or equal to zero");
    }
    if old.is_set() {
        immutable_text(&pool.get("name"), &old.dig(&["pool", "name"]), errors);
        immutable_text(&spec.get("driver"), &old.get("driver"), errors);
        immutable(&spec.get(NODE_NAME), &old.get(NODE_NAME), errors);
    }
    nodes(spec, errors);
    let (devices, counters) = (spec.get("devices"), spec.get("sharedCounters"));
    if counters.is_set() && devices.is_set() {
        errors.invalid(spec, "", "only one of `sharedCounters` or `devices` is allowed");
    }
    let advanced = devices.items().any(|device| device::is_advanced(&device));
    let max = if advanced { ADVANCED_DEVICES } else { DEVICES };
    let name = |at: &At<'_, '_>| at.get("name").text().to_owned();
    let per_device = spec.get("perDeviceNodeSelection").flag();
    each_once(&devices, max, name, errors, |device, errors| {
        device::validate(device, &named(old, device), per_device, errors);
    });
    each_once(&counters, COUNTER_SETS, name, errors, |set, errors| {
        errors.required_in_format(&set.get("name"), dns1123_label);
        capacity::counters(&set.get("counters"), errors);
    });
}

/// The old device of the same name; null if there is none.
fn named<'v>(old: &At<'v, '_>, device: &At<'_, '_>) -> At<'v, 'static> {
    static NOTHING: crate::tree::Value = crate::tree::Value::Null;
    let name = device.get("name").text();
    let devices = old.value().get("devices").and_then(crate::tree::Value::as_array);
    let found = devices.into_iter().flatten().find(|old| At::root(old).get("name").text() == name);
    At::root(found.unwrap_or(&NOTHING))
}

/// For which nodes the devices are: one of four ways to say it.
fn nodes(spec: &At<'_, '_>, errors: &mut Errors) {
    const WAYS: &str =
        "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required";
    let mut said = Vec::new();
    let name = spec.get(NODE_NAME);
    match name.opt_text() {
        None => {}
        Some("") => errors.invalid(&name, "", "must be either unset or set to a non-empty string"),
        Some(text) => {
            said.push("`nodeName`");
            errors.invalid_each(&name, text, dns1123_subdomain(text));
        }
    }
    let selector = spec.get("nodeSelector");
    if selector.is_set() {
        said.push("`nodeSelector`");
        pod::node_selector(&selector, errors);
        let terms = selector.get("nodeSelectorTerms");
        if terms.len() != 1 {
            let shown = Verbatim(gotext::json(terms.value()));
            errors.invalid(
                &selector.get("nodeSelectorTerms"),
                shown,
                "must have exactly one node selector term",
            );
        }
    }
    flag(&spec.get("allNodes"), "`allNodes`", &mut said, errors);
    flag(&spec.get("perDeviceNodeSelection"), "`perDeviceNodeSelection`", &mut said, errors);
    one_way(spec, &said, WAYS, errors);
}

/// A flag that can only be up.
pub(super) fn flag<'n>(at: &At<'_, '_>, name: &'n str, said: &mut Vec<&'n str>, errors: &mut Errors) {
    match at.opt_flag() {
        None => {}
        Some(true) => said.push(name),
        Some(false) => errors.invalid(at, false, "must be either unset or set to true"),
    }
}

/// `rule` says that it has to be exactly one.
pub(super) fn one_way(at: &At<'_, '_>, said: &[&str], rule: &str, errors: &mut Errors) {
    match said {
        [] => errors.required(at, rule),
        [_] => {}
        several => {
            let shown = format!("{{{}}}", several.join(", "));
            errors.invalid(
                at,
                &*shown,
                &rule.replace("is required", "is required, but multiple fields are set"),
            );
        }
    }
}
