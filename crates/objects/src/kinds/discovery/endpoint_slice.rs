//! EndpointSlices.

pub mod columns;
pub mod topology;

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key, label_value};
use crate::kinds::behavior::rules::format::Check;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::rules::{ip, selector};
use crate::kinds::behavior::strategy::generation::Generation;
use crate::kinds::behavior::warnings::address::{address as address_address, each};
use crate::kinds::core::endpoints::managed_by;
use crate::kinds::core::service::PROTOCOLS;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("endpointslices", "EndpointSlice").generation(),
    strategy: Strategy {
        generation: Generation::ContentAnd("labels"),
        hooks: &topology::SliceHooks,
        ..Strategy::PLAIN
    },
    rules: Rules::new(create, update),
    warnings: KindWarnings::new(warn, |new, _, remarks| warn_update(new, remarks)),
    columns: &columns::COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const ENDPOINTS: usize = 1000;

const PORTS: usize = 20_000;

const TOPOLOGY: usize = 16;

const HINTS: usize = 8;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    ports(&At::member(object, "ports"), errors);
    endpoints(object, errors);
}

/// Endpoints that were accepted once stay valid. The declared rules end with the error that the type of addresses is
/// immutable, so that its values are judged here.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let kind = At::member(new, "addressType");
    if !kind.text().is_empty() {
        errors.one_of(&kind, kind.text(), &["FQDN", "IPv4", "IPv6"]);
    }
    ports(&At::member(new, "ports"), errors);
    if !same(At::member(new, "endpoints").value(), At::member(old, "endpoints").value()) {
        endpoints(new, errors);
    }
}

fn ports(list: &At<'_, '_>, errors: &mut Errors) {
    if list.len() > PORTS {
        return errors.too_many(list, list.len(), PORTS);
    }
    let mut names = Vec::new();
    for port in list.items() {
        let (name, protocol, application) = (port.get("name"), port.get("protocol"), port.get("appProtocol"));
        errors.in_format_if_given(&name, dns1123_label);
        if names.contains(&name.text()) {
            errors.duplicate(&name, name.text());
        }
        names.push(name.text());
        errors.one_of(&protocol, protocol.opt_text().unwrap_or("TCP"), &PROTOCOLS);
        errors.in_format_if_set(&application, label_key);
    }
}

fn endpoints(object: &ObjectMap, errors: &mut Errors) {
    let list = At::member(object, "endpoints");
    let kind = At::member(object, "addressType").text();
    if list.len() > ENDPOINTS {
        return errors.too_many(&list, list.len(), ENDPOINTS);
    }
    for endpoint in list.items() {
        let addresses = endpoint.get("addresses");
        for item in addresses.items() {
            address(&item, &addresses, kind, errors);
        }
        let node = endpoint.get("nodeName");
        errors.in_format_if_set(&node, dns1123_subdomain);
        let topology = endpoint.get("deprecatedTopology");
        errors.at_most(&topology, TOPOLOGY);
        selector::labels(&topology, errors);
        let host = endpoint.get("hostname");
        errors.in_format_if_set(&host, dns1123_label);
        hints(&endpoint.get("hints"), errors);
    }
}

fn address(at: &At<'_, '_>, list: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let text = at.text();
    let before = errors.len();
    match kind {
        "IPv4" => ip::legacy(at, text, &BTreeSet::new(), errors),
        "IPv6" => ip::canonical(at, text, errors),
        "FQDN" => return domain(at, text, errors),
        _ => return,
    }
    if errors.len() > before {
        return;
    }
    let four = matches!(ip::parse(text), Some(IpAddr::V4(_)));
    if four != (kind == "IPv4") {
        errors.invalid(list, text, &format!("must be an {kind} address"));
    }
    ip::endpoint(at, text, errors);
}

/// The rules of apimachinery's `IsFullyQualifiedDomainName`.
fn domain(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if text.is_empty() {
        return errors.required(at, "");
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    let messages = dns1123_subdomain(name);
    if !messages.is_empty() {
        return errors.invalid(at, name, &messages.join(","));
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return errors.invalid(at, name, why);
    }
    let bad = name.split('.').map(|label| (label, dns1123_label(label))).find(|(_, bad)| !bad.is_empty());
    if let Some((label, messages)) = bad {
        errors.invalid(at, label, &messages.join(","));
    }
}

/// Validates hints: for which zones and nodes an endpoint is meant.
fn hints(at: &At<'_, '_>, errors: &mut Errors) {
    let checks: [(&str, Check); 2] = [("forZones", label_value), ("forNodes", dns1123_subdomain)];
    for (name, check) in checks {
        let list = at.get(name);
        if list.len() > HINTS {
            return errors.too_many(&list, list.len(), HINTS);
        }
        let mut seen = Vec::new();
        for item in list.items() {
            let name = item.get("name");
            if seen.contains(&name.text()) {
                errors.duplicate(&name, name.text());
            } else {
                seen.push(name.text());
            }
            errors.in_format(&name, check);
        }
    }
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    if At::member(object, "addressType").text() == "FQDN" {
        remarks.say("spec.addressType: FQDN endpoints are deprecated");
    }
    warn_update(object, remarks);
}

pub fn warn_update(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let managed = managed_by(object, "endpointslice.kubernetes.io/managed-by");
    if matches!(managed, "endpointslice-controller.k8s.io" | "endpointslicemirroring-controller.k8s.io") {
        return;
    }
    for endpoint in At::member(object, "endpoints").items() {
        each(&endpoint.get("addresses"), remarks, address_address);
    }
}
