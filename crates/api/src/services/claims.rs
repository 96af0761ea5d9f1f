//! Claims are objects in the store: the Service for which one is created has the address or port that it stands for.

use std::net::IpAddr;
use std::sync::Arc;

use rand::RngExt as _;

use super::Claim;
use super::measured::Measured;
use super::wants::Want;
use crate::cache::{State, hidden_rows};
use crate::codec::at_rest::StorageMediaType;
use crate::codec::object::{Draft, Object};
use crate::config::service_ranges::{Family, Network, candidate_ports};
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::options::DryRun;
use crate::revision::Revision;
use crate::schema::names::Gvr;
use crate::storage::{Change, Expect, Key, Mutation, Requirement, ResourceId, Written};
use crate::tree::{Value, json};
use crate::{Cluster, Target};

const FAMILY_LABEL: &str = "ipaddress.kubernetes.io/ip-family";
pub(super) const MANAGER_LABEL: &str = "ipaddress.kubernetes.io/managed-by";
pub(super) const MANAGER: &str = "ipallocator.k8s.io";

/// A claim that was made for a Service.
pub(super) struct Claimed {
    pub claim: Claim,
    /// The requirement of the claim's row; `None` in a dry run, which makes none.
    pub at: Option<Requirement>,
}

/// Why a claim was refused.
#[derive(Debug)]
pub(super) enum Refusal {
    Taken(Claim),
    OutOfRange {
        claim: Claim,
        range: String,
    },
    /// No address is left, or no port.
    Full {
        addresses: bool,
    },
    Failed(Error),
}

impl Refusal {
    /// The fault of the requested value; `None` if the refusal has another reason than a value.
    pub fn of_value(&self) -> Option<String> {
        Some(match self {
            Self::Taken(Claim::Address(ip)) => {
                format!("failed to allocate IP {ip}: provided IP is already allocated")
            }
            Self::Taken(Claim::Port(_)) => "provided port is already allocated".to_owned(),
            Self::OutOfRange { claim: Claim::Address(ip), range } => {
                format!("failed to allocate IP {ip}: {range}")
            }
            Self::OutOfRange { claim: Claim::Port(_), range } => {
                format!("provided port is not in the valid range. The range of valid ports is {range}")
            }
            Self::Full { .. } | Self::Failed(_) => return None,
        })
    }

    /// The error if no field's value is to blame.
    pub fn into_error(self, service: &str) -> Error {
        let why = self.of_value().unwrap_or_default();
        Error::Internal(match self {
            Self::Failed(error) => return error,
            Self::Taken(Claim::Port(port)) | Self::OutOfRange { claim: Claim::Port(port), .. } => {
                format!("failed to allocate requested HealthCheck NodePort {port}: {why}")
            }
            Self::Taken(_) | Self::OutOfRange { .. } => why,
            Self::Full { addresses: true } => {
                format!("failed to allocate a serviceIP for Service \"{service}\": range is full")
            }
            Self::Full { addresses: false } => "failed to allocate a nodePort: range is full".to_owned(),
        })
    }
}

impl Cluster {
    /// Claims an address or a port for the Service `target`.
    pub(super) async fn claim(
        &self,
        target: Target<'_>,
        want: Want,
        dry_run: DryRun,
    ) -> Result<Claimed, Refusal> {
        let mut measured = Measured::start(want);
        let claimed = self.try_want(target, want, dry_run, &mut measured).await;
        if dry_run == DryRun::No {
            measured.end(claimed.is_ok(), &self.runtime.metrics);
        }
        claimed
    }

