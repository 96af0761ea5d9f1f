//! Cluster IPs and node ports, which are assigned to Services (`pkg/registry/core/service/storage`).
//!
//! Each address or port is claimed before it is assigned: an address by an IPAddress of its name, as upstream does, and
//! a port by an object that is only in the store. Claims are created before the Service is written, so that the store
//! decides between replicas. They are released when the write fails or the Service is deleted; claims that a crash
//! leaves behind are removed by a sweep.

use std::net::IpAddr;

use crate::causes::Cause;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::kinds::core::service::address_causes;
use crate::options::DryRun;
use crate::schema::resource::ResourceDefinition;
use crate::storage::{self, Requirement, Written};
use crate::tree::Value;
use crate::{Cluster, ObjectMap, Target, fields};

mod cidrs;
mod claims;
mod families;
pub mod imported;
mod measured;
mod release;
mod wants;

use claims::{Claimed, Refusal};
use wants::Wanted;

pub use crate::config::service_ranges::{Config, Network};
pub use cidrs::OF_FLAGS;
pub use release::Orphan;

/// The claims for a write of a Service, until the outcome of the write is known.
pub(super) struct Allocation {
    made: Vec<Claim>,
    /// Requirements that the claims made are still as they were written: if a failover loses one, the Service is not written
    /// either.
    requires: Vec<Requirement>,
    /// The claims that the Service had and will not have any more.
    given_up: Vec<Claim>,
}

impl Allocation {
    /// The requirements of the Service's write.
    pub fn requires(&self) -> impl Iterator<Item = Requirement> + use<> {
        let requires = if strikes(Bug::ClaimNotRequired) { Vec::new() } else { self.requires.clone() };
        requires.into_iter()
    }
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

/// Whether this is the resource whose objects claim addresses and ports.
pub(super) fn is_service(definition: &ResourceDefinition) -> bool {
    definition.group().is_empty() && &*definition.plural == "services"
}

impl Cluster {
    /// The refusal of an invalid Service for its addresses and ports, if they are wrong, which is told instead of all other
    /// faults: upstream allocates before it validates. Claims nothing.
    pub(super) async fn refused_before_validation(
        &self,
        target: Target<'_>,
        new: &ObjectMap,
        old: Option<&ObjectMap>,
    ) -> Option<Error> {
        let spec_of_old = old.and_then(|old| fields::object(old, "spec"));
        if fields::object(new, "spec").is_some_and(|spec| !families::stay(spec, spec_of_old)) {
            let causes = address_causes(new, old);
            if !causes.is_empty() {
                return Some(target.invalid(causes.into_vec()));
            }
        }
        let refused = self.allocate(target, &mut new.clone(), old, DryRun::Yes).await.err();
        refused.filter(|error| matches!(error, Error::Invalid { .. }))
    }

    /// Completes a Service that is about to be written.
    pub(super) async fn allocate(
        &self,
        target: Target<'_>,
        new: &mut ObjectMap,
        old: Option<&ObjectMap>,
        dry_run: DryRun,
    ) -> Result<Option<Allocation>, Error> {
        let old = old.and_then(|old| fields::object(old, "spec"));
        let invalid = |causes: Vec<Cause>| target.invalid(causes);
        let spec = fields::object_mut(new, "spec");
        families::complete(spec, old, &self.config.services).map_err(invalid)?;
        let (mut made, mut requires) = (Vec::new(), Vec::new());
        for Wanted { place, want, reason } in wants::of(spec, old) {
            match Box::pin(self.claim(target, want, dry_run)).await {
                Ok(Claimed { claim, at }) => {
                    made.push(claim);
                    requires.extend(at);
                    place.put(spec, claim);
                }
                Err(refusal) => {
                    Box::pin(self.release(target, &made)).await;
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
        let given_up: Vec<Claim> = had.into_iter().filter(|claim| !kept.contains(claim)).collect();
        if strikes(Bug::ClaimDroppedEarly) {
            Box::pin(self.release(target, &given_up)).await;
        }
        Ok(Some(Allocation { made, requires, given_up }))
    }

    /// Releases what is not needed any more: the old version's claims if the new one was written, otherwise the new
    /// one's. If the outcome is unknown, releases nothing; the sweep will.
    pub(super) async fn settle(
        &self,
        target: Target<'_>,
        allocation: Allocation,
        written: &Result<Written, storage::Error>,
    ) {
        let Allocation { made, given_up, .. } = allocation;
        match written {
            Ok(Written::Committed { .. }) => Box::pin(self.release(target, &given_up)).await,
            Ok(Written::Conflict { .. } | Written::Unmet { .. }) => {
                Box::pin(self.release(target, &made)).await;
            }
            Err(_) => {}
        }
    }

    /// Releases what was claimed for a write that does not reach the store.
    pub(super) async fn give_back(&self, target: Target<'_>, allocation: Allocation) {
        Box::pin(self.release(target, &allocation.made)).await;
    }
}

/// The field from which a wanted claim comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Addresses,
    Port(usize),
    HealthCheckPort,
}

impl Reason {
    /// The cause for a 422; `None` if the field's value is not to blame.
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
