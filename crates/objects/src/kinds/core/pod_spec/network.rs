//! Names, resolvers and ports of a pod.

use std::collections::BTreeSet;

use crate::kinds::behavior::format::{dns1123_label, dns1123_subdomain};
use crate::kinds::behavior::rules::format::dns1123_subdomain_underscored;
use crate::kinds::behavior::rules::ip;
use crate::kinds::core::pod_spec::visit;
use crate::kinds::prelude::*;

const NAME_SERVERS: usize = 3;

const SEARCH_PATHS: usize = 32;

const SEARCH_LENGTH: usize = 2048;

pub fn dns(spec: &At<'_, '_>, errors: &mut Errors) {
    let (policy, config) = (spec.get("dnsPolicy").text(), spec.get("dnsConfig"));
    let (servers, searches) = (config.get("nameservers"), config.get("searches"));
    if policy == "None" {
        if !config.is_set() {
            return errors.required(&config, "must provide `dnsConfig` when `dnsPolicy` is None");
        }
        if servers.is_empty() {
            let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            return errors.required(&servers, why);
        }
    }
    if servers.len() > NAME_SERVERS {
        errors.invalid(&servers, servers.value(), "must not have more than 3 nameservers");
    }
    for server in servers.items() {
        ip::legacy(&server, server.text(), &BTreeSet::new(), errors);
    }
    if searches.len() > SEARCH_PATHS {
        errors.invalid(&searches, searches.value(), "must not have more than 32 search paths");
    }
    let length = searches.texts().map(|path| path.len() + 1).sum::<usize>();
    if length > SEARCH_LENGTH + 1 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        errors.invalid(&searches, searches.value(), why);
    }
    for search in searches.items().filter(|search| search.text() != ".") {
        let text = search.text().strip_suffix('.').unwrap_or(search.text());
        errors.invalid_each(&search, text, dns1123_subdomain_underscored(text));
    }
    for option in config.get("options").items() {
        if option.get("name").text().is_empty() {
            errors.required(&option, "must not be empty");
        }
    }
}

/// On the host's network, a container's port and host port must be equal.
pub fn host_network_ports(spec: &At<'_, '_>, errors: &mut Errors) {
    if !spec.get("hostNetwork").flag() {
        return;
    }
    for container in spec.get("containers").items() {
        for port in container.get("ports").items() {
            let host = port.get("hostPort");
            // The default host port is the container's port.
            if host.int() != 0 && host.int() != port.get("containerPort").int() {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.invalid(&host, host.int(), why);
            }
        }
    }
}

/// Without the host's user namespace, a pod cannot use other namespaces of the host.
pub fn host_users(spec: &At<'_, '_>, errors: &mut Errors) {
    if spec.get("hostUsers").opt_flag() != Some(false) {
        return;
    }
    let why = "when `hostUsers` is false";
    for (name, called) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(name).flag() {
            errors.forbidden(&spec.get(called), why);
        }
    }
    visit(spec, &mut |container| {
        let devices = container.get("volumeDevices");
        if !devices.is_empty() {
            errors.forbidden(&devices, why);
        }
    });
}

pub fn host_name(spec: &At<'_, '_>, errors: &mut Errors) {
    let name = spec.get("hostnameOverride");
    let Some(text) = name.opt_text() else { return };
    if spec.get("setHostnameAsFQDN").flag() {
        errors.forbidden(&name, "may not be specified when setHostnameAsFQDN is true");
    }
    if spec.get("hostNetwork").flag() {
        errors.forbidden(&name, "may not be specified when hostNetwork is true");
    }
    if text.len() > 64 {
        errors.too_long(&name, 64);
    }
    errors.invalid_each(&name, text, dns1123_subdomain(text));
}

/// Validates `hostname` and `subdomain`, which stateful sets set themselves.
pub fn names(spec: &At<'_, '_>, errors: &mut Errors) {
    for name in ["hostname", "subdomain"] {
        let at = spec.get(name);
        errors.in_format_if_given(&at, dns1123_label);
    }
}

pub fn host_aliases(list: &At<'_, '_>, errors: &mut Errors) {
    for alias in list.items() {
        let address = alias.get("ip");
        ip::legacy(&address, address.text(), &BTreeSet::new(), errors);
        for name in alias.get("hostnames").items() {
            errors.in_format(&name, dns1123_subdomain);
        }
    }
}