    async fn try_want(
        &self,
        target: Target<'_>,
        want: Want,
        dry_run: DryRun,
        measured: &mut Measured,
    ) -> Result<Claimed, Refusal> {
        let pretended = |claim| Claimed { claim, at: None };
        match want {
            Want::This(claim) => {
                measured.network = self.check_range(claim).await?;
                let claimed = match (dry_run, claim) {
                    // Upstream's dry run does not check whether an address is taken.
                    (DryRun::Yes, Claim::Address(_)) => Some(pretended(claim)),
                    (DryRun::Yes, Claim::Port(_)) => {
                        Some(pretended(claim)).filter(|_| !self.is_claimed(&self.cache.any(), claim))
                    }
                    (DryRun::No, _) => self.try_claim(target, claim).await.map_err(Refusal::Failed)?,
                };
                claimed.ok_or(Refusal::Taken(claim))
            }
            Want::AnyAddress(family) => {
                let full = Refusal::Full { addresses: true };
                if dry_run == DryRun::Yes {
                    // As upstream does, a dry run gets the network's base address, which no Service can get.
                    let network = self.config.services.network(family);
                    return network.map(|network| pretended(Claim::Address(network.base()))).ok_or(full);
                }
                let open = self.open_networks(&self.cache.any(), family);
                for network in open.networks {
                    measured.network = Some(network);
                    let candidates =
                        network.candidates(self.runtime.random.with(|rng| rng.random())).map(Claim::Address);
                    if let Some(claim) = self.claim_any(target, candidates, dry_run).await? {
                        return Ok(claim);
                    }
                }
                Err(open.unreadable.map_or(full, Refusal::Failed))
            }
            Want::AnyPort => {
                let ports = candidate_ports(
                    &self.config.services.node_ports,
                    self.runtime.random.with(|rng| rng.random()),
                );
                let found = self.claim_any(target, ports.map(Claim::Port), dry_run).await?;
                found.ok_or(Refusal::Full { addresses: false })
            }
        }
    }

    async fn claim_any(
        &self,
        target: Target<'_>,
        candidates: impl Iterator<Item = Claim> + Send,
        dry_run: DryRun,
    ) -> Result<Option<Claimed>, Refusal> {
        let state = self.cache.any();
        for candidate in candidates {
            if self.is_claimed(&state, candidate) && !strikes(Bug::ClaimTakenTwice) {
                continue;
            }
            if dry_run == DryRun::Yes {
                return Ok(Some(Claimed { claim: candidate, at: None }));
            }
            let claimed = self.try_claim(target, candidate).await.map_err(Refusal::Failed)?;
            if claimed.is_some() {
                return Ok(claimed);
            }
        }
        Ok(None)
    }

    /// The network of an address; of a port there is none.
    async fn check_range(&self, claim: Claim) -> Result<Option<Network>, Refusal> {
        let config = &self.config.services;
        let range = match claim {
            Claim::Port(port) if config.node_ports.contains(&port) => return Ok(None),
            Claim::Port(_) => format!("{}-{}", config.node_ports.start(), config.node_ports.end()),
            Claim::Address(address) => {
                let open = |state: &State| self.open_networks(state, Family::of(address));
                if let Some(network) = open(&self.cache.any()).find(address) {
                    return Ok(Some(network));
                }
                // Another replica may have opened the network a moment ago.
                let fresh = self.cache.fresh().await.map_err(|error| Refusal::Failed(error.into()))?;
                let open = open(&fresh);
                if let Some(network) = open.find(address) {
                    return Ok(Some(network));
                }
                if let Some(error) = open.unreadable {
                    return Err(Refusal::Failed(error));
                }
                "the provided network does not match the current range".to_owned()
            }
        };
        Err(Refusal::OutOfRange { claim, range })
    }

    fn is_claimed(&self, state: &State, claim: Claim) -> bool {
        self.claim_object(state, claim).is_some()
    }

    fn claim_object(&self, state: &State, claim: Claim) -> Option<Arc<Object>> {
        let (resource, name) = self.claim_key(claim)?;
        state.get(resource, "", &name)
    }

    pub(super) fn claim_key(&self, claim: Claim) -> Option<(ResourceId, String)> {
        Some(match claim {
            Claim::Port(port) => (self.hidden.node_ports.id(), port.to_string()),
            Claim::Address(address) => {
                let addresses = self.resources.get(&Gvr::fixed("networking.k8s.io/v1", "ipaddresses"))?;
                (addresses.id, address.to_string())
            }
        })
    }

