//! Networks that addresses are taken from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// As many addresses at the beginning are left to those who ask for one of them: between these, a sixteenth.
const RESERVED: std::ops::RangeInclusive<u128> = 16..=256;
const RESERVED_SHARE: u128 = 16;
/// The largest network upstream takes, in bits of the host.
const MAX_HOST_BITS: u8 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }
}

/// `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    /// `None` for what is no network, or one without room.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let host = bits_of_host(bits, prefix)?;
        let mask = !((1_u128 << host) - 1);
        Some(Self { base: from_number(number(address) & mask, address), prefix })
    }

    pub fn family(&self) -> Family {
        Family::of(self.base)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let (address_number, base) = (number(address), number(self.base));
        Family::of(address) == self.family() && address_number > base && address_number <= base + self.last()
    }

    /// The first address that may be given.
    pub fn first(&self) -> IpAddr {
        from_number(number(self.base) + 1, self.base)
    }

    pub fn base(&self) -> IpAddr {
        self.base
    }

    /// Every address once, beginning anywhere behind the reserved ones, which come last.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = IpAddr> + Send + use<> {
        let (base, kind, last) = (number(self.base), self.base, self.last());
        let reserved = if last < *RESERVED.start() {
            0
        } else {
            (last / RESERVED_SHARE).clamp(*RESERVED.start(), *RESERVED.end()).min(last - 1)
        };
        let open = last - reserved;
        let start = u128::from(random) % open;
        let behind = (0..open).map(move |step| reserved + 1 + (start + step) % open);
        behind.chain(1..=reserved).map(move |offset| from_number(base + offset, kind))
    }

    /// The offset of the last address; the broadcast address of IPv4 is none.
    fn last(&self) -> u128 {
        let bits = if self.base.is_ipv4() { 32 } else { 128 };
        let all = (1_u128 << (bits - self.prefix)) - 1;
        if self.base.is_ipv4() { all - 1 } else { all }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix)
    }
}

fn bits_of_host(bits: u8, prefix: u8) -> Option<u8> {
    bits.checked_sub(prefix).filter(|host| (2..=MAX_HOST_BITS).contains(host))
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn from_number(number: u128, kind: IpAddr) -> IpAddr {
    match kind {
        IpAddr::V4(_) => Ipv4Addr::from_bits(number as u32).into(),
        IpAddr::V6(_) => Ipv6Addr::from_bits(number).into(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_address_is_a_candidate_once() {
        let network = Network::parse("10.0.0.7/24").expect("a network");
        assert_eq!(network.to_string(), "10.0.0.0/24");
        let candidates: Vec<IpAddr> = network.candidates(7).collect();
        let distinct: BTreeSet<_> = candidates.iter().collect();
        assert_eq!((candidates.len(), distinct.len()), (254, 254));
        assert!(candidates.iter().all(|address| network.contains(*address)));
        let text = |index: usize| candidates[index].to_string();
        assert_eq!(
            (text(0), text(238), text(253)),
            ("10.0.0.24".into(), "10.0.0.1".into(), "10.0.0.16".into())
        );
        assert_eq!(Network::parse("10.0.0.0/30").expect("a network").candidates(5).count(), 2);
        let large = Network::parse("fd00::/64").expect("a network");
        assert!(large.contains(large.candidates(u64::MAX).next().expect("one")));
    }

    #[test]
    fn what_is_no_network() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/31", "x/24", "fd00::/32"] {
            assert_eq!(Network::parse(text), None, "{text}");
        }
        let network = Network::parse("10.0.0.0/24").expect("a network");
        for address in ["10.0.0.0", "10.0.0.255", "10.0.1.1", "fd00::1"] {
            assert!(!network.contains(address.parse().expect("an address")), "{address}");
        }
    }
}
