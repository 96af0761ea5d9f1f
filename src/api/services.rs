//! What Services are given: cluster IPs and node ports (`pkg/registry/core/service/storage`).
//!
//! Whoever gets an address first claims it: by an IPAddress of its name, as upstream does, and a port by an object that
//! only the store knows. Claims are created before the Service is written, so that the store decides between replicas,
//! and are given back when the write fails or the Service is gone; what a crash leaves behind is swept up later.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::error::Error;
use super::options::DryRun;
use super::resource::Resource;
use super::{Api, ObjectMap, Target, fields};
use crate::causes::Cause;
use crate::storage::{self, Written};
use crate::tree::Value;

mod cidrs;
mod claims;
mod families;
mod ranges;
mod wants;

use claims::Refusal;
use ranges::Family;
use wants::Wanted;

pub use cidrs::OF_FLAGS;
pub use claims::{Orphan, port_claims};
pub use ranges::Network;

/// What there is to give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// One, or one of each family; the first is that of Services that do not say. Addresses come from the ServiceCIDR
    /// that is made of these, and from others.
    pub networks: Vec<Network>,
    pub node_ports: RangeInclusive<u16>,
}

impl Default for Config {
    /// As upstream's.
    fn default() -> Self {
        Self { networks: Network::parse("10.0.0.0/24").into_iter().collect(), node_ports: 30000..=32767 }
    }
}

impl Config {
    /// That of the Service `kubernetes`.
    pub fn first_address(&self) -> Option<IpAddr> {
        self.networks.first().map(Network::first)
    }

    fn network(&self, family: Family) -> Option<&Network> {
        self.networks.iter().find(|network| network.family() == family)
    }
}

/// What a write of a Service has been given, until it is known what becomes of the write.
pub(super) struct Allocation {
    made: Vec<Claim>,
    /// What the Service had and will have no longer.
    given_up: Vec<Claim>,
}

/// An address or a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    Address(IpAddr),
    Port(u16),
}

impl Claim {
    fn port(&self) -> Option<u16> {
        if let Self::Port(port) = self { Some(*port) } else { None }
    }
}

fn is_service(resource: &Resource) -> bool {
    resource.definition.group().is_empty() && &*resource.definition.plural == "services"
}

impl Api {
    /// Completes a Service that is about to be written. Nothing of other kinds.
    pub(super) async fn allocate(
        &self,
        target: Target<'_>,
        new: &mut ObjectMap,
        old: Option<&ObjectMap>,
        dry_run: DryRun,
    ) -> Result<Option<Allocation>, Error> {
        if !is_service(target.resource) {
            return Ok(None);
        }
        let old = old.and_then(|old| fields::object(old, "spec"));
        let kind = target.resource.group_kind();
        let invalid = |causes| Error::Invalid { kind: kind.clone(), name: target.name.to_owned(), causes };
        let spec = fields::object_mut(new, "spec");
        families::complete(spec, old, &self.config.services).map_err(invalid)?;
        let mut made = Vec::new();
        for Wanted { place, want, reason } in wants::of(spec, old) {
            match self.claim(target, want, dry_run).await {
                Ok(claim) => {
                    made.push(claim);
                    place.put(spec, claim);
                }
                Err(refusal) => {
                    self.release(target, &made).await;
                    return Err(match reason.explain(spec, &refusal) {
                        Some(cause) => invalid(vec![cause]),
                        None => refusal.into_error(target.name),
                    });
                }
            }
        }
        wants::share_ports(spec);
        if dry_run == DryRun::Yes {
            return Ok(None);
        }
        let kept = wants::held(spec);
        let had = old.map(wants::held).unwrap_or_default();
        Ok(Some(Allocation {
            made,
            given_up: had.into_iter().filter(|claim| !kept.contains(claim)).collect(),
        }))
    }

    /// Gives back what is no longer needed: of the old version if the new one was written, else of the new one. Where
    /// nobody knows, nothing: the sweep will see.
    pub(super) async fn settle(
        &self,
        target: Target<'_>,
        allocation: Option<Allocation>,
        written: &Result<Written, storage::Error>,
    ) {
        if let Some(Allocation { made, given_up }) = allocation {
            match written {
                Ok(Written::Committed { .. }) => self.release(target, &given_up).await,
                Ok(Written::Conflict { .. } | Written::Unmet { .. }) => self.release(target, &made).await,
                Err(_) => {}
            }
        }
    }

    /// Gives back what a write has been given that does not come to the store.
    pub(super) async fn give_back(&self, target: Target<'_>, allocation: Option<Allocation>) {
        if let Some(Allocation { made, .. }) = allocation {
            self.release(target, &made).await;
        }
    }
}

/// Which field a want stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Addresses,
    Port(usize),
    HealthCheckPort,
}

impl Reason {
    /// `None` where it is no fault of the field.
    fn explain(self, spec: &ObjectMap, refusal: &Refusal) -> Option<Cause> {
        let why = refusal.of_value()?;
        match self {
            Self::Addresses => Some(Cause::invalid("spec.clusterIPs", spec.get("clusterIPs")?, &why)),
            Self::Port(index) => {
                let number =
                    fields::items(spec, &["ports"]).get(index)?.get("nodePort").unwrap_or(&Value::Null);
                Some(Cause::invalid(format!("spec.ports[{index}].nodePort"), number, &why))
            }
            Self::HealthCheckPort => None,
        }
    }
}
