//! `ip` and `cidr` (`apiserver/pkg/cel/library/{ip,cidr}.go`), with the texts of Go's `netip`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use rowplane_values::gotext::quote;

use super::opaque::Opaque;
use crate::value::{Error, Value};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub address: IpAddr,
    pub bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", go_text(self.address), self.bits)
    }
}

/// The text of an address as Go prints it: only addresses of IPv4 and mapped ones have dots.
pub fn go_text(address: IpAddr) -> String {
    let IpAddr::V6(six) = address else { return address.to_string() };
    if six.to_ipv4_mapped().is_some() {
        return address.to_string();
    }
    let groups = six.segments();
    let (mut best, mut at) = (0..0, 0);
    while at < 8 {
        let end = groups[at..].iter().position(|group| *group != 0).map_or(8, |run| at + run);
        if end - at >= 2 && end - at > best.len() {
            best = at..end;
        }
        at = end + 1;
    }
    let part = |groups: &[u16]| groups.iter().map(|group| format!("{group:x}")).collect::<Vec<_>>().join(":");
    if best.is_empty() {
        part(&groups)
    } else {
        format!("{}::{}", part(&groups[..best.start]), part(&groups[best.end..]))
    }
}

impl Cidr {
    fn mask(&self, address: IpAddr) -> IpAddr {
        match address {
            IpAddr::V4(four) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                Ipv4Addr::from(u32::from(four) & mask).into()
            }
            IpAddr::V6(six) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                Ipv6Addr::from(u128::from(six) & mask).into()
            }
        }
    }

    fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && self.mask(address) == self.mask(self.address)
    }

    /// Whether all of the other is in it.
    fn covers(&self, other: &Self) -> bool {
        self.bits <= other.bits && self.contains(other.address)
    }
}

/// An address without zone that is not an IPv4 one in IPv6's clothes.
pub fn parse_ip(text: &str) -> Result<IpAddr, Error> {
    let quoted = || quote(text);
    let (plain, zone) = text.split_once('%').unwrap_or((text, ""));
    let read = parse_addr(text, plain);
    match read {
        Err(why) => Err(Error::new(format!(
            "IP Address {} parse error during conversion from string: {why}",
            quoted()
        ))),
        Ok(_) if !zone.is_empty() => {
            Err(Error::new(format!("IP address {} with zone value is not allowed", quoted())))
        }
        Ok(IpAddr::V6(six)) if six.to_ipv4_mapped().is_some() => {
            Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", quoted())))
        }
        Ok(address) => Ok(address),
    }
}

/// `netip.ParseAddr`, whose texts say where it stops.
fn parse_addr(text: &str, plain: &str) -> Result<IpAddr, String> {
    let wrong = |why: &str| format!("ParseAddr({}): {why}", quote(text));
    match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => parse_four(text).map(IpAddr::V4).map_err(|why| wrong(&why)),
        Some(b':') if text.contains('%') && text.ends_with('%') => {
            Err(wrong("zone must be a non-empty string"))
        }
        Some(b':') => parse_six(plain).map(IpAddr::V6).map_err(|why| wrong(&why)),
        Some(b'%') => Err(wrong("missing IPv6 address")),
        _ => Err(wrong("unable to parse IP")),
    }
}

fn parse_four(text: &str) -> Result<Ipv4Addr, String> {
    let (mut fields, mut value, mut digits) = (Vec::new(), 0u32, 0);
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err("IPv4 field has octet with leading zero".to_owned());
                }
                value = value * 10 + u32::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err("IPv4 field has value >255".to_owned());
                }
            }
            b'.' => {
                if at == 0 || at == bytes.len() - 1 || bytes[at - 1] == b'.' {
                    return Err(format!(
                        "IPv4 field must have at least one digit (at {})",
                        quote(&text[at..])
                    ));
                }
                if fields.len() == 3 {
                    return Err("IPv4 address too long".to_owned());
                }
                fields.push(value as u8);
                (value, digits) = (0, 0);
            }
            _ => {
                return Err(format!(
                    "unexpected character (at {})",
                    quote(text.get(at..).unwrap_or_default())
                ));
            }
        }
    }
    let [a, b, c] = fields[..] else { return Err("IPv4 address too short".to_owned()) };
    Ok(Ipv4Addr::new(a, b, c, value as u8))
}

