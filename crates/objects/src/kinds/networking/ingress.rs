//! Ingresses.

use jiff::Timestamp;

use crate::kinds::behavior::columns::cell::{
    AGE, NAME, PLAIN, age, cells, list, name, optional_text, text, text_column,
};
use crate::kinds::behavior::columns::text::join;
use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain, path_segment};
use crate::kinds::behavior::rules::format::{port_name, wildcard_subdomain};
use crate::kinds::behavior::strategy::status::StatusRule;
use crate::kinds::core::service::columns::load_balancer_addresses;
use crate::kinds::core::service::load_balancer;
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("ingresses", "Ingress").short(&["ing"]).sub(&["status"]).generation(),
    strategy: Strategy { status: StatusRule::Reset(r#"{"loadBalancer":{}}"#), ..Strategy::PLAIN },
    rules: Rules::new(create, update).with_status(status),
    warnings: KindWarnings::on_create(warn).with_status(load_balancer::warn_status),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

const CLASS: &str = "kubernetes.io/ingress.class";

/// Violations that an existing object may keep.
#[derive(Clone, Copy, Default)]
struct Tolerated {
    secret_names: bool,
    wildcard_rules: bool,
}

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    self::spec(&spec, Tolerated::default(), errors);
    let metadata = At::member(object, "metadata");
    let class = spec.get("ingressClassName");
    if let (Some(annotation), Some(class)) =
        (metadata.get("annotations").key(CLASS).opt_text(), class.opt_text())
        && annotation != class
    {
        // Upstream's path lacks `metadata`.
        let place = At::member(object, "annotations");
        errors.invalid(
            &place.get(CLASS),
            annotation,
            "must match `ingressClassName` when both are specified",
        );
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let old = At::member(old, "spec");
    let bad_secret = |tls: At<'_, '_>| !secret_name(tls.get("secretName").text()).is_empty();
    let bad_rule = |rule: At<'_, '_>| {
        let mut errors = Errors::default();
        http(&rule.get("http"), &mut errors);
        rule.get("host").text().contains('*') && !errors.is_empty()
    };
    let tolerated = Tolerated {
        secret_names: old.get("tls").items().any(bad_secret),
        wildcard_rules: old.get("rules").items().any(bad_rule),
    };
    spec(&At::member(new, "spec"), tolerated, errors);
}

pub fn status(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (status, old) = (At::member(new, "status"), At::member(old, "status"));
    load_balancer::ingress_status(&status.get("loadBalancer"), &old.get("loadBalancer"), errors);
}

fn spec(spec: &At<'_, '_>, tolerated: Tolerated, errors: &mut Errors) {
    let (rules, default) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !default.is_set() {
        let shown = if rules.is_set() { rules.value() } else { &Value::Null };
        errors.invalid(spec, shown, "either `defaultBackend` or `rules` must be specified");
    }
    if default.is_set() {
        backend(&default, errors);
    }
    for rule in rules.items() {
        let host = rule.get("host");
        let wildcard = host_name(&host, errors);
        if !(wildcard && tolerated.wildcard_rules) {
            http(&rule.get("http"), errors);
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            let check = if host.text().contains('*') { wildcard_subdomain } else { dns1123_subdomain };
            errors.in_format(&host, check);
        }
        let secret = tls.get("secretName");
        if !tolerated.secret_names {
            errors.in_format(&secret, secret_name);
        }
    }
    let class = spec.get("ingressClassName");
    errors.in_format_if_set(&class, dns1123_subdomain);
}

fn secret_name(name: &str) -> Vec<String> {
    if name.is_empty() { Vec::new() } else { dns1123_subdomain(name) }
}

/// Validates a host. Returns whether it is a wildcard.
fn host_name(at: &At<'_, '_>, errors: &mut Errors) -> bool {
    let host = at.text();
    let wildcard = host.contains('*');
    if !host.is_empty() {
        load_balancer::not_an_address(at, errors);
        let check = if wildcard { wildcard_subdomain } else { dns1123_subdomain };
        errors.invalid_each(at, host, check(host));
    }
    wildcard
}

fn http(at: &At<'_, '_>, errors: &mut Errors) {
    if !at.is_set() {
        return;
    }
    let paths = at.get("paths");
    errors.present(&paths, "");
    for path in paths.items() {
        one_path(&path, errors);
    }
}

fn one_path(at: &At<'_, '_>, errors: &mut Errors) {
    let (kind, path) = (at.get("pathType"), at.get("path"));
    let text = path.text();
    match kind.opt_text() {
        None => return errors.required(&kind, "pathType must be specified"),
        Some("Exact" | "Prefix") => {
            if !text.starts_with('/') {
                errors.invalid(&path, text, "must be an absolute path");
            }
            for part in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|part| text.contains(**part)) {
                errors.invalid(&path, text, &format!("must not contain '{part}'"));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                errors.invalid(&path, text, &format!("cannot end with '{end}'"));
            }
        }
        Some("ImplementationSpecific") => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.invalid(&path, text, "must be an absolute path");
            }
        }
        Some(other) => errors.not_supported(&kind, other, &["Exact", "ImplementationSpecific", "Prefix"]),
    }
    backend(&at.get("backend"), errors);
}

fn backend(at: &At<'_, '_>, errors: &mut Errors) {
    let (resource, service) = (at.get("resource"), at.get("service"));
    match (resource.is_set(), service.is_set()) {
        (true, true) => errors.invalid(at, "", "cannot set both resource and service backends"),
        (true, false) => {
            for name in ["kind", "name"].map(|name| resource.get(name)) {
                errors.present(&name, "");
            }
            reference(&resource, errors);
        }
        (false, true) => service_backend(at, &service, errors),
        (false, false) => errors.invalid(at, "", "resource or service backend is required"),
    }
}

fn service_backend(at: &At<'_, '_>, service: &At<'_, '_>, errors: &mut Errors) {
    let name = service.get("name");
    errors.required_in_format(&name, dns1123_label);
    let (port, number) = (service.dig(&["port", "name"]), service.dig(&["port", "number"]));
    match (port.text(), number.int()) {
        ("", 0) => errors.required(at, "port name or number is required"),
        ("", _) => errors.port(&number),
        (name, 0) => errors.invalid_each(&port, name, port_name(name)),
        _ => errors.invalid(at, "", "cannot set both port name & port number"),
    }
}

/// Validates a reference to an object in the same namespace.
pub fn reference(at: &At<'_, '_>, errors: &mut Errors) {
    let group = at.get("apiGroup");
    errors.in_format_if_set(&group, dns1123_subdomain);
    for name in ["kind", "name"] {
        errors.in_format(&at.get(name), path_segment);
    }
}

const INGRESS_CLASS: &str = "kubernetes.io/ingress.class";

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let (metadata, spec) = (At::member(object, "metadata"), At::member(object, "spec"));
    if metadata.get("annotations").key(INGRESS_CLASS).is_set() && !spec.get("ingressClassName").is_set() {
        let class = crate::gotext::quote(INGRESS_CLASS);
        remarks.say(format!("annotation {class} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

const SHOWN_HOSTS: usize = 3;

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Class", "Ingress class that serves the ingress."),
        text_column("Hosts", "Host names that the rules match."),
        text_column("Address", "Addresses of the load balancer."),
        text_column("Ports", "Ports that are open."),
        AGE,
    ],
    cells: Some(cells),
    ..PLAIN
};

fn cells(ingress: &Value, now: Timestamp) -> Vec<Value> {
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

/// The hosts in a cell. Upstream decides by the number of rules, not of hosts, whether some are left out.
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
