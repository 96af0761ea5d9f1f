//! Addresses of the network as Go reads them.

use std::net::IpAddr;

pub fn ip(text: &str) -> Option<IpAddr> {
    text.parse().ok()
}

/// With leading zeros, which do not count.
pub fn ip_sloppy(text: &str) -> Option<IpAddr> {
    let mut bare = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let word = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        let trimmed = rest[..word].trim_start_matches('0');
        bare.push_str(if word > 0 && trimmed.is_empty() { "0" } else { trimmed });
        rest = &rest[word..];
        if let Some(c) = rest.chars().next() {
            bare.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    ip(&bare)
}

pub fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let is_number = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let max = match ip_sloppy(address) {
        Some(IpAddr::V4(_)) => 32,
        Some(IpAddr::V6(_)) => 128,
        None => return false,
    };
    let length = length.trim_start_matches('0');
    is_number && (length.is_empty() || length.parse::<u32>().is_ok_and(|length| length <= max))
}

/// 6, 8 or 20 bytes, told apart by colons or hyphens, in pairs by dots, or not at all.
pub fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 12 {
        return false;
    }
    let (separator, digits) = match (bytes[2], bytes[4]) {
        (separator @ (b':' | b'-'), _) => (Some(separator), 2),
        (_, b'.') => (Some(b'.'), 4),
        _ => (None, bytes.len()),
    };
    let groups: Vec<&[u8]> = bytes.split(|b| Some(*b) == separator).collect();
    let count: usize = groups.iter().map(|group| group.len()).sum();
    let is_group = |group: &&[u8]| group.len() == digits && group.iter().all(u8::is_ascii_hexdigit);
    groups.iter().all(is_group) && matches!(count, 12 | 16 | 40)
}
