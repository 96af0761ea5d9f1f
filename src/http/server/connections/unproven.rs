//! Connections without a credential, by the addresses of their peers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// The part of an address of IPv6 that tells peers apart: whoever has one has all addresses of its network.
const NETWORK: u128 = !0 << 64;

#[derive(Debug, Default)]
pub struct Unproven {
    /// The numbers of connections, which grow with time, by peers.
    peers: BTreeMap<IpAddr, BTreeSet<u64>>,
    /// The peer with most connections comes last; among equals, the one with the oldest connection.
    order: BTreeSet<(usize, Reverse<u64>, IpAddr)>,
    count: usize,
}

impl Unproven {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn add(&mut self, address: IpAddr, id: u64) {
        self.change(peer(address), |ids| ids.insert(id));
    }

    /// Removes a connection. Returns false if it is not there.
    pub fn remove(&mut self, address: IpAddr, id: u64) -> bool {
        self.change(peer(address), |ids| ids.remove(&id))
    }

    /// Removes the oldest connection of the peer with most.
    pub fn pop(&mut self) -> Option<u64> {
        let (_, Reverse(oldest), peer) = *self.order.last()?;
        self.change(peer, |ids| ids.remove(&oldest));
        Some(oldest)
    }

    fn change(&mut self, peer: IpAddr, change: impl FnOnce(&mut BTreeSet<u64>) -> bool) -> bool {
        let ids = self.peers.entry(peer).or_default();
        if let Some(oldest) = ids.first() {
            self.order.remove(&(ids.len(), Reverse(*oldest), peer));
        }
        self.count -= ids.len();
        let is_changed = change(ids);
        self.count += ids.len();
        match ids.first() {
            Some(oldest) => _ = self.order.insert((ids.len(), Reverse(*oldest), peer)),
            None => _ = self.peers.remove(&peer),
        }
        is_changed
    }
}

/// The addresses that count as one.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & NETWORK).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_peer_with_most_goes_first() {
        let mut unproven = Unproven::default();
        let addresses = ["192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1", "2001:db8::2", "2001:db8:0:1::1"];
        for (id, address) in addresses.iter().enumerate() {
            unproven.add(address.parse().expect("an address"), id as u64);
        }
        let popped: Vec<u64> = std::iter::from_fn(|| unproven.pop()).collect();
        assert_eq!(popped, [0, 1, 2, 3, 4]);
        assert_eq!((unproven.len(), unproven.peers.len(), unproven.order.len()), (0, 0, 0));
    }

    #[test]
    fn who_has_shown_a_credential_is_not_there_any_more() {
        let mut unproven = Unproven::default();
        let address = "192.0.2.1".parse().expect("an address");
        unproven.add(address, 1);
        unproven.add(address, 2);
        assert!(unproven.remove(address, 1) && !unproven.remove(address, 1));
        assert_eq!((unproven.pop(), unproven.pop()), (Some(2), None));
    }
}
