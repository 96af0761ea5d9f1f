//! ResourceClaims: devices that a pod needs.

pub mod columns;
pub mod status;

use std::collections::HashSet;

use crate::fields;
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::gated_fields::Feature::{DraDerivedAttributes, DraOptionalNodeOperations};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Each, Of, Under};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::prelude::*;
use crate::kinds::resource::shared::{Age, CONFIGURATIONS, configuration, selectors, within};
use crate::kinds::resource::taint;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("resourceclaims", "ResourceClaim").sub(&["status"]).returns_deleted(),
    strategy: Strategy {
        status_metadata: RESET,
        gated_fields: &[Under("spec", GATED_SPEC), Under("status", GATED_STATUS)],
        hooks: &ClaimHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status::update),
    warnings: KindWarnings::NONE,
    columns: &columns::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

#[derive(Debug)]
struct ClaimHooks;

impl Hooks for ClaimHooks {
    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        drop_devices_given_back(new, old);
    }
}

const ALTERNATIVES: usize = 8;

const CONSTRAINTS: usize = 32;

const ONE_OF: &str = "exactly one of `exactly` or `firstAvailable` is required";

const REFERENCE: &str =
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";

/// The most requests in a claim, and so the most references to requests.
pub const REQUESTS: usize = 32;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), errors);
}

/// The spec is immutable by the declared rules, so nothing else is judged.
fn update(_: &ObjectMap, _: &ObjectMap, _: &mut Errors) {}

pub fn spec(spec: &At<'_, '_>, errors: &mut Errors) {
    let devices = spec.get("devices");
    let requests = Requests(devices.get("requests"));
    for request in within(&requests.0, REQUESTS) {
        self::request(&request, errors);
    }
    for constraint in within(&devices.get("constraints"), CONSTRAINTS) {
        self::constraint(&constraint, requests, errors);
    }
    for config in within(&devices.get("config"), CONFIGURATIONS) {
        references(&config.get("requests"), requests, errors);
        configuration(&config, Age::New, errors);
    }
}

/// The requests of a claim, to which other parts refer.
#[derive(Clone, Copy)]
pub struct Requests<'v, 'p>(pub At<'v, 'p>);

impl Requests<'_, '_> {
    /// Whether a request, or an alternative of one, exists: `gpu`, `gpu/small`.
    fn have(self, name: &str) -> bool {
        let (request, alternative) = match name.split_once('/') {
            Some((request, alternative)) => (request, Some(alternative)),
            None => (name, None),
        };
        // Of equal names, which are refused elsewhere, the last one counts.
        let Some(found) = self.0.items().filter(|at| at.get("name").text() == request).last() else {
            return false;
        };
        alternative.is_none_or(|alternative| {
            found.get("firstAvailable").items().any(|at| at.get("name").text() == alternative)
        })
    }
}

/// Validates a reference to a request.
pub fn reference(at: &At<'_, '_>, requests: Requests<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    if name.matches('/').count() > 1 {
        return errors.invalid(at, name, REFERENCE);
    }
    for part in name.split('/') {
        errors.invalid_each(at, part, dns1123_label(part));
    }
    if !requests.have(name) {
        errors.invalid(at, name, REFERENCE);
    }
}

/// Validates the requests to which something applies; an empty list means all.
pub fn references(list: &At<'_, '_>, requests: Requests<'_, '_>, errors: &mut Errors) {
    for at in within(list, REQUESTS) {
        reference(&at, requests, errors);
    }
}

fn request(at: &At<'_, '_>, errors: &mut Errors) {
    errors.in_format(&at.get("name"), dns1123_label);
    let (exactly, alternatives) = (at.get("exactly"), at.get("firstAvailable"));
    match (exactly.is_set(), !alternatives.is_empty()) {
        (false, false) => errors.required(at, ONE_OF),
        (true, true) => {
            let why = format!("{ONE_OF}, but multiple fields are set");
            errors.invalid(at, Verbatim("null".to_owned()), &why);
        }
        (true, false) => {
            errors.required_in_format(&exactly.get("deviceClassName"), dns1123_subdomain);
            wanted(&exactly, errors);
        }
        (false, true) => {
            for at in within(&alternatives, ALTERNATIVES) {
                errors.in_format(&at.get("name"), dns1123_label);
                wanted(&at, errors);
            }
        }
    }
}

fn wanted(at: &At<'_, '_>, errors: &mut Errors) {
    selectors(&at.get("selectors"), errors);
    let (mode, count) = (at.get("allocationMode"), at.get("count"));
    match mode.text_or("ExactCount") {
        "All" if count.int() != 0 => {
            errors.invalid(&count, count.int(), "must not be specified when allocationMode is 'All'");
        }
        // The default replaces zero by one.
        "ExactCount" if count.int() < 0 => errors.invalid(&count, count.int(), "must be greater than zero"),
        _ => {}
    }
    for toleration in at.get("tolerations").items() {
        taint::toleration(&toleration, errors);
    }
}

pub fn constraint(at: &At<'_, '_>, requests: Requests<'_, '_>, errors: &mut Errors) {
    references(&at.get("requests"), requests, errors);
    if !at.get("matchAttribute").is_set() && !at.get("distinctAttribute").is_set() {
        let why = "exactly one of \"matchAttribute\" or \"distinctAttribute\" is required, but multiple fields are set";
        errors.required(at, why);
    }
}

pub const GATED_SPEC: &[Node] = &[Under(
    "devices",
    &[Under(
        "requests",
        &[Each(&[
            Under("exactly", &[Of(DraDerivedAttributes, "derivedAttributes")]),
            Under("firstAvailable", &[Each(&[Of(DraDerivedAttributes, "derivedAttributes")])]),
        ])],
    )],
)];

const GATED_STATUS: &[Node] = &[Under(
    "allocation",
    &[Under("devices", &[Under("results", &[Each(&[Of(DraOptionalNodeOperations, "skipNodeOperations")])])])],
)];

fn drop_devices_given_back(new: &mut ObjectMap, old: &ObjectMap) {
    let (held, hold) = (allocated(old), allocated(new));
    let Some(Value::Object(status)) = new.get_mut("status") else { return };
    let Some(Value::Array(devices)) = status.get_mut("devices") else { return };
    devices.retain(|device| {
        let device = key(device);
        !held.contains(&device) || hold.contains(&device)
    });
    if devices.is_empty() {
        status.shift_remove("devices");
    }
}

fn allocated(claim: &ObjectMap) -> HashSet<[String; 4]> {
    fields::items(claim, &["status", "allocation", "devices", "results"]).iter().map(key).collect()
}

/// The identity of a device.
fn key(device: &Value) -> [String; 4] {
    let text = |name| device.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    ["driver", "pool", "device", "shareID"].map(text)
}
