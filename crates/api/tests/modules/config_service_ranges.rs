//! Tests of `config::service_ranges`.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use rowplane_api::config::service_ranges::Network;
use rowplane_api::config::service_ranges::candidate_ports;

#[test]
fn every_address_is_a_candidate_once() {
    let network = Network::parse("10.0.0.7/24").expect("a network");
    assert_eq!(network.to_string(), "10.0.0.0/24");
    let candidates: Vec<IpAddr> = network.candidates(7).collect();
    let distinct: BTreeSet<_> = candidates.iter().collect();
    assert_eq!((candidates.len(), distinct.len()), (254, 254));
    assert!(candidates.iter().all(|address| network.contains(*address)));
    let text = |index: usize| candidates[index].to_string();
    assert_eq!((text(0), text(238), text(253)), ("10.0.0.24".into(), "10.0.0.1".into(), "10.0.0.16".into()));
    assert_eq!(Network::parse("10.0.0.0/30").expect("a network").candidates(5).count(), 2);
    let large = Network::parse("fd00::/64").expect("a network");
    assert!(large.contains(large.candidates(u64::MAX).next().expect("one")));
}

#[test]
fn every_port_is_a_candidate_once() {
    let ports = |range, random| candidate_ports(&range, random).collect::<Vec<u16>>();
    let all = ports(30_000..=32_767, 3);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (2768, 2768));
    assert_eq!((all[0], all[2681], all[2682], all[2767]), (30_089, 30_088, 30_000, 30_085));
    assert_eq!(ports(1..=2, 5), [2, 1]);
    assert_eq!(ports(7..=7, 5), [7]);
    assert_eq!(ports(65_535..=65_535, 0), [65_535]);
    let empty = RangeInclusive::new(2, 1);
    assert_eq!(ports(empty, 5), [0_u16; 0]);
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
