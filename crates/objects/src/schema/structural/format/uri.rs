//! URIs as Go's `url.ParseRequestURI` takes them.

use super::network;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    /// Paths, names of users and passwords: any escape will do.
    Other,
}

pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|b| b < 0x20 || b == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        None => is_escaped(rest, Part::Other),
        Some(authority) => {
            let (authority, path) = authority.split_at(authority.find('/').unwrap_or(authority.len()));
            is_authority(&scheme.to_ascii_lowercase(), authority) && is_escaped(path, Part::Other)
        }
    }
}

/// The scheme, which may be missing, and the rest.
fn scheme(text: &str) -> Option<(&str, &str)> {
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, text: &str) -> bool {
    let Some((user, host)) = text.rsplit_once('@') else { return is_host(scheme, text) };
    let is_user = |b: u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    is_host(scheme, host) && user.bytes().all(is_user) && is_escaped(user, Part::Other)
}

fn is_host(scheme: &str, host: &str) -> bool {
    match host.rfind('[') {
        Some(0) => return is_literal(host),
        Some(_) => return false,
        None => {}
    }
    // Only these two are held to the rule that no host has a colon.
    let strict = matches!(scheme, "http" | "https");
    let colon = if strict { host.find(':') } else { host.rfind(':') };
    colon.is_none_or(|colon| is_port(&host[colon..])) && is_escaped(host, Part::Host)
}

/// An address in brackets, and a port.
fn is_literal(host: &str) -> bool {
    let Some(end) = host.rfind(']') else { return false };
    let (address, port) = (&host[1..end], &host[end + 1..]);
    let (address, zone) = match address.find("%25") {
        Some(at) => (&address[..at], Some(&address[at..])),
        None => (address, None),
    };
    let is_zone = |zone: &str| zone.len() > 3 && is_escaped(zone, Part::Zone);
    is_port(port) && zone.is_none_or(is_zone) && network::ip(address).is_some_and(|ip| ip.is_ipv6())
}

/// Nothing, or a colon and digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
}

fn is_escaped(text: &str, part: Part) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'%' {
            if part != Part::Other && !is_plain(bytes[at]) {
                return false;
            }
            at += 1;
            continue;
        }
        let digits = bytes.get(at + 1..at + 3).unwrap_or_default();
        let (Some(high), Some(low)) = (hex(digits, 0), hex(digits, 1)) else { return false };
        let byte = high * 16 + low;
        let allowed = match part {
            Part::Other => true,
            // No host hides ASCII, but for the sign of a zone.
            Part::Host => high >= 8 || byte == b'%',
            Part::Zone => byte == b'%' || byte == b' ' || is_plain(byte),
        };
        if !allowed {
            return false;
        }
        at += 3;
    }
    true
}

fn hex(digits: &[u8], at: usize) -> Option<u8> {
    let digit = char::from(*digits.get(at)?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Whether a byte stands for itself in a host.
fn is_plain(b: u8) -> bool {
    !b.is_ascii() || b.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&b)
}
