//! Where services lead: Endpoints and EndpointSlices.

use super::super::Printer;
use super::super::cell::{AGE, NAME, PLAIN, age, cells, integer, list, name, text, text_column};
use super::super::text::shortened;
use crate::tree::Value;

pub static ENDPOINTS: Printer = Printer {
    columns: &[NAME, text_column("Endpoints", "Addresses and ports behind the service."), AGE],
    cells: |object, now| cells![name(object), endpoints(&object["subsets"]), age(object, now)],
    ..PLAIN
};

pub static ENDPOINT_SLICE: Printer = Printer {
    columns: &[
        NAME,
        text_column("AddressType", "What kind of addresses the slice holds."),
        text_column("Ports", "Ports that every endpoint of the slice listens on."),
        text_column("Endpoints", "Addresses of the endpoints."),
        AGE,
    ],
    cells: |object, now| {
        cells![
            name(object),
            text(&object["addressType"]),
            shortened(list(&object["ports"]).iter().map(slice_port), "<unset>"),
            shortened(slice_addresses(object), "<unset>"),
            age(object, now),
        ]
    },
    ..PLAIN
};

fn endpoints(subsets: &Value) -> String {
    let subsets = list(subsets);
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    // Subsets without ready addresses leave the cell empty instead.
    shortened(subsets.iter().flat_map(subset_addresses), "")
}

/// Every address with every port; bare addresses where a headless service has no ports.
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

fn slice_addresses(slice: &Value) -> impl Iterator<Item = &str> {
    list(&slice["endpoints"]).iter().flat_map(|endpoint| list(&endpoint["addresses"])).map(text)
}

fn slice_port(port: &Value) -> String {
    match (port["port"].as_i64(), port["name"].as_str()) {
        (Some(number), _) => number.to_string(),
        (None, Some(name)) => name.to_owned(),
        (None, None) => "*".to_owned(),
    }
}