/// The groups of an IPv6 address, and where `::` stood.
struct Groups {
    groups: Vec<u16>,
    gap: Option<usize>,
}

fn parse_six(text: &str) -> Result<Ipv6Addr, String> {
    let Groups { mut groups, gap } = groups_of(text)?;
    match gap {
        None if groups.len() < 8 => return Err("address string too short".to_owned()),
        Some(_) if groups.len() == 8 => {
            return Err("the :: must expand to at least one field of zeros".to_owned());
        }
        Some(gap) => {
            let missing = 8 - groups.len();
            groups.splice(gap..gap, std::iter::repeat_n(0, missing));
        }
        None => {}
    }
    let mut all = [0u16; 8];
    all.copy_from_slice(&groups[..8]);
    Ok(Ipv6Addr::from(all))
}

fn groups_of(text: &str) -> Result<Groups, String> {
    let at = |rest: &str| format!(" (at {})", quote(rest));
    let (mut rest, mut groups, mut gap) = (text, Vec::new(), None);
    if let Some(after) = rest.strip_prefix("::") {
        (rest, gap) = (after, Some(0));
        if rest.is_empty() {
            return Ok(Groups { groups, gap });
        }
    }
    while groups.len() < 8 {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        if end == 0 {
            return Err(format!("each colon-separated field must have at least one digit{}", at(rest)));
        }
        if end > 4 {
            return Err(format!("each group must have 4 or less digits{}", at(rest)));
        }
        let group = u16::from_str_radix(&rest[..end], 16).unwrap_or_default();
        if rest[end..].starts_with('.') {
            return four_inside(rest, groups, gap);
        }
        groups.push(group);
        rest = &rest[end..];
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':') else {
            return Err(format!("unexpected character, want colon{}", at(rest)));
        };
        if after.is_empty() {
            return Err(format!("colon must be followed by more characters{}", at(rest)));
        }
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap.is_some() {
                return Err(format!("multiple :: in address{}", at(rest)));
            }
            (rest, gap) = (after, Some(groups.len()));
            if rest.is_empty() {
                break;
            }
        }
    }
    if rest.is_empty() {
        Ok(Groups { groups, gap })
    } else {
        Err(format!("trailing garbage after address{}", at(rest)))
    }
}

/// An IPv4 address at the end of an IPv6 one.
fn four_inside(rest: &str, mut groups: Vec<u16>, gap: Option<usize>) -> Result<Groups, String> {
    if gap.is_none() && groups.len() != 6 {
        return Err(format!(
            "embedded IPv4 address must replace the final 2 fields of the address (at {})",
            quote(rest)
        ));
    }
    if groups.len() > 6 {
        return Err(format!(
            "too many hex fields to fit an embedded IPv4 at the end of the address (at {})",
            quote(rest)
        ));
    }
    let [a, b, c, d] = parse_four(rest)?.octets();
    groups.extend([u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])]);
    Ok(Groups { groups, gap })
}

fn parse_cidr(text: &str) -> Result<Cidr, Error> {
    const PREFIX: &str = "network address parse error during conversion from string: ";
    let quoted = quote(text);
    let wrong = |why: String| Error::new(format!("{PREFIX}{PREFIX}netip.ParsePrefix({quoted}): {why}"));
    let Some((address, bits)) = text.rsplit_once('/') else { return Err(wrong("no '/'".to_owned())) };
    let plain = address.split('%').next().unwrap_or_default();
    let read = parse_addr(address, plain).map_err(wrong)?;
    if address.contains('%') {
        return Err(wrong("IPv6 zones cannot be present in a prefix".to_owned()));
    }
    let zeros = bits.len() > 1 && !bits.starts_with(|c: char| ('1'..='9').contains(&c));
    let number = bits.parse::<i64>().ok().filter(|_| !zeros);
    let Some(number) = number else { return Err(wrong(format!("bad bits after slash: {}", quote(bits)))) };
    let most = if read.is_ipv4() { 32 } else { 128 };
    let Some(bits) = u8::try_from(number).ok().filter(|bits| *bits <= most) else {
        return Err(wrong("prefix length out of range".to_owned()));
    };
    if let IpAddr::V6(six) = read
        && six.to_ipv4_mapped().is_some()
    {
        return Err(Error::new(format!("{PREFIX}IPv4-mapped IPv6 address {quoted} is not allowed")));
    }
    Ok(Cidr { address: read, bits })
}

