//! Columns of Services.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, SELECTOR, age, cells, integer, list, name, text, text_column, text_or, wide,
};
use crate::kinds::behavior::columns::text::{join, labels};
use crate::kinds::prelude::*;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Type", "How the service is exposed."),
        text_column("Cluster-IP", "First address of the service inside the cluster."),
        text_column("External-IP", "Addresses or name of the service outside the cluster."),
        text_column("Port(s)", "Ports of the service, with their node ports."),
        AGE,
        wide(SELECTOR),
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(service: &Value, now: Timestamp) -> Vec<Value> {
    let spec = &service["spec"];
    cells![
        name(service),
        text(&spec["type"]),
        cluster_ip(spec),
        external_ip(service),
        ports(spec),
        age(service, now),
        labels(&spec["selector"]),
    ]
}

/// The first address. Upstream sets `clusterIPs` when it reads an object that has only the older field.
fn cluster_ip(spec: &Value) -> &str {
    let first = &spec["clusterIPs"][0];
    if first.is_string() { text(first) } else { text_or(&spec["clusterIP"], "<none>") }
}

fn external_ip(service: &Value) -> String {
    let spec = &service["spec"];
    let external_ips = || list(&spec["externalIPs"]).iter().map(text);
    let (addresses, empty) = match text(&spec["type"]) {
        "ClusterIP" | "NodePort" => (join(external_ips(), ","), "<none>"),
        "LoadBalancer" => {
            let balancer = load_balancer_addresses(&service["status"]["loadBalancer"]);
            (join(balancer.into_iter().chain(external_ips()), ","), "<pending>")
        }
        "ExternalName" => return text(&spec["externalName"]).to_owned(),
        _ => return "<unknown>".to_owned(),
    };
    if addresses.is_empty() { empty.to_owned() } else { addresses }
}

/// The distinct addresses in a load balancer's status: IPs, or host names where there is no IP.
pub fn load_balancer_addresses(load_balancer: &Value) -> BTreeSet<&str> {
    list(&load_balancer["ingress"])
        .iter()
        .map(|ingress| text_or(&ingress["ip"], text(&ingress["hostname"])))
        .filter(|address| !address.is_empty())
        .collect()
}

fn ports(spec: &Value) -> String {
    let ports = list(&spec["ports"]);
    if ports.is_empty() {
        return "<none>".to_owned();
    }
    join(ports.iter().map(port), ",")
}

fn port(port: &Value) -> String {
    let (number, protocol) = (integer(&port["port"]), text(&port["protocol"]));
    match integer(&port["nodePort"]) {
        node_port if node_port > 0 => format!("{number}:{node_port}/{protocol}"),
        _ => format!("{number}/{protocol}"),
    }
}
