//! Nodes.

pub mod columns;
pub mod labels;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::causes::{Cause, CauseReason};
use crate::fields;
use crate::gotext;
use crate::kinds::behavior::format::label_value;
use crate::kinds::behavior::gated_fields::Feature::InPlacePodVerticalScalingSchedulerPreemption;
use crate::kinds::behavior::gated_fields::Node;
use crate::kinds::behavior::gated_fields::Node::{Of, Under};
use crate::kinds::behavior::rules::errors::Verbatim;
use crate::kinds::behavior::rules::same::UNSHOWN;
use crate::kinds::behavior::rules::{ip, resource, selector};
use crate::kinds::behavior::selectable::field_or;
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::behavior::warnings::address::{each, range};
use crate::kinds::core::pod_spec::scheduling;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: cluster("nodes", "Node").short(&["no"]).sub(&["proxy", "status"]),
    strategy: Strategy {
        status: StatusRule::Born,
        gated_fields: GATED,
        hooks: &NodeHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::same(warn),
    columns: &columns::COLUMNS,
    fields: || SelectableFields::cluster(vec![field_or("spec.unschedulable", "false")]),
    other_version: None,
};

/// Drops what configured kubelets by the API, which no release does any more.
#[derive(Debug)]
struct NodeHooks;

impl Hooks for NodeHooks {
    fn prepare_create(&self, object: &mut ObjectMap, _: &Writer<'_>) {
        let nothing = ObjectMap::new();
        drop_new(object, &nothing, "spec", "configSource");
        drop_new(object, &nothing, "status", "config");
    }

    fn prepare_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        drop_new(new, old, "spec", "configSource");
    }

    fn prepare_status_update(&self, new: &mut ObjectMap, old: &ObjectMap, _: &Writer<'_>) {
        drop_new(new, old, "status", "config");
    }
}

fn drop_new(new: &mut ObjectMap, old: &ObjectMap, part: &str, name: &str) {
    let had = fields::at(old, &[part, name]).is_some_and(|value| !value.is_null());
    if !had && let Some(Value::Object(part)) = new.get_mut(part) {
        part.shift_remove(name);
    }
}

const GATED: &[Node] =
    &[Under("spec", &[Of(InPlacePodVerticalScalingSchedulerPreemption, "podPreemptionPolicy")])];

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let (spec, status) = (At::member(object, "spec"), At::member(object, "status"));
    taints(object, &spec, errors);
    amounts(&status, errors);
    let swap = status.dig(&["nodeInfo", "swap", "capacity"]);
    if swap.is_set() && swap.int() <= 0 {
        let metadata = At::member(object, "metadata");
        let place = metadata.get("nodeSwapStatus");
        errors.positive(&place.other("capacity", swap.value()));
    }
    features(&status.get("declaredFeatures"), errors);
    let ranges = ranges(&spec);
    let ranges = spec.other("podCIDRs", &ranges);
    for range in ranges.items() {
        ip::legacy_range(&range, range.text(), &BTreeSet::new(), errors);
    }
    let families: BTreeSet<bool> =
        ranges.texts().filter_map(ip::parse_range).map(|(ip, _)| ip.is_ipv6()).collect();
    let bad = ranges.texts().enumerate().find(|(_, text)| ip::parse_range(text).is_none());
    if ranges.len() > 1
        && let Some((index, text)) = bad
    {
        let message = format!(
            "Internal error: invalid PodCIDRs. failed to check with dual stack with error:invalid CIDR[{index}]: <nil> (invalid CIDR address: {text})"
        );
        errors.push(Cause::new(CauseReason::Internal, ranges.path().to_string(), message));
    }
    if ranges.len() > 1 && (families.len() < 2 || ranges.len() > 2) {
        errors.invalid(&ranges, ranges.value(), "may specify no more than one CIDR for each IP family");
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    status(new, old, errors);
}

