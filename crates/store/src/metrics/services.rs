//! Metrics of the cluster IPs and node ports of Services.

use std::fmt::Write as _;
use std::time::Duration;

use metrics::Label;

use super::catalog::head;
use super::{Metrics, labels_of};

pub const ADDRESS_ALLOCATIONS: &str = "kube_apiserver_clusterip_allocator_allocation_total";
pub const ADDRESS_ERRORS: &str = "kube_apiserver_clusterip_allocator_allocation_errors_total";
pub const ADDRESS_SECONDS: &str = "kube_apiserver_clusterip_allocator_allocation_duration_seconds";
pub const PORT_ALLOCATIONS: &str = "kube_apiserver_nodeport_allocator_allocation_total";
pub const PORT_ERRORS: &str = "kube_apiserver_nodeport_allocator_allocation_errors_total";

/// Upstream's label `scope` of an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The client named the address or port.
    Static,
    Dynamic,
}

impl Choice {
    fn label(self) -> (&'static str, &'static str) {
        ("scope", if self == Self::Static { "static" } else { "dynamic" })
    }
}

/// The addresses or ports of a range that have an owner, and those that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeUse {
    pub allocated: u128,
    pub available: u128,
}

/// The ranges of Services, and how much of them is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceRanges {
    /// By the text of the network.
    pub networks: Vec<(String, RangeUse)>,
    pub node_ports: RangeUse,
}

impl Metrics {
    /// Counts a cluster IP that was given to a Service. Networks come from settings and stored ServiceCIDRs.
    pub fn address_allocated(&self, network: &str, choice: Choice, took: Duration) {
        let labels = labels_of(&[("cidr", network), choice.label()]);
        self.counter(ADDRESS_ALLOCATIONS, labels).increment(1);
        self.histogram(ADDRESS_SECONDS, labels_of(&[("cidr", network)])).record(took);
    }

    pub fn address_refused(&self, network: &str, choice: Choice) {
        self.counter(ADDRESS_ERRORS, labels_of(&[("cidr", network), choice.label()])).increment(1);
    }

    /// Counts a node port that a Service was given, or could not be given.
    pub fn port_asked(&self, choice: Choice, is_allocated: bool) {
        let (name, (label, scope)) =
            (if is_allocated { PORT_ALLOCATIONS } else { PORT_ERRORS }, choice.label());
        self.counter(name, vec![Label::from_static_parts(label, scope)]).increment(1);
    }

    /// Adds how much of the ranges of Services is in use to the text of `/metrics`.
    pub fn render_service_ranges(&self, text: &mut String, ranges: &ServiceRanges) {
        let mut own = String::new();
        for (state, of) in [
            ("allocated", (|range| range.allocated) as fn(&RangeUse) -> u128),
            ("available", |range| range.available),
        ] {
            let name = format!("kube_apiserver_clusterip_allocator_{state}_ips");
            head(&mut own, &name, "gauge");
            for (network, range) in &ranges.networks {
                let _ = writeln!(own, "{name}{{cidr=\"{network}\"}} {}", of(range));
            }
            let name = format!("kube_apiserver_nodeport_allocator_{state}_ports");
            head(&mut own, &name, "gauge");
            let _ = writeln!(own, "{name} {}\n", of(&ranges.node_ports));
        }
        text.push_str(&self.labelled(own));
    }
}
