//! The status of load balancers: their addresses and ports.

use std::collections::BTreeSet;

use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::ip;
use crate::kinds::behavior::warnings::address::address;
use crate::kinds::prelude::*;

pub fn service_status(at: &At<'_, '_>, old: &At<'_, '_>, kind: &str, errors: &mut Errors) {
    let places = at.get("ingress");
    if kind != "LoadBalancer" {
        if !places.is_empty() {
            errors.forbidden(&places, "may only be used when `spec.type` is 'LoadBalancer'");
        }
        return;
    }
    let known = known_addresses(old);
    for place in places.items() {
        let (address, mode) = (place.get("ip"), place.get("ipMode"));
        listed_address(&address, &known, errors);
        match mode.opt_text() {
            // The default is VIP.
            None => {}
            Some(_) if address.text().is_empty() => {
                errors.forbidden(&mode, "may not be specified when `ip` is not set");
            }
            Some(text) => _ = errors.one_of(&mode, text, &["Proxy", "VIP"]),
        }
        host_name(&place.get("hostname"), errors);
    }
}

pub fn ingress_status(at: &At<'_, '_>, old: &At<'_, '_>, errors: &mut Errors) {
    let known = known_addresses(old);
    for place in at.get("ingress").items() {
        listed_address(&place.get("ip"), &known, errors);
        host_name(&place.get("hostname"), errors);
    }
}

fn known_addresses<'v>(old: &At<'v, '_>) -> BTreeSet<&'v str> {
    old.get("ingress").items().map(|place| place.get("ip").text()).collect()
}

fn listed_address(at: &At<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    if !at.text().is_empty() {
        ip::legacy(at, at.text(), known, errors);
    }
}

fn host_name(at: &At<'_, '_>, errors: &mut Errors) {
    if at.text().is_empty() {
        return;
    }
    errors.in_format(at, dns1123_subdomain);
    not_an_address(at, errors);
}

pub fn not_an_address(at: &At<'_, '_>, errors: &mut Errors) {
    if ip::parse(at.text()).is_some() {
        errors.invalid(at, at.text(), "must be a DNS name, not an IP address");
    }
}

/// Warns about the status of Services and Ingresses.
pub fn warn_status(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let status = At::member(object, "status");
    for (index, ingress) in status.dig(&["loadBalancer", "ingress"]).items().enumerate() {
        let list = status.dig(&["loadBalancer", "ingress"]);
        // Upstream names the list's item, not the field in it.
        address(&list.index(index).holding(ingress.get("ip").value()), remarks);
    }
}
