//! ResourceSlices: the devices of a driver on one or several nodes.

pub mod capacity;
pub mod device;

use std::collections::BTreeSet;

use crate::gotext;
use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::gated_fields::Feature::{
    DraDeviceCompatibilityGroups, DraListTypeAttributes, DraNodeAllocatableResources,
    DraOptionalNodeOperations, DraPartitionableDevicesType,
};
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Each, Of, Under};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::{immutable, immutable_text};
use crate::kinds::behavior::selectable::{Refusal, field};
use crate::kinds::behavior::strategy::status::RESET;
use crate::kinds::core::pod_spec::affinity;
use crate::kinds::core::volume_source::csi_driver;
use crate::kinds::prelude::*;
use crate::kinds::resource::name;
use crate::kinds::resource::shared::within;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("resourceslices", "ResourceSlice").generation().returns_deleted(),
    strategy: Strategy {
        status_metadata: RESET,
        gated_fields: &[Under("spec", GATED_SPEC)],
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: selectable_fields,
    other_version: None,
};

/// Kubelets list the slices of their node, and of a driver that was removed.
fn selectable_fields() -> SelectableFields {
    SelectableFields::cluster(["spec.nodeName", "spec.driver"].map(field).into())
        .with_refusal(Refusal::ResourceSlice)
}

const DEVICES: usize = 128;

const ADVANCED_DEVICES: usize = 64;

const COUNTER_SETS: usize = 8;

pub const NODE_NAME: &str = "nodeName";

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let nothing = crate::tree::Value::Null;
    spec(&At::member(object, "spec"), &At::root(&nothing), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    self::spec(&spec, &old, errors);
}

pub fn spec(spec: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
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
    let per_device = spec.get("perDeviceNodeSelection").flag();
    if devices.len() > max {
        errors.too_many(&devices, devices.len(), max);
    }
    for device in within(&devices, max) {
        device::validate(&device, &named(old, &device), per_device, errors);
    }
    let mut names = BTreeSet::new();
    for device in within(&devices, max) {
        let name = device.get("name").text();
        if !names.insert(name) {
            errors.duplicate(&device, name);
        }
    }
    for set in within(&counters, COUNTER_SETS) {
        capacity::counters(&set.get("counters"), errors);
    }
}

/// The old device with the same name; null if there is none.
fn named<'v>(old: &At<'v, '_>, device: &At<'_, '_>) -> At<'v, 'static> {
    static NOTHING: crate::tree::Value = crate::tree::Value::Null;
    let name = device.get("name").text();
    let devices = old.value().get("devices").and_then(crate::tree::Value::as_array);
    let found = devices.into_iter().flatten().find(|old| At::root(old).get("name").text() == name);
    At::root(found.unwrap_or(&NOTHING))
}

/// Validates for which nodes the devices are, which can be specified in one of four ways.
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
        affinity::node_selector(&selector, errors);
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

/// Validates a flag that may only be unset or true.
pub fn flag<'n>(at: &At<'_, '_>, name: &'n str, said: &mut Vec<&'n str>, errors: &mut Errors) {
    match at.opt_flag() {
        None => {}
        Some(true) => said.push(name),
        Some(false) => errors.invalid(at, false, "must be either unset or set to true"),
    }
}

/// Validates that exactly one way was used; `rule` is the text of the error.
pub fn one_way(at: &At<'_, '_>, said: &[&str], rule: &str, errors: &mut Errors) {
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

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    let driver = spec.get("driver");
    if driver.text().to_lowercase() != driver.text() {
        let text = gotext::quote(driver.text());
        remarks.on(
            &driver,
            format_args!("driver names should be lowercase; {text} contains uppercase characters"),
        );
    }
}

const GATED_SPEC: &[Node] = &[
    Under("devices", &[Each(GATED_DEVICE)]),
    Of(DraPartitionableDevicesType, "partitionTypeAttribute"),
    Of(DraOptionalNodeOperations, "skipNodeOperations"),
];

const GATED_DEVICE: &[Node] = &[
    Under(
        "attributes",
        &[Each(&[
            Of(DraListTypeAttributes, "bools"),
            Of(DraListTypeAttributes, "ints"),
            Of(DraListTypeAttributes, "strings"),
            Of(DraListTypeAttributes, "versions"),
        ])],
    ),
    Under("consumesCounters", &[Each(&[Of(DraDeviceCompatibilityGroups, "compatibilityGroups")])]),
    Of(DraNodeAllocatableResources, "nodeAllocatableResources"),
];

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Node", "Node that the devices belong to.").at("spec.nodeName"),
        text_column("Driver", "Driver that offers the devices.").at("spec.driver"),
        text_column("Pool", "Pool that the slice is part of.").at("spec.pool.name"),
        AGE,
    ],
    ..PLAIN
};