/// Rules for every update.
pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, status) = (At::member(new, "spec"), At::member(new, "status"));
    let before = At::member(old, "spec");
    amounts(&status, errors);
    features(&status.get("declaredFeatures"), errors);
    let mut seen = BTreeSet::new();
    for address in status.get("addresses").items() {
        let (kind, text) = (address.get("type").text(), address.get("address").text());
        if !seen.insert((kind, text)) {
            let json = |text: &str| gotext::json(&text.into());
            let shown = format!("{{\"Type\":{},\"Address\":{}}}", json(kind), json(text));
            errors.duplicate(&address, Verbatim(shown));
        }
    }
    let (now, old_ranges) = (ranges(&spec), ranges(&before));
    ranges_stay(&spec.other("podCIDRs", &now), &before.other("podCIDRs", &old_ranges), errors);
    let provider = spec.get("providerID");
    let known = before.get("providerID").text();
    if !known.is_empty() && known != provider.text() {
        let gone = provider.text().is_empty();
        let why = if gone { "field cannot be cleared once set" } else { "field cannot be modified once set" };
        errors.invalid(&provider, UNSHOWN, why);
    }
    taints(new, &spec, errors);
    if spec.get("externalID").text() != before.get("externalID").text() {
        errors.forbidden(&spec.get("externalID"), "may not be updated");
    }
}

/// The pod networks. If `podCIDR` differs from the first entry of the list, it counts alone.
fn ranges<'v>(spec: &At<'v, '_>) -> Cow<'v, Value> {
    let (one, list) = (spec.get("podCIDR"), spec.get("podCIDRs"));
    if one.text().is_empty() || list.texts().next() == Some(one.text()) {
        return Cow::Borrowed(list.value());
    }
    Cow::Owned(Value::Array(vec![one.value().clone()]))
}

fn ranges_stay(new: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let why = "node updates may not change podCIDR except from \"\" to valid";
    if old.is_empty() {
        return;
    }
    if old.len() != new.len() {
        return errors.forbidden(new, why);
    }
    for _ in old.texts().zip(new.texts()).filter(|(old, new)| old != new) {
        errors.forbidden(new, why);
    }
}

fn amounts(status: &At<'_, '_>, errors: &mut Errors) {
    for list in ["capacity", "allocatable"] {
        let list = status.get(list);
        for (name, amount) in list.entries() {
            // Upstream's path contains the name like a field.
            resource::amount(&list.get(name).holding(amount.value()), name, errors);
        }
    }
}

fn taints(object: &ObjectMap, spec: &At<'_, '_>, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    // Upstream reports errors at this place.
    let list = metadata.other("taints", spec.get("taints").value());
    let mut seen = BTreeSet::new();
    for taint in list.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        selector::label_name(&key, errors);
        let messages = label_value(value.text());
        if !messages.is_empty() {
            errors.invalid(&value, value.text(), &messages.join(";"));
        }
        errors.present_one_of(&effect, &scheduling::TAINT_EFFECTS);
        if !seen.insert((effect.text(), key.text())) {
            let json = |at: &At<'_, '_>| gotext::json(&at.text().into());
            let time = gotext::json(taint.get("timeAdded").value());
            let message = format!(
                "Duplicate value: {{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{time}}}: taints must be unique by key and effect pair",
                json(&key),
                json(&value),
                json(&effect),
            );
            errors.push(Cause::new(CauseReason::Duplicate, taint.path().to_string(), message));
        }
    }
}

/// Validates a sorted list of features such as `MyFeature/mySubFeature`.
fn features(list: &At<'_, '_>, errors: &mut Errors) {
    let mut last: Option<&str> = None;
    for feature in list.items() {
        let name = feature.text();
        let quoted = gotext::quote(name);
        match last {
            Some(last) if last == name => errors.duplicate(&feature, name),
            Some(last) if last > name => errors.invalid(&feature, name, "list must be sorted alphabetically"),
            _ => {}
        }
        if name.len() > 253 {
            let why = format!("invalid feature name {quoted}: must be no more than 253 characters");
            errors.invalid(&feature, name, &why);
        } else if !is_feature(name) {
            let why = format!(
                "invalid feature name {quoted}: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
            );
            errors.invalid(&feature, name, &why);
        }
        last = Some(name);
    }
}

fn is_feature(name: &str) -> bool {
    let mut parts = name.split('/');
    let part = |part: &str, first: fn(&u8) -> bool| {
        part.as_bytes().first().is_some_and(first) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    parts.next().is_some_and(|first| part(first, u8::is_ascii_uppercase))
        && parts.all(|rest| part(rest, u8::is_ascii_alphabetic))
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    if spec.get("configSource").is_set() {
        remarks.on(&spec.get("configSource"), "the feature is removed");
    }
    if !spec.get("externalID").text().is_empty() {
        remarks.on(&spec.get("externalID"), "this field is deprecated, and is unused by Kubernetes");
    }
    each(&spec.get("podCIDRs"), remarks, range);
}
