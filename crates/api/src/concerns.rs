//! Rules of some writes beyond the object: quotas, names of definitions, rights to grant rights.
//!
//! Each concern is one implementation of [`Concern`] in a file of this folder. [`ALL`] lists them in the order in which they
//! are asked; a resource knows from the catalogue which of them its writes concern, so that an ordinary object pays for one or
//! two. The pipeline of a write ([`crate::write`]) names none of them.

mod aggregated_roles;
mod certificate_durations;
mod claim_status;
mod configuration;
mod custom_objects;
mod definitions;
mod device_classes;
mod escalation;
mod namespace_contents;
mod params;
mod policy_types;
mod quotas;
mod services;
mod signing;

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::admission::{Attempt, Verdict};
use crate::codec::object::Object;
use crate::effects::Effects;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::options::DryRun;
use crate::quota::JudgedByQuotas;
use crate::request::Request;
use crate::resource::{ConcernSet, Resource};
use crate::revision::Revision;
use crate::schema::resource::ResourceDefinition;
use crate::services::Allocation;
use crate::storage::{self, Requirement, Written};
use crate::{Cluster, ObjectMap, Target};

/// All concerns. Those that change the object come before those that count what it uses.
static ALL: [&dyn Concern; 14] = [
    &custom_objects::CustomObjects,
    &claim_status::ClaimStatus,
    &services::Services,
    &escalation::Escalation,
    &signing::Signing,
    &params::Params,
    &policy_types::PolicyTypes,
    &definitions::Definitions,
    &quotas::Quotas,
    &aggregated_roles::AggregatedRoles,
    &namespace_contents::NamespaceContents,
    &device_classes::DeviceClasses,
    &certificate_durations::CertificateDurations,
    &configuration::Configuration,
];

/// Rules for the writes of some resources. A write that loses a race is tried again, and its concerns are asked again.
pub(super) trait Concern: Sync {
    /// Whether writes of the resource concern it. Asked once, when the catalogue makes the resource.
    fn sees(&self, definition: &ResourceDefinition) -> bool;

    /// Whether the request needs more than its own right or does something before its commit, so that it has to be certain
    /// that the user may make it ([`Request::confirm`]).
    fn needs_confirmed_right(&self, _: &Request<'_>) -> bool {
        false
    }

    /// Judges the object as plugins have completed it, before the kind's rules.
    fn completed<'a>(&'a self, _: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Nothing
    }

    /// Judges the object after the kind's rules, whose verdict is `valid`. The answer takes the place of that verdict.
    fn judge<'a>(&'a self, _: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        Verdict::Now(valid)
    }

    /// Brings up to date what the server itself keeps in an admitted object, and adds the effects of its write.
    fn settle(&self, _: &mut ObjectChange<'_>, _: &mut ObjectMap, _: &mut Effects) -> Result<(), Error> {
        Ok(())
    }

    /// Adds the effects of a write that removes the object. [`ObjectChange::old`] is `None` if the object cannot be read.
    fn remove(&self, _: &ObjectChange<'_>, _: &mut Effects) -> Result<(), Error> {
        Ok(())
    }

    /// Reserves rows that the object needs, and puts them into it. The only hook that writes before the commit; a dry run
    /// reserves nothing. At most one concern of a resource reserves anything.
    fn reserve<'a>(
        &'a self,
        _: &'a ObjectChange<'a>,
        _: &'a mut ObjectMap,
        _: DryRun,
    ) -> Option<Reserving<'a>> {
        None
    }

    /// Follows a commit before the writer is answered. Returns a newer version of the object, if the writer is to see it.
    fn committed<'a>(&'a self, _: &'a Cluster, _: Committed<'a>) -> Option<Following<'a>> {
        None
    }

    /// Whether of several writes at the same time only one passes, so that losing is no reason to give up.
    fn is_contended(&self) -> bool {
        false
    }

    /// Prepares another attempt after a requirement of the commit has failed, as seen at this revision.
    fn unmet<'a>(&'a self, _: &'a Cluster, _: Target<'a>, _: Revision) -> Verdict<'a> {
        Verdict::Nothing
    }
}

pub(super) type Reserving<'a> = BoxFuture<'a, Result<Option<Allocation>, Error>>;
pub(super) type Following<'a> = BoxFuture<'a, Result<Option<Arc<Object>>, Error>>;

/// An object that the kind's rules have judged.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub attempt: &'a Attempt<'a>,
    pub part: Part,
    pub new: &'a ObjectMap,
    pub old: Option<&'a ObjectMap>,
}

