//! `networking.k8s.io`.

use jiff::Timestamp;

use super::super::Printer;
use super::super::cell::{AGE, NAME, PLAIN, age, cells, list, name, optional_text, text, text_column};
use super::super::text::{join, selector};
use super::service::load_balancer_addresses;
use crate::tree::Value;

const SHOWN_HOSTS: usize = 3;

pub static INGRESS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Class", "Ingress class that serves the ingress."),
        text_column("Hosts", "Host names that the rules match."),
        text_column("Address", "Addresses of the load balancer."),
        text_column("Ports", "Ports that are open."),
        AGE,
    ],
    cells: ingress_cells,
    ..PLAIN
};

pub static INGRESS_CLASS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Controller", "Controller that serves the class."),
        text_column("Parameters", "Object that configures the controller."),
        AGE,
    ],
    cells: |object, now| {
        let spec = &object["spec"];
        cells![
            name(object),
            text(&spec["controller"]),
            class_parameters(&spec["parameters"]),
            age(object, now)
        ]
    },
    ..PLAIN
};

pub static NETWORK_POLICY: Printer = Printer {
    columns: &[NAME, text_column("Pod-Selector", "Labels of the pods that the policy governs."), AGE],
    cells: |object, now| cells![name(object), selector(&object["spec"]["podSelector"]), age(object, now)],
    ..PLAIN
};

pub static SERVICE_CIDR: Printer = Printer {
    columns: &[NAME, text_column("CIDRs", "Ranges that cluster IPs are taken from."), AGE],
    cells: |object, now| {
        cells![name(object), join(list(&object["spec"]["cidrs"]).iter().map(text), ","), age(object, now)]
    },
    ..PLAIN
};

/// Upstream's rows carry an age behind the last column; clients ignore cells that have none.
pub static IP_ADDRESS: Printer = Printer {
    columns: &[NAME, text_column("ParentRef", "Object that the address belongs to.")],
    cells: |object, now| cells![name(object), parent(&object["spec"]["parentRef"]), age(object, now)],
    ..PLAIN
};

fn ingress_cells(ingress: &Value, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (&ingress["spec"], &ingress["status"]);
    cells![
        name(ingress),
        optional_text(&spec["ingressClassName"], "<none>"),
        hosts(list(&spec["rules"])),
        join(load_balancer_addresses(&status["loadBalancer"]), ","),
        if list(&spec["tls"]).is_empty() { "80" } else { "80, 443" },
        age(ingress, now),
    ]
}

/// Upstream counts rules, not hosts, in what it leaves out.
fn hosts(rules: &[Value]) -> String {
    let hosts = || rules.iter().enumerate().filter(|(_, rule)| !text(&rule["host"]).is_empty());
    let shown = join(hosts().take(SHOWN_HOSTS).map(|(_, rule)| text(&rule["host"])), ",");
    let cut = hosts().nth(SHOWN_HOSTS - 1).is_some_and(|(last, _)| last + 1 < rules.len());
    match (shown.is_empty(), cut) {
        (true, _) => "*".to_owned(),
        (false, true) => format!("{shown} + {} more...", rules.len() - SHOWN_HOSTS),
        (false, false) => shown,
    }
}

fn class_parameters(parameters: &Value) -> String {
    if !parameters.is_object() {
        return "<none>".to_owned();
    }
    let (kind, name) = (text(&parameters["kind"]), text(&parameters["name"]));
    match parameters["apiGroup"].as_str() {
        Some(group) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

/// `services/default/kubernetes`.
fn parent(reference: &Value) -> String {
    if !reference.is_object() {
        return "<none>".to_owned();
    }
    let group = text(&reference["group"]);
    let mut parent = text(&reference["resource"]).to_owned();
    if !group.is_empty() {
        parent = format!("{parent}.{group}");
    }
    parent = parent.to_lowercase();
    let namespace = text(&reference["namespace"]);
    if !namespace.is_empty() {
        parent = format!("{parent}/{namespace}");
    }
    format!("{parent}/{}", text(&reference["name"]))
}
