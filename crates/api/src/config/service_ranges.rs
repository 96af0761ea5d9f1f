//! Networks from which addresses are taken, and the range of node ports.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

/// How many values at the start of a range are kept for Services that request a specific one: a share of all values,
/// within bounds (KEP-3070 and KEP-3668).
struct Reserved {
    share: u128,
    bounds: RangeInclusive<u128>,
}

const OF_ADDRESSES: Reserved = Reserved { share: 16, bounds: 16..=256 };
const OF_PORTS: Reserved = Reserved { share: 32, bounds: 16..=128 };

impl Reserved {
    /// Every number below `count` once: first the unreserved ones from a random start, then the reserved ones.
    fn last_of(self, count: u128, random: u64) -> impl Iterator<Item = u128> + Send {
        let (least, most) = self.bounds.into_inner();
        let reserved = if count <= least { 0 } else { (count / self.share).clamp(least, most) };
        let open = count - reserved;
        let start = u128::from(random) % open.max(1);
        (0..open).map(move |step| reserved + (start + step) % open).chain(0..reserved)
    }
}

/// Every port of the range once, in the order in which they should be tried.
pub fn candidate_ports(range: &RangeInclusive<u16>, random: u64) -> impl Iterator<Item = u16> + Send + use<> {
    let first = *range.start();
    OF_PORTS.last_of(range.len() as u128, random).map(move |offset| first + offset as u16)
}

/// The largest network that upstream accepts, in host bits.
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

/// The ranges of addresses and ports of Services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// One network, or one of each family; the first is for Services that name no family. Addresses are taken from the
    /// ServiceCIDR that is made of these networks, and from other ServiceCIDRs.
    pub networks: Vec<Network>,
    pub node_ports: RangeInclusive<u16>,
}

impl Default for Config {
    /// Upstream's defaults.
    fn default() -> Self {
        Self { networks: Network::parse("10.0.0.0/24").into_iter().collect(), node_ports: 30000..=32767 }
    }
}

impl Config {
    /// The address of the Service `kubernetes`.
    pub fn first_address(&self) -> Option<IpAddr> {
        self.networks.first().map(Network::first)
    }

    pub fn network(&self, family: Family) -> Option<&Network> {
        self.networks.iter().find(|network| network.family() == family)
    }
}

/// A network such as `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    prefix: u8,
}

impl Network {
    /// Parses a network; `None` if it is malformed or has no room.
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

    /// The first address that can be assigned.
    pub fn first(&self) -> IpAddr {
        from_number(number(self.base) + 1, self.base)
    }

    pub fn base(&self) -> IpAddr {
        self.base
    }

    /// Every address once, in the order in which they should be tried: first the unreserved ones from a random start.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = IpAddr> + Send + use<> {
        let (first, kind) = (number(self.base) + 1, self.base);
        OF_ADDRESSES.last_of(self.last(), random).map(move |offset| from_number(first + offset, kind))
    }

    /// How many addresses can be assigned.
    pub fn size(&self) -> u128 {
        self.last()
    }

    /// The offset of the last address. The broadcast address of IPv4 does not count.
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