/// A change of an object that has been admitted, or its removal.
pub(super) struct ObjectChange<'a> {
    pub cluster: &'a Cluster,
    pub target: Target<'a>,
    pub part: Part,
    /// The object before, in the version of the request.
    pub old: Option<&'a ObjectMap>,
    /// The object before, as it is stored.
    pub stored: Option<&'a Object>,
    /// The quotas that have judged the change.
    pub quotas: Option<JudgedByQuotas>,
}

/// A write that has been committed, or that found nothing to change.
#[derive(Clone, Copy)]
pub(super) struct Committed<'a> {
    pub target: Target<'a>,
    pub part: Part,
    /// The version that was replaced or removed.
    pub old: Option<&'a Object>,
    /// The version that is stored now; `None` if the object is gone.
    pub new: Option<&'a Object>,
}

/// The concerns of a resource's writes.
pub fn of_definition(definition: &ResourceDefinition) -> ConcernSet {
    ALL.iter().map(|concern| concern.sees(definition)).collect()
}

fn of(resource: &Resource) -> impl Iterator<Item = &'static dyn Concern> + use<> {
    resource.concerns.places().map(|place| ALL[place])
}

/// [`Concern::needs_confirmed_right`] of any concern.
pub(super) fn need_confirmed_right(request: &Request<'_>) -> bool {
    of(request.target.resource).any(|concern| concern.needs_confirmed_right(request))
}

/// [`Concern::completed`] of all.
pub(super) async fn completed(attempt: &Attempt<'_>) -> Result<(), Error> {
    for concern in of(attempt.request.target.resource) {
        concern.completed(attempt).decided().await?;
    }
    Ok(())
}

/// [`Concern::judge`] of all, each with the verdict of the one before it.
pub(super) async fn judge(judged: Judged<'_>, valid: Result<(), Error>) -> Result<(), Error> {
    let mut verdict = valid;
    for concern in of(judged.attempt.request.target.resource) {
        verdict = concern.judge(judged, verdict).decided().await.map(drop);
    }
    verdict
}

/// [`Concern::settle`] of all.
pub(super) fn settle(
    change: &mut ObjectChange<'_>,
    object: &mut ObjectMap,
    effects: &mut Effects,
) -> Result<(), Error> {
    of(change.target.resource).try_for_each(|concern| concern.settle(change, object, effects))
}

/// Effects of a removal: those that are preconditions of it already, and [`Concern::remove`] of all.
pub(super) fn remove(change: &ObjectChange<'_>, preconditions: Effects) -> Result<Effects, Error> {
    let mut effects = preconditions;
    of(change.target.resource).try_for_each(|concern| concern.remove(change, &mut effects))?;
    Ok(effects)
}

/// A reservation of the concern that has made it, until the outcome of the write is known.
#[derive(Default)]
pub(super) struct Reserved(Option<Allocation>);

/// [`Concern::reserve`] of the one that reserves.
pub(super) async fn reserve(
    change: &ObjectChange<'_>,
    object: &mut ObjectMap,
    dry_run: DryRun,
) -> Result<Reserved, Error> {
    for concern in of(change.target.resource) {
        if let Some(reserving) = concern.reserve(change, object, dry_run) {
            return reserving.await.map(Reserved);
        }
    }
    Ok(Reserved::default())
}

impl Reserved {
    pub fn requires(&self) -> impl Iterator<Item = Requirement> + use<> {
        self.0.as_ref().map(Allocation::requires).into_iter().flatten()
    }

    /// Releases what is not needed any more, by the outcome of the write.
    pub async fn settle(
        self,
        cluster: &Cluster,
        target: Target<'_>,
        written: Option<&Result<Written, storage::Error>>,
    ) {
        let Some(allocation) = self.0 else { return };
        match written {
            Some(written) => Box::pin(cluster.settle(target, allocation, written)).await,
            None => Box::pin(cluster.give_back(target, allocation)).await,
        }
    }
}

/// [`Concern::committed`] of all. Returns the newest version that any of them wants to be answered.
pub(super) async fn committed(
    cluster: &Cluster,
    written: Committed<'_>,
) -> Result<Option<Arc<Object>>, Error> {
    let mut newer = None;
    for concern in of(written.target.resource) {
        if let Some(following) = concern.committed(cluster, written) {
            newer = following.await.map_err(Error::behind_the_write)?.or(newer);
        }
    }
    Ok(newer)
}

/// [`Concern::is_contended`] of any concern.
pub(super) fn are_contended(resource: &Resource) -> bool {
    of(resource).any(|concern| concern.is_contended())
}

/// [`Concern::unmet`] of all.
pub(super) async fn unmet(cluster: &Cluster, target: Target<'_>, judged_at: Revision) -> Result<(), Error> {
    for concern in of(target.resource) {
        concern.unmet(cluster, target, judged_at).decided().await?;
    }
    Ok(())
}
