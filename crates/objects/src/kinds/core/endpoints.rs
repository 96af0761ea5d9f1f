//! Endpoints, the older form of EndpointSlices.

use std::collections::BTreeSet;

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, integer, list, text, text_column};
use crate::kinds::behavior::columns::text::shortened;
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, label_key};
use crate::kinds::behavior::rules::ip;
use crate::kinds::behavior::rules::same::same;
use crate::kinds::behavior::warnings::address::address as address_address;
use crate::kinds::core::service::PROTOCOLS;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("endpoints", "Endpoints").short(&["ep"]).creates_on_update(),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(warn).of_every_request(DEPRECATED),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const DEPRECATED: &str = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    subsets(&At::member(object, "subsets"), errors);
}

/// Subsets that were accepted once stay valid.
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
    errors.in_format_if_given(&host, dns1123_label);
    errors.in_format_if_set(&node, dns1123_subdomain);
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
    errors.in_format_if_set(&application, label_key);
}

/// Warnings about Endpoints, except those that upstream's controller writes.
pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    if managed_by(object, "endpoints.kubernetes.io/managed-by") == "endpoint-controller" {
        return;
    }
    for subset in At::member(object, "subsets").items() {
        for list in ["addresses", "notReadyAddresses"] {
            for entry in subset.get(list).items() {
                address_address(&entry.get("ip"), remarks);
            }
        }
    }
}

pub fn managed_by<'a>(object: &'a ObjectMap, label: &str) -> &'a str {
    At::member(object, "metadata").get("labels").key(label).text()
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Endpoints", "Addresses and ports behind the service.")
            .of(|object, _| endpoints(&object["subsets"]).into()),
        AGE,
    ],
    ..PLAIN
};

fn endpoints(subsets: &Value) -> String {
    let subsets = list(subsets);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    // Subsets without ready addresses lead to an empty cell.
    shortened(subsets.iter().flat_map(subset_addresses), "")
}

/// All combinations of addresses and ports; for a headless service without ports, only the addresses.
fn subset_addresses(subset: &Value) -> Vec<String> {
    let addresses = list(&subset["addresses"]).iter().map(|address| text(&address["ip"]));
    let ports = list(&subset["ports"]);
    if ports.is_empty() {
        return addresses.map(str::to_owned).collect();
    }
    ports
        .iter()
        .flat_map(|port| addresses.clone().map(|address| host_port(address, integer(&port["port"]))))
        .collect()
}

fn host_port(host: &str, port: i64) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
