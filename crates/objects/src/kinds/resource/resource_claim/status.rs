//! The status of a claim: the devices allocated to it.

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::format::dns1123_label;
use crate::kinds::behavior::rules::errors::Shown;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::rules::{condition, ip};
use crate::kinds::core::pod_spec::affinity;
use crate::kinds::core::volume_source::csi_driver;
use crate::kinds::prelude::*;
use crate::kinds::resource::resource_claim::{REQUESTS, Requests, reference, references};
use crate::kinds::resource::resource_slice::device::binding_conditions;
use crate::kinds::resource::shared::{Age, CONFIGURATIONS, configuration, raw_object, within};
use crate::kinds::resource::{name, taint};

const CONSUMERS: usize = 256;

const CONDITIONS: usize = 8;

const ADDRESSES: usize = 16;

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(new, "spec");
    let devices = spec.get("devices");
    let requests = Requests(devices.get("requests"));
    let (status, before) = (At::member(new, "status"), At::member(old, "status"));
    let (allocation, reserved) = (status.get("allocation"), status.get("reservedFor"));
    for consumer in within(&reserved, CONSUMERS) {
        self::consumer(&consumer, errors);
    }
    let results = allocation.dig(&["devices", "results"]);
    let allocated: BTreeSet<Device> = results.items().map(|at| Device::of(&at)).collect();
    for device in status.get("devices").items() {
        self::device(&device, &allocated, errors);
    }
    let terminating = At::member(new, "metadata").get("deletionTimestamp").is_set();
    reservations(&reserved, &before.get("reservedFor"), &allocation, terminating, errors);
    if allocation.is_set() && !before.get("allocation").is_set() {
        self::allocation(&allocation, requests, errors);
    }
}

fn consumer(at: &At<'_, '_>, errors: &mut Errors) {
    for name in ["resource", "name", "uid"] {
        let field = at.get(name);
        errors.present(&field, "");
    }
}

fn reservations(
    new: &At<'_, '_>,
    old: &At<'_, '_>,
    allocation: &At<'_, '_>,
    terminating: bool,
    errors: &mut Errors,
) {
    if new.is_empty() {
        return;
    }
    if !allocation.is_set() {
        return errors.forbidden(new, "may not be specified when `allocated` is not set");
    }
    let known = |one: &At<'_, '_>| old.items().any(|old| same(one.value(), old.value()));
    if terminating && new.items().any(|one| !known(&one)) {
        let why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set";
        errors.forbidden(new, why);
    }
}

pub fn allocation(at: &At<'_, '_>, requests: Requests<'_, '_>, errors: &mut Errors) {
    let devices = at.get("devices");
    for result in within(&devices.get("results"), REQUESTS) {
        reference(&result.get("request"), requests, errors);
        errors.in_format(&result.get("device"), dns1123_label);
        binding_conditions(&result, errors);
        for toleration in result.get("tolerations").items() {
            taint::toleration(&toleration, errors);
        }
    }
    // Configurations come from the class and from the claim.
    for config in within(&devices.get("config"), 2 * CONFIGURATIONS) {
        references(&config.get("requests"), requests, errors);
        configuration(&config, Age::New, errors);
    }
    let nodes = at.get("nodeSelector");
    if nodes.is_set() {
        affinity::node_selector(&nodes, errors);
    }
}

/// The identity of a device.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Device([String; 4]);

impl Device {
    fn of(at: &At<'_, '_>) -> Self {
        Self(["driver", "pool", "device", "shareID"].map(|name| at.get(name).text().to_owned()))
    }
}

impl Shown for Device {
    /// The form in which upstream prints its internal struct.
    fn show(&self) -> String {
        let [driver, pool, device, share] = self.0.each_ref().map(|text| gotext::json(&text.as_str().into()));
        format!("{{\"Driver\":{driver},\"Pool\":{pool},\"Device\":{device},\"ShareID\":{share}}}")
    }
}

fn device(at: &At<'_, '_>, allocated: &BTreeSet<Device>, errors: &mut Errors) {
    csi_driver(&at.get("driver"), errors);
    name::pool(&at.get("pool"), errors);
    errors.in_format(&at.get("device"), dns1123_label);
    let device = Device::of(at);
    if !allocated.contains(&device) {
        errors.invalid(at, device, "must be an allocated device in the claim");
    }
    let conditions = at.get("conditions");
    errors.at_most(&conditions, CONDITIONS);
    condition::validate_all(&conditions, errors);
    if at.get("data").is_set() {
        raw_object(&at.get("data"), Age::New, errors);
    }
    for address in within(&at.dig(&["networkData", "ips"]), ADDRESSES) {
        ip::of_interface(&address, address.text(), errors);
    }
}