fn ip<'a>(address: IpAddr) -> Value<'a> {
    Value::Opaque(Arc::new(Opaque::Ip(address)))
}

fn cidr<'a>(of: Cidr) -> Value<'a> {
    Value::Opaque(Arc::new(Opaque::Cidr(of)))
}

/// Functions of texts and addresses; `None` for arguments of other types.
pub fn call<'a>(function: &str, arguments: &[Value<'a>]) -> Option<Result<Value<'a>, Error>> {
    let text = arguments.first()?.as_str();
    Some(Ok(match (function, text) {
        ("ip", Some(text)) => return Some(parse_ip(text).map(ip)),
        ("isIP", Some(text)) => Value::Bool(parse_ip(text).is_ok()),
        ("ip.isCanonical", Some(text)) => {
            return Some(parse_ip(text).map(|address| Value::Bool(go_text(address) == text)));
        }
        ("cidr", Some(text)) => return Some(parse_cidr(text).map(cidr)),
        ("isCIDR", Some(text)) => Value::Bool(parse_cidr(text).is_ok()),
        _ => {
            let Value::Opaque(opaque) = &arguments[0] else { return None };
            return match &**opaque {
                Opaque::Ip(address) => of_ip(function, *address).map(Ok),
                Opaque::Cidr(cidr) => of_cidr(function, cidr, arguments.get(1)),
                _ => None,
            };
        }
    }))
}

fn of_ip<'a>(function: &str, address: IpAddr) -> Option<Value<'a>> {
    let (link_local, link_multicast) = match address {
        IpAddr::V4(four) => (four.is_link_local(), four.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(six) => (six.segments()[0] & 0xffc0 == 0xfe80, six.segments()[0] & 0xff0f == 0xff02),
    };
    let is = match function {
        "family" => return Some(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => address.is_unspecified(),
        "isLoopback" => address.is_loopback(),
        "isLinkLocalMulticast" => link_multicast,
        "isLinkLocalUnicast" => link_local,
        "isGlobalUnicast" => {
            let broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
            let special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
            !(broadcast || special || link_local)
        }
        _ => return None,
    };
    Some(Value::Bool(is))
}

fn of_cidr<'a>(function: &str, of: &Cidr, other: Option<&Value<'a>>) -> Option<Result<Value<'a>, Error>> {
    let opaque = match other {
        Some(Value::Opaque(opaque)) => Some(&**opaque),
        _ => None,
    };
    Some(Ok(match (function, other.and_then(Value::as_str), opaque) {
        ("ip", ..) => ip(of.address),
        ("prefixLength", ..) => Value::Int(of.bits.into()),
        ("masked", ..) => cidr(Cidr { address: of.mask(of.address), bits: of.bits }),
        // Upstream tells a text that is no address as an argument of the wrong type.
        ("containsIP", Some(text), _) => {
            return Some(match parse_ip(text) {
                Ok(address) => Ok(Value::Bool(of.contains(address))),
                Err(_) => Err(Error::no_such_overload()),
            });
        }
        ("containsIP", _, Some(Opaque::Ip(address))) => Value::Bool(of.contains(*address)),
        ("containsCIDR", Some(text), _) => {
            return Some(parse_cidr(text).map(|other| Value::Bool(of.covers(&other))));
        }
        ("containsCIDR", _, Some(Opaque::Cidr(other))) => Value::Bool(of.covers(other)),
        _ => return None,
    }))
}
