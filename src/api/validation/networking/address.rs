//! Addresses of services, and the ranges that they are taken from.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::format::dns1123_subdomain;
use super::super::ip;
use super::super::same::{IMMUTABLE, immutable};
use crate::api::ObjectMap;
use crate::api::meta::format::path_segment;

/// The name of an address is the address.
pub fn create(object: &ObjectMap, errors: &mut Errors) {
    let metadata = At::member(object, "metadata");
    let name = metadata.get("name");
    if !name.text().is_empty() {
        ip::canonical(&name, name.text(), errors);
    }
    let spec = At::member(object, "spec");
    let parent = spec.get("parentRef");
    if !parent.is_set() {
        return errors.required(&parent, "");
    }
    let group = parent.get("group");
    if !group.text().is_empty() {
        errors.in_format(&group, dns1123_subdomain);
    }
    for name in ["resource", "name", "namespace"] {
        let field = parent.get(name);
        if !field.text().is_empty() {
            errors.in_format(&field, path_segment);
        } else if name != "namespace" {
            errors.required(&field, "");
        }
    }
}

pub fn update(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    create(new, errors);
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    immutable(&spec.get("parentRef"), &old.get("parentRef"), errors);
}

pub fn create_range(object: &ObjectMap, errors: &mut Errors) {
    let spec = At::member(object, "spec");
    ranges(&spec.get("cidrs"), errors);
}

fn ranges(list: &At<'_, '_>, errors: &mut Errors) {
    match list.len() {
        0 => return errors.required(list, "at least one CIDR required"),
        1 | 2 => {}
        _ => {
            let shown = super::super::errors::Verbatim(format!("{{\"CIDRs\":{}}}", list.value()));
            return errors.invalid(list, shown, "may only hold up to 2 values");
        }
    }
    for range in list.items() {
        ip::canonical_range(&range, range.text(), errors);
    }
    let families: Vec<Option<bool>> =
        list.texts().map(|text| ip::parse_range(text).map(|(ip, _)| ip.is_ipv6())).collect();
    if let [Some(first), Some(second)] = families.as_slice()
        && first == second
    {
        let why = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.invalid(list, list.value(), why);
    }
}

pub fn update_range(new: &ObjectMap, old: &ObjectMap, errors: &mut Errors) {
    let (spec, old) = (At::member(new, "spec"), At::member(old, "spec"));
    let (list, before) = (spec.get("cidrs"), old.get("cidrs"));
    let changed = || list.items().zip(before.texts()).filter(|(new, old)| new.text() != *old);
    match (before.len(), list.len()) {
        (old, new) if old == new => {
            for (range, _) in changed() {
                errors.invalid(&range, range.text(), IMMUTABLE);
            }
        }
        (1, 2) => {
            for (range, _) in changed() {
                errors.invalid(&range, range.text(), IMMUTABLE);
            }
            ranges(&list, errors);
        }
        _ => errors.invalid(&list, list.value(), IMMUTABLE),
    }
}
