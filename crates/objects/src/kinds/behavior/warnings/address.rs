//! Addresses that not everybody reads the same way (apimachinery `GetWarningsForIP`, `GetWarningsForCIDR`).

use std::net::{IpAddr, Ipv6Addr};

use crate::gotext::quote;
use crate::kinds::behavior::rules::at::At;
use crate::kinds::behavior::rules::ip::{parse, parse_range};
use crate::kinds::behavior::warnings::Remarks;

pub fn address(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let text = at.text();
    let Some(ip) = parse(text) else {
        return;
    };
    let form = ip.to_string();
    if form == text {
        return;
    }
    let (text, form) = (quote(text), quote(&form));
    match ip {
        IpAddr::V4(_) => {
            remarks.on(at, format_args!("non-standard IP address {text} is invalid: use {form}"));
        }
        IpAddr::V6(_) => {
            remarks
                .on(at, format_args!("IPv6 address {text} should be in RFC 5952 canonical format ({form})"));
        }
    }
}

pub fn range(at: &At<'_, '_>, remarks: &mut Remarks<'_>) {
    let text = at.text();
    let Some((ip, bits)) = parse_range(text) else {
        return;
    };
    let network = network(ip, bits);
    let ambiguous = !network.starts_with(&format!("{}/", ip.to_canonical()));
    if ambiguous {
        let width = if ip.is_ipv4() { 32 } else { 128 };
        let (network, one) = (quote(&network), quote(&format!("{}/{width}", ip.to_canonical())));
        let text = quote(text);
        remarks.on(
            at,
            format_args!("CIDR value {text} is ambiguous in this context (should be {network} or {one}?)"),
        );
    }
    let mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    let (address, length) = text.split_once('/').unwrap_or_default();
    if mapped || address.parse::<IpAddr>().is_err() || (length.len() > 1 && length.starts_with('0')) {
        let (text, network) = (quote(text), quote(&network));
        remarks.on(at, format_args!("non-standard CIDR value {text} is invalid: use {network}"));
    } else if !ambiguous && ip.is_ipv6() && network != text {
        let (text, network) = (quote(text), quote(&network));
        remarks.on(
            at,
            format_args!("IPv6 CIDR value {text} should be in RFC 5952 canonical format ({network})"),
        );
    }
}

/// A range as Go prints what it reads: without the bits behind the prefix, and mapped addresses as what they map.
fn network(ip: IpAddr, bits: u8) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            format!("{}/{bits}", std::net::Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            let ip = Ipv6Addr::from(u128::from(ip) & mask);
            match ip.to_ipv4_mapped() {
                Some(mapped) if bits >= 96 => format!("{mapped}/{}", bits - 96),
                _ => format!("{ip}/{bits}"),
            }
        }
    }
}

pub fn each(list: &At<'_, '_>, remarks: &mut Remarks<'_>, check: fn(&At<'_, '_>, &mut Remarks<'_>)) {
    for item in list.items() {
        check(&item, remarks);
    }
}
