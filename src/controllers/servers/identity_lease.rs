//! This server's lease in kube-system. It shows others that the server is alive, and reserves the server's name: no
//! server writes the lease of another living one.

mod claim;

use std::sync::Arc;

use rand::RngExt as _;

pub use self::claim::{Claimant, Claimed, claim};

use super::identity_lease_gc::{COMPONENT, IDENTITY_LABEL, NAMESPACE, renewed_at};
use crate::api::decode::Body;
use crate::api::error::Error;
use crate::api::options::{GetOptions, ReadAt};
use crate::api::request::Request;
use crate::api::{Answer, Api, ObjectMap, Target, fields, metadata_mut};
use crate::schema::resource::Verb;
use crate::tasks::{Failure, Tasks};
use crate::tree::json;

/// The annotation with the server's address, from which the endpoints of the Service `kubernetes` are made.
pub(in crate::controllers) const ADDRESS: &str = "rowplane.dev/advertise-address";
/// The annotation that identifies one of several servers on a host. It stays the same after a restart.
const INSTANCE: &str = "rowplane.dev/instance";
const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";
/// How often a heartbeat is tried while others write the same lease.
const TRIES: usize = 5;
/// The largest random delay of a heartbeat, as a fraction of the interval, so that replicas started together drift
/// apart.
const JITTER: f64 = 0.04;

/// Renews the claimed lease. If another server has taken it, this server must not continue under its name.
pub async fn run(api: Arc<Api>, claimed: Arc<Claimed>, tasks: Tasks) -> Result<(), Error> {
    let heartbeat = Heartbeat { api: &api, claimed: &claimed };
    let mut held = Held::Lease(claimed.lease.clone());
    loop {
        let interval = claimed.config.renew_interval;
        tokio::time::sleep(
            interval.mul_f64(1.0 + JITTER * api.runtime.random.with(|rng| rng.random::<f64>())),
        )
        .await;
        match heartbeat.renew(&mut held).await {
            Ok(()) => {}
            Err(NotRenewed::Failed(error)) => {
                tracing::warn!(%error, name = claimed.identity.id(), "cannot renew the lease of this server");
            }
            Err(NotRenewed::Taken { holder }) => {
                tasks.fail(claimed.yielded(&holder));
                return std::future::pending().await;
            }
        }
    }
}

/// The server's knowledge of its lease.
enum Held {
    /// The last write failed: someone else may have written the lease, or the outcome is unknown.
    Lost,
    /// The lease as last written, with its resourceVersion.
    Lease(ObjectMap),
}

/// Why a heartbeat failed.
enum NotRenewed {
    Failed(Error),
    /// Another server holds the lease.
    Taken {
        holder: String,
    },
}

impl From<Error> for NotRenewed {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

struct Heartbeat<'a> {
    api: &'a Api,
    claimed: &'a Claimed,
}

impl Heartbeat<'_> {
    /// Renews the lease, starting from the last known version. If someone else has written it meanwhile, reads it
    /// first.
    async fn renew(&self, held: &mut Held) -> Result<(), NotRenewed> {
        let mut last = None;
        for _ in 0..TRIES {
            let written = match std::mem::replace(held, Held::Lost) {
                Held::Lease(lease) => self.claimed.write(self.api, Some(lease)).await,
                Held::Lost => {
                    let found = self.claimed.read(self.api).await?;
                    if let Some(holder) = found.as_ref().and_then(|found| self.claimed.usurper(found)) {
                        return Err(NotRenewed::Taken { holder });
                    }
                    self.claimed.write(self.api, found).await
                }
            };
            match written {
                Ok(lease) => {
                    *held = Held::Lease(lease);
                    return Ok(());
                }
                Err(error) if is_lost_race(&error) => last = Some(error),
                Err(error) => return Err(error.into()),
            }
        }
        last.map_or(Ok(()), |error| Err(error.into()))
    }
}

fn is_lost_race(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. } | Error::NotFound { .. } | Error::AlreadyExists { .. })
}

impl Claimed {
    /// Reads the present lease.
    async fn read(&self, api: &Api) -> Result<Option<ObjectMap>, Error> {
        match api.get(self.target(), GetOptions { at: ReadAt::Latest }).await {
            Ok(found) => Ok(Some(found.to_map()?)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a lease this server's as of now: the one that was found, or a new one. Fails if it has been written since
    /// it was read.
    async fn write(&self, api: &Api, found: Option<ObjectMap>) -> Result<ObjectMap, Error> {
        let now = &api.now_micro();
        match found {
            Some(mut lease) => {
                self.renewed(&mut lease, now);
                let request = Request::own(Verb::Update, self.target());
                stored(api.update(&request, Body::Object(&lease)).await?.answer)
            }
            None => {
                let mut lease = ObjectMap::new();
                metadata_mut(&mut lease).insert("name", self.identity.id().into());
                self.renewed(&mut lease, now);
                let target = Target { name: "", ..self.target() };
                stored(api.create(&Request::own(Verb::Create, target), Body::Object(&lease)).await?)
            }
        }
    }

    /// The server that has taken this server's lease since it was claimed. Edits by people do not count.
    fn usurper(&self, found: &ObjectMap) -> Option<String> {
        let holder = fields::text(found, &["spec", "holderIdentity"]);
        let of_a_server = holder.strip_prefix(self.identity.id()).is_some_and(|rest| rest.starts_with('_'));
        // A database that has lost commits may show an earlier holder.
        let since = renewed_at(found).is_some_and(|renewed| renewed > self.since);
        (of_a_server && holder != self.holder && since).then(|| holder.to_owned())
    }

    /// Why this server ends; it will take another name after a restart.
    fn yielded(&self, holder: &str) -> Failure {
        if let Some(instance) = &self.instance
            && let Err(error) = instance.forget()
        {
            tracing::warn!(%error, "cannot keep a new id for this server");
        }
        let name = self.identity.hostname();
        Failure::Identity(
            format!(
                "another server ({holder}) has taken the name {name:?}; after a restart this one has its own"
            )
            .into(),
        )
    }

    fn renewed(&self, lease: &mut ObjectMap, now: &str) {
        lease.insert("apiVersion", "coordination.k8s.io/v1".into());
        lease.insert("kind", "Lease".into());
        let labels = metadata_mut(lease).entry("labels").or_insert_with(|| json!({}));
        labels[IDENTITY_LABEL] = COMPONENT.into();
        labels[HOSTNAME_LABEL] = self.identity.hostname().into();
        let instance = self.instance.as_ref().map(|instance| instance.id());
        let annotations = [(ADDRESS, self.address.map(|address| address.to_string())), (INSTANCE, instance)];
        for (name, value) in annotations {
            let Some(value) = value else { continue };
            let annotations = metadata_mut(lease).entry("annotations").or_insert_with(|| json!({}));
            annotations[name] = value.into();
        }
        let spec = lease.entry("spec").or_insert_with(|| json!({}));
        spec["holderIdentity"] = self.holder.as_str().into();
        spec["leaseDurationSeconds"] = self.config.duration_seconds.into();
        spec["renewTime"] = now.into();
    }

    fn target(&self) -> Target<'_> {
        Target { resource: &self.resource, namespace: NAMESPACE, name: self.identity.id() }
    }
}

/// The object as stored, from which the next heartbeat starts.
fn stored(answer: Answer) -> Result<ObjectMap, Error> {
    match answer {
        Answer::Stored(object) => Ok(object.to_map()?),
        Answer::Unstored(object) => Ok(object),
    }
}
