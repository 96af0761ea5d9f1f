//! Names of pools, attributes and other parts of devices.

use crate::kinds::behavior::format::dns1123_subdomain;
use crate::kinds::behavior::rules::declarative::format::{DOMAIN_MAX, ID_MAX, c_identifier};
use crate::kinds::core::volume_source::driver_name;
use crate::kinds::prelude::*;

const POOL_MAX: usize = 253;

/// The longest name of an attribute.
pub const KEY_MAX: usize = DOMAIN_MAX + 1 + ID_MAX;

/// Validates a pool's name: subdomains separated by slashes, for example `example.com/nodes/node-1`.
pub fn pool(at: &At<'_, '_>, errors: &mut Errors) {
    let name = at.text();
    if name.is_empty() {
        return errors.required(at, "");
    }
    if name.len() > POOL_MAX {
        errors.too_long(at, POOL_MAX);
    }
    for part in name.split('/') {
        errors.invalid_each(at, part, dns1123_subdomain(part));
    }
}

/// Validates a name such as `memory` or `dra.example.com/memory`. Names with several slashes are accepted, as upstream
/// does.
pub fn qualified(at: &At<'_, '_>, name: &str, errors: &mut Errors) {
    let Some((domain, id)) = name.split_once('/') else { return c_identifier(at, name, errors) };
    if id.contains('/') {
        return;
    }
    if domain.is_empty() {
        errors.invalid(at, "", "the domain must not be empty");
    } else {
        driver_name(at, domain, errors);
    }
    if id.is_empty() {
        errors.invalid(at, "", "the name must not be empty");
    } else {
        c_identifier(at, id, errors);
    }
}
