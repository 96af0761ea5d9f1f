//! NetworkPolicies.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::kinds::behavior::columns::cell::{AGE, NAME, PLAIN, text_column};
use crate::kinds::behavior::columns::text::selector as text_selector;
use crate::kinds::behavior::rules::format::port_name;
use crate::kinds::behavior::rules::{ip, selector};
use crate::kinds::behavior::warnings::address::{each, range as address_range};
use crate::kinds::prelude::*;

pub static KIND: BuiltIn = BuiltIn {
    definition: namespaced("networkpolicies", "NetworkPolicy").short(&["netpol"]).generation(),
    strategy: Strategy::PLAIN,
    rules: Rules::new(create, update),
    warnings: KindWarnings::same(warn),
    columns: &COLUMNS,
    fields: SelectableFields::metadata,
    other_version: None,
};

pub fn create(object: &ObjectMap, errors: &mut Errors) {
    spec(&At::member(object, "spec"), &BTreeSet::new(), errors);
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let old = At::member(old, "spec");
    let mut known = BTreeSet::new();
    for (rules, peers) in DIRECTIONS {
        for rule in old.get(rules).items() {
            for peer in rule.get(peers).items() {
                let block = peer.get("ipBlock");
                if !block.is_set() {
                    continue;
                }
                known.insert(block.get("cidr").text());
                known.extend(block.get("except").texts());
            }
        }
    }
    spec(&At::member(new, "spec"), &known, errors);
}

const DIRECTIONS: [(&str, &str); 2] = [("ingress", "from"), ("egress", "to")];

/// Validates the spec. `known` are address ranges that are accepted in any form, since the old version has them.
fn spec(spec: &At<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    selector::validate(&spec.get("podSelector"), errors);
    for (rules, peers) in DIRECTIONS {
        for rule in spec.get(rules).items() {
            for item in rule.get("ports").items() {
                port(&item, errors);
            }
            for item in rule.get(peers).items() {
                peer(&item, known, errors);
            }
        }
    }
    let kinds = spec.get("policyTypes");
    if kinds.len() > 2 {
        return errors.invalid(&kinds, kinds.value(), "may not specify more than two policyTypes");
    }
    for kind in kinds.items() {
        errors.one_of(&kind, kind.text(), &["Ingress", "Egress"]);
    }
}

fn port(at: &At<'_, '_>, errors: &mut Errors) {
    let (protocol, port, end) = (at.get("protocol"), at.get("port"), at.get("endPort"));
    errors.one_of(&protocol, protocol.opt_text().unwrap_or("TCP"), &["TCP", "UDP", "SCTP"]);
    if let Some(number) = port.opt_int() {
        errors.port(&port);
        if end.is_set() {
            if end.int() < number {
                errors.invalid(&end, end.int(), "must be greater than or equal to `port`");
            }
            errors.port(&end);
        }
        return;
    }
    if end.is_set() {
        let what = if port.is_set() { "is non-numeric" } else { "is not specified" };
        errors.invalid(&end, end.int(), &format!("may not be specified when `port` {what}"));
    }
    errors.in_format_if_set(&port, port_name);
}

fn peer(at: &At<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let selectors = [at.get("podSelector"), at.get("namespaceSelector")];
    for labels in &selectors {
        selector::validate(labels, errors);
    }
    let selects = selectors.iter().any(At::is_set);
    let block = at.get("ipBlock");
    if block.is_set() {
        range(&block, known, errors);
        if selects {
            errors.forbidden(at, "may not specify both ipBlock and another peer");
        }
    } else if !selects {
        errors.required(at, "must specify a peer");
    }
}

fn range(block: &At<'_, '_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let cidr = block.get("cidr");
    if cidr.text().is_empty() {
        return;
    }
    ip::legacy_range(&cidr, cidr.text(), known, errors);
    let Some(whole) = ip::parse_range(cidr.text()) else { return };
    for except in block.get("except").items() {
        ip::legacy_range(&except, except.text(), known, errors);
        let Some(part) = ip::parse_range(except.text()) else { continue };
        if !contains(whole, part) {
            errors.invalid(&except, except.text(), "must be a strict subset of `cidr`");
        }
    }
}

fn contains((whole, bits): (IpAddr, u8), (part, more): (IpAddr, u8)) -> bool {
    if bits >= more {
        return false;
    }
    match (whole, part) {
        (IpAddr::V4(whole), IpAddr::V4(part)) => {
            let cut = |ip| u32::from(ip).checked_shr(32 - u32::from(bits)).unwrap_or(0);
            cut(whole) == cut(part)
        }
        (IpAddr::V6(whole), IpAddr::V6(part)) => {
            let cut = |ip| u128::from(ip).checked_shr(128 - u32::from(bits)).unwrap_or(0);
            cut(whole) == cut(part)
        }
        _ => false,
    }
}

pub fn warn(object: &ObjectMap, remarks: &mut Remarks<'_>) {
    let spec = At::member(object, "spec");
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        for rule in spec.get(direction).items() {
            for peer in rule.get(peers).items() {
                let block = peer.get("ipBlock");
                address_range(&block.get("cidr"), remarks);
                each(&block.get("except"), remarks, address_range);
            }
        }
    }
}

pub static COLUMNS: Printer = Printer {
    columns: &[
        NAME,
        text_column("Pod-Selector", "Labels of the pods that the policy governs.")
            .of(|object, _| text_selector(&object["spec"]["podSelector"]).into()),
        AGE,
    ],
    ..PLAIN
};
