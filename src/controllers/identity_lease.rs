//! This server's lease in kube-system, by which everybody can see that it is alive.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use uuid::Uuid;

use super::IdentityLeases;
use super::identity_lease_gc::{COMPONENT, IDENTITY_LABEL, NAMESPACE, leases};
use crate::api::error::Error;
use crate::api::gate::Gate;
use crate::api::options::write::WriteOptions;
use crate::api::options::{GetOptions, ReadAt};
use crate::api::part::Part;
use crate::api::resource::Resource;
use crate::api::strictness::{Requester, Warnings};
use crate::api::{Answer, Api, ObjectMap, Target, metadata_mut};
use crate::identity::ServerIdentity;
use crate::tree::{Value, json};
use crate::user::User;

/// Of what the endpoints of the Service `kubernetes` are made.
pub(super) const ADDRESS: &str = "rowplane.dev/advertise-address";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// Attempts in one heartbeat while others write the lease too.
const TRIES: usize = 5;
/// Until the server holds its lease for the first time, it does not wait for the next heartbeat.
const FIRST_BACKOFF: Duration = Duration::from_millis(200);
const LONGEST_BACKOFF: Duration = Duration::from_secs(7);
/// Heartbeats come later by up to this share, so that replicas started together drift apart.
const JITTER: f64 = 0.04;

pub async fn run(
    api: Arc<Api>,
    identity: ServerIdentity,
    address: Option<IpAddr>,
    config: IdentityLeases,
    gate: Gate,
) -> Result<(), Error> {
    let Some(resource) = leases(&api).cloned() else { return Ok(()) };
    let holder = format!("{identity}_{}", Uuid::new_v4());
    let heartbeat = Heartbeat { api: &api, resource: &resource, identity, address, holder, config };
    let mut held = Held::NotYet;
    let mut backoff = FIRST_BACKOFF;
    loop {
        let renewed = heartbeat.renew(&mut held).await;
        if let Err(error) = &renewed {
            tracing::warn!(%error, name = heartbeat.identity.id(), "cannot renew the lease of this server");
            gate.failed(None);
        }
        if matches!((renewed, &held), (Err(_), Held::NotYet)) {
            tokio::time::sleep(backoff).await;
            backoff = (backoff * 2).min(LONGEST_BACKOFF);
        } else {
            tokio::time::sleep(config.renew_interval.mul_f64(1.0 + JITTER * rand::random::<f64>())).await;
        }
    }
}

/// What the server knows of its lease.
enum Held {
    /// Nothing yet: the lease may be that of an earlier start, or missing.
    NotYet,
    /// It could not be written: somebody else may have been there, or the outcome is not known.
    Lost,
    /// The lease as it was last written, with its resourceVersion.
    Lease(ObjectMap),
}

struct Heartbeat<'a> {
    api: &'a Api,
    resource: &'a Resource,
    identity: ServerIdentity,
    /// Where others reach the server.
    address: Option<IpAddr>,
    /// Another one after every start.
    holder: String,
    config: IdentityLeases,
}

impl Heartbeat<'_> {
    /// Renews the lease from what is known of it; what somebody else has written meanwhile is read first.
    async fn renew(&self, held: &mut Held) -> Result<(), Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let written = match held {
                Held::Lease(lease) => self.update(lease.clone()).await,
                Held::NotYet | Held::Lost => self.acquire(held).await,
            };
            let error = match written {
                Ok(lease) => {
                    *held = Held::Lease(lease);
                    return Ok(());
                }
                Err(error) => error,
            };
            // Whatever was wrong with it, it is read before it is written again.
            if matches!(held, Held::Lease(_)) {
                *held = Held::Lost;
            }
            match error {
                Error::Conflict { .. } | Error::NotFound { .. } | Error::AlreadyExists { .. } => {
                    last = Some(error)
                }
                other => return Err(other),
            }
        }
        last.map_or(Ok(()), Err)
    }

    async fn acquire(&self, held: &Held) -> Result<ObjectMap, Error> {
        match self.api.get(self.target(), GetOptions { at: ReadAt::Latest }).await {
            Ok(found) => {
                let found = found.to_map()?;
                if matches!(held, Held::Lost) {
                    self.warn_of_a_twin(&found);
                }
                self.update(found).await
            }
            Err(Error::NotFound { .. }) => {
                let mut lease = ObjectMap::new();
                metadata_mut(&mut lease).insert("name", self.identity.id().into());
                self.renewed(&mut lease);
                let options = WriteOptions::default();
                let requester = Requester { user: &User::apiserver(), warnings: &Warnings::default() };
                stored(self.api.create(self.resource, NAMESPACE, lease, &options, requester).await?)
            }
            Err(error) => Err(error),
        }
    }

    async fn update(&self, mut lease: ObjectMap) -> Result<ObjectMap, Error> {
        self.renewed(&mut lease);
        let options = WriteOptions::default();
        let requester = Requester { user: &User::apiserver(), warnings: &Warnings::default() };
        stored(
            self.api
                .update(self.target(), Part::Main, || Ok(lease.clone()), &options, requester)
                .await?
                .answer,
        )
    }

    /// Two servers of one identity look like one to everybody else.
    fn warn_of_a_twin(&self, found: &ObjectMap) {
        let holder = found.get("spec").and_then(|spec| spec.get("holderIdentity")).and_then(Value::as_str);
        if let Some(holder) = holder.filter(|holder| *holder != self.holder) {
            tracing::warn!(
                name = self.identity.id(),
                hostname = self.identity.hostname(),
                holder,
                "another server has this one's identity; give each its own --hostname-override"
            );
        }
    }

    fn renewed(&self, lease: &mut ObjectMap) {
        lease.insert("apiVersion", "coordination.k8s.io/v1".into());
        lease.insert("kind", "Lease".into());
        let labels = metadata_mut(lease).entry("labels").or_insert_with(|| json!({}));
        labels[IDENTITY_LABEL] = COMPONENT.into();
        labels[HOSTNAME_LABEL] = self.identity.hostname().into();
        if let Some(address) = self.address {
            let annotations = metadata_mut(lease).entry("annotations").or_insert_with(|| json!({}));
            annotations[ADDRESS] = address.to_string().into();
        }
        let spec = lease.entry("spec").or_insert_with(|| json!({}));
        spec["holderIdentity"] = self.holder.as_str().into();
        spec["leaseDurationSeconds"] = self.config.duration_seconds.into();
        spec["renewTime"] = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string().into();
    }

    fn target(&self) -> Target<'_> {
        Target { resource: self.resource, namespace: NAMESPACE, name: self.identity.id() }
    }
}

/// The object as it is now, for the next heartbeat to start from.
fn stored(answer: Answer) -> Result<ObjectMap, Error> {
    match answer {
        Answer::Stored(object) => Ok(object.to_map()?),
        Answer::Unstored(object) => Ok(object),
    }
}
