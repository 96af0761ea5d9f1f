//! Endpoints, the older form.

use std::collections::BTreeSet;

use super::super::at::At;
use super::super::errors::Errors;
use super::super::format::{dns1123_label, dns1123_subdomain};
use super::super::ip;
use super::super::same::same;
use super::PROTOCOLS;
use crate::api::ObjectMap;
use crate::api::meta::format::label_key;

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    subsets(&At::member(object, "subsets"), errors);
}

/// What was accepted once stays acceptable.
pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let list = At::member(new, "subsets");
    if !same(list.value(), At::member(old, "subsets").value()) {
        subsets(&list, errors);
    }
}

fn subsets(list: &At<'_, '_>, errors: &mut Errors) {
    for subset in list.items() {
        let lists = [subset.get("addresses"), subset.get("notReadyAddresses")];
        if lists.iter().all(At::is_empty) {
            errors.required(&subset, "must specify `addresses` or `notReadyAddresses`");
        }
        for list in lists {
            for item in list.items() {
                address(&item, errors);
            }
        }
        let ports = subset.get("ports");
        for item in ports.items() {
            port(&item, ports.len() > 1, errors);
        }
    }
}

fn address(at: &At<'_, '_>, errors: &mut Errors) {
    let (address, host, node) = (at.get("ip"), at.get("hostname"), at.get("nodeName"));
    ip::legacy(&address, address.text(), &BTreeSet::new(), errors);
    if !host.text().is_empty() {
        errors.in_format(&host, dns1123_label);
    }
    if let Some(text) = node.opt_text() {
        errors.invalid_each(&node, text, dns1123_subdomain(text));
    }
    ip::endpoint(&address, address.text(), errors);
}

fn port(at: &At<'_, '_>, named: bool, errors: &mut Errors) {
    let (name, protocol, application) = (at.get("name"), at.get("protocol"), at.get("appProtocol"));
    if !name.text().is_empty() {
        errors.in_format(&name, dns1123_label);
    } else if named {
        errors.required(&name, "");
    }
    errors.port(&at.get("port"));
    errors.one_of(&protocol, protocol.text_or("TCP"), &PROTOCOLS);
    if let Some(text) = application.opt_text() {
        errors.invalid_each(&application, text, label_key(text));
    }
}
