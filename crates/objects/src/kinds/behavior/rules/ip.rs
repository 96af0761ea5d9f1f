//! Addresses and ranges of addresses (apimachinery `util/validation/ip.go`).

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::errors::Errors;

const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

const NOT_A_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An address as old versions of Go read it: zeros may lead.
pub fn parse(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| parse_padded(text).map(IpAddr::V4)).map(|ip: IpAddr| ip.to_canonical())
}

fn parse_padded(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|part| crate::kinds::behavior::rules::format::is_digits(part))?;
        *octet = part.trim_start_matches('0').parse().or_else(|_| part.parse()).ok()?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// An address and the length of a prefix, as lenient as [`parse`].
pub fn parse_range(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/')?;
    let address: IpAddr = ip.parse().ok().or_else(|| parse_padded(ip).map(IpAddr::V4))?;
    let max = if address.is_ipv4() { 32 } else { 128 };
    if !crate::kinds::behavior::rules::format::is_digits(bits) {
        return None;
    }
    let bits: u8 = bits.parse().ok().filter(|bits| *bits <= max)?;
    Some((address, bits))
}

/// Whether the bits behind the prefix are zero.
fn is_network(ip: IpAddr, bits: u8) -> bool {
    let (value, width) = match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    value.trailing_zeros() >= width - u32::from(bits)
}

/// An address in a field that once took any form: `known` ones stay valid.
pub fn legacy(at: &At<'_, '_>, text: &str, known: &BTreeSet<&str>, errors: &mut Errors) {
    if known.contains(text) {
        return;
    }
    address(at, text, errors);
}

/// Whether the text is an address; strict about its form.
fn address(at: &At<'_, '_>, text: &str, errors: &mut Errors) -> bool {
    let before = errors.len();
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(ip)) if ip.to_ipv4_mapped().is_some() => {
            errors.invalid(at, text, "must not be an IPv4-mapped IPv6 address");
        }
        Ok(_) => {}
        Err(_) if parse_padded(text).is_some() => errors.invalid(at, text, "must not have leading 0s"),
        Err(_) => errors.invalid(at, text, NOT_AN_ADDRESS),
    }
    errors.len() == before
}

/// An address in its canonical form.
pub fn canonical(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if !address(at, text, errors) {
        return;
    }
    let form = parse(text).map(|ip| ip.to_string()).unwrap_or_default();
    if form != text {
        errors.invalid(at, text, &format!("must be in canonical form (\"{form}\")"));
    }
}

/// A range in a field that once took any form.
pub fn legacy_range(at: &At<'_, '_>, text: &str, known: &BTreeSet<&str>, errors: &mut Errors) {
    if !known.contains(text) {
        range(at, text, errors);
    }
}

/// A range; strict about its form.
pub fn range(at: &At<'_, '_>, text: &str, errors: &mut Errors) -> bool {
    let Some((ip, bits)) = parse_range(text) else {
        errors.invalid(at, text, NOT_A_RANGE);
        return false;
    };
    let (address, length) = text.split_once('/').unwrap_or_default();
    let why = if address.parse::<IpAddr>().is_err() || (length.len() > 1 && length.starts_with('0')) {
        "must not have leading 0s in IP or prefix length"
    } else if matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some()) {
        "must not have an IPv4-mapped IPv6 address"
    } else if !is_network(ip, bits) {
        "must not have bits set beyond the prefix length"
    } else {
        return true;
    };
    errors.invalid(at, text, why);
    false
}

/// A range in its canonical form.
pub fn canonical_range(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    if !range(at, text, errors) {
        return;
    }
    let form = parse_range(text).map(|(ip, bits)| format!("{ip}/{bits}")).unwrap_or_default();
    if form != text {
        errors.invalid(at, text, &format!("must be in canonical form (\"{form}\")"));
    }
}

/// An address with the prefix of its network, in its canonical form.
pub fn of_interface(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    let Some((ip, bits)) = parse_range(text) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        return errors.invalid(at, text, why);
    };
    let form = match ip.to_canonical() {
        // Mapped addresses are 96 bits longer.
        IpAddr::V4(mapped) if ip.is_ipv6() => format!("{mapped}/{}", i16::from(bits) - 96),
        ip => format!("{ip}/{bits}"),
    };
    if form != text {
        errors.invalid(at, text, &format!("must be in canonical form (\"{form}\")"));
    }
}

/// An address that others can reach (core `ValidateEndpointIP`).
pub fn endpoint(at: &At<'_, '_>, text: &str, errors: &mut Errors) {
    let Some(ip) = parse(text) else {
        errors.invalid(at, text, "must be a valid IP address");
        return;
    };
    if ip.is_unspecified() {
        errors.invalid(at, text, &format!("may not be unspecified ({text})"));
    }
    if ip.is_loopback() {
        errors.invalid(at, text, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    let (link_local, multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    if link_local {
        errors.invalid(at, text, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if multicast {
        errors.invalid(at, text, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// Whether texts are one address of each family.
pub fn dual_stack<'a>(texts: impl IntoIterator<Item = &'a str>) -> bool {
    let (mut v4, mut v6) = (false, false);
    for text in texts {
        match parse(text) {
            Some(IpAddr::V4(_)) => v4 = true,
            Some(IpAddr::V6(_)) => v6 = true,
            None => return false,
        }
    }
    v4 && v6
}