    /// Tries to claim; `None` if the claim belongs to somebody else.
    async fn try_claim(&self, target: Target<'_>, claim: Claim) -> Result<Option<Claimed>, Error> {
        let made = match claim {
            Claim::Address(address) => self.try_claim_address(target, address).await,
            Claim::Port(port) => self.try_claim_port(target, port).await,
        };
        let claimed = |(resource, revision)| Claimed {
            claim,
            at: Some(Requirement {
                key: Key::new(resource, "", &claim.name()),
                expect: Expect::At(revision),
            }),
        };
        match made? {
            None if strikes(Bug::ClaimTakenTwice) => Ok(Some(Claimed { claim, at: None })),
            made => Ok(made.map(claimed)),
        }
    }

    async fn try_claim_address(
        &self,
        target: Target<'_>,
        address: IpAddr,
    ) -> Result<Option<(ResourceId, Revision)>, Error> {
        let Some(addresses) = self.resources.get(&Gvr::fixed("networking.k8s.io/v1", "ipaddresses")) else {
            return Ok(None);
        };
        let object = address_object(address, target.namespace, target.name);
        let Value::Object(object) = object else { return Ok(None) };
        let name = address.to_string();
        let mutation =
            self.create_mutation(Target { resource: addresses, namespace: "", name: &name }, object)?;
        self.try_write(mutation).await
    }

    /// Writes a claim; `None` if somebody else has it.
    async fn try_write(&self, mutation: Mutation) -> Result<Option<(ResourceId, Revision)>, Error> {
        let resource = mutation.key.resource;
        match self.store.write(mutation).await? {
            Written::Committed { revision, .. } => Ok(Some((resource, revision))),
            Written::Conflict { judged_at, .. } | Written::Unmet { judged_at, .. } => {
                self.cache.at_least(judged_at).await?;
                Ok(None)
            }
        }
    }

    async fn try_claim_port(
        &self,
        target: Target<'_>,
        port: u16,
    ) -> Result<Option<(ResourceId, Revision)>, Error> {
        let name = port.to_string();
        let uid = self.runtime.random.uuid().to_string();
        let object = port_object(port, &uid, &self.now(), target.namespace, target.name);
        let Value::Object(object) = object else { return Ok(None) };
        let change = Change::Put {
            uid: uid.as_str().into(),
            stored_version: hidden_rows::VERSION.into(),
            value: Draft::encode("", &name, object, StorageMediaType::Json).into(),
        };
        let key = Key::new(self.hidden.node_ports.id(), "", &name);
        self.try_write(Mutation::new(key, Expect::Absent, change)).await
    }
}

impl Claim {
    pub(super) fn name(self) -> String {
        match self {
            Self::Address(address) => address.to_string(),
            Self::Port(port) => port.to_string(),
        }
    }
}

/// The IPAddress that claims an address for a Service.
pub(super) fn address_object(address: IpAddr, namespace: &str, service: &str) -> Value {
    json!({
        "kind": "IPAddress",
        "apiVersion": "networking.k8s.io/v1",
        "metadata": {
            "name": address.to_string(),
            "labels": {FAMILY_LABEL: Family::of(address).as_str(), MANAGER_LABEL: MANAGER},
        },
        "spec": {"parentRef": parent_of(namespace, service)},
    })
}

/// The object that claims a node port for a Service.
pub(super) fn port_object(port: u16, uid: &str, created: &str, namespace: &str, service: &str) -> Value {
    json!({
        "kind": "NodePort",
        "apiVersion": hidden_rows::VERSION,
        "metadata": {"name": port.to_string(), "uid": uid, "creationTimestamp": created},
        "spec": {"parentRef": parent_of(namespace, service)},
    })
}

fn parent_of(namespace: &str, service: &str) -> Value {
    json!({"resource": "services", "namespace": namespace, "name": service})
}
