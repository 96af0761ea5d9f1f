//! `pods/eviction`: a DELETE that needs the consent of the pod's disruption budget
//! (`pkg/registry/core/pod/storage/eviction.go`).

mod budget;

use std::sync::Arc;

use crate::causes::{Cause, CauseReason};
use crate::decode::{Encoded, sent_kind, typed_object};
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::kinds::core::pod::condition::{self, Condition};
use crate::options::DryRun;
use crate::options::delete::{DeleteOptions, IGNORE_READ_ERROR};
use crate::options::query::Query;
use crate::options::write::WriteOptions;
use crate::request::{Options, Request};
use crate::resource::Resource;
use crate::schema::names::{GroupKind, Gvr};
use crate::schema::resource::Verb;
use crate::storage::Requirement;
use crate::tree::Value;
use crate::warnings::Warnings;
use crate::write::outcome::Outcome;
use crate::write::{Current, Proposal, Write};
use crate::{Answer, Api, ObjectMap, Target, deletion, fields};
use budget::Budget;

/// How often an eviction is tried again because its pod has changed.
const ATTEMPTS: usize = 20;
/// Seconds after which a client should try again if its eviction met a change in progress.
const SOON: u32 = 10;

const TARGET: Condition<'static> = Condition {
    kind: "DisruptionTarget",
    reason: "EvictionByEvictionAPI",
    message: "Eviction API: evicting",
};

impl Api {
    /// Evicts a pod; 429 if its budget does not allow that.
    pub async fn evict(&self, request: &Request<'_>, body: &Encoded) -> Result<(), Error> {
        let pod = request.target;
        let eviction = typed_object(sent_kind(request)?, body, request.strictness())?;
        let mut action = self.complete_action(request, eviction).await?;
        let eviction = action.object_mut()?;
        if fields::text(eviction, &["metadata", "name"]) != pod.name {
            return Err(Error::bad_request("name in URL does not match name in Eviction object"));
        }
        refuse_unread(eviction, pod.name)?;
        let mut delete = match eviction.get("deleteOptions").filter(|options| options.is_object()) {
            Some(options) => DeleteOptions::parse(Some(options), &Query::default())?,
            None => DeleteOptions::default(),
        };
        if request.options.dry_run() == DryRun::Yes {
            delete.dry_run = DryRun::Yes;
        }
        self.admission.validate(&mut action).await?;
        action.settle_requirements();
        let eviction = Eviction { request, requires: action.requires, configured: action.configured };
        match self.evict_unguarded(&eviction, &delete).await? {
            Looked::Evicted => Ok(()),
            Looked::Guarded(found) => self.evict_guarded(&eviction, &found, &delete).await,
        }
    }

    /// Evicts a pod that no budget needs to consent to: one that has finished, or does not run yet.
    async fn evict_unguarded(
        &self,
        eviction: &Eviction<'_>,
        delete: &DeleteOptions,
    ) -> Result<Looked, Error> {
        let pod = eviction.request.target;
        let pinned = delete.preconditions.resource_version.is_some();
        let mut attempt = 1;
        loop {
            let found = pod.resource.decode(&*self.get_newest(pod).await?)?;
            let Some(until) = unguarded(&found) else { return Ok(Looked::Guarded(found)) };
            let mut delete = delete.clone();
            if until == Until::ItStarts && !pinned {
                delete.preconditions.resource_version = Some(revision_of(&found));
            }
            match self.mark_and_delete(eviction, delete).await {
                Err(Error::Conflict { .. }) if !pinned && attempt < ATTEMPTS => attempt += 1,
                done => return done.map(|()| Looked::Evicted),
            }
        }
    }

    async fn evict_guarded(
        &self,
        eviction: &Eviction<'_>,
        found: &ObjectMap,
        delete: &DeleteOptions,
    ) -> Result<(), Error> {
        let pod = eviction.request.target;
        let budgets = self
            .resources
            .get(&Gvr::fixed("policy/v1", "poddisruptionbudgets"))
            .ok_or(Error::UnknownResource)?;
        let state = self.cache.fresh().await?;
        let mut matching = budget::matching(&state, budgets, pod.namespace, found)?;
        let Some(budget) = matching.pop() else {
            return self.mark_and_delete(eviction, delete.clone()).await;
        };
        if !matching.is_empty() {
            let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
            return Err(Error::Unclassified(why.to_owned()));
        }
        if is_ready(found) || !budget.lets_unready_go() {
            self.take_disruption(budgets, pod, &budget, delete.dry_run).await?;
            return self.mark_and_delete(eviction, delete.clone()).await;
        }
        // The deletion requires the version that was checked, since the pod must not have become ready in between.
        let pinned = delete.preconditions.resource_version.is_some();
        let mut delete = delete.clone();
        delete.preconditions.resource_version = Some(revision_of(found));
        match self.mark_and_delete(eviction, delete).await {
            Err(Error::Conflict { .. }) if !pinned => Err(still_processed(budget.name())),
            done => done,
        }
    }

    /// Uses up one of the disruptions that the budget allows.
    async fn take_disruption(
        &self,
        budgets: &Resource,
        pod: Target<'_>,
        budget: &Budget,
        dry_run: DryRun,
    ) -> Result<(), Error> {
        let target = Target { resource: budgets, namespace: pod.namespace, name: budget.name() };
        let options = WriteOptions { dry_run, ..WriteOptions::default() };
        let request = &Request::own(Verb::Update, target).on(Part::Status).with(&options);
        let write = Write::change(request, Part::Status, Some(options.manager()));
        let propose = &mut |found: Option<&Current>| {
            let current = found.ok_or_else(|| target.not_found())?;
            Budget::of(current.object.clone()).disrupted(pod.name, &self.now()).map(Proposal::Object)
        };
        self.modify(write, propose).await.map(drop)
    }

    /// Sets the pod's condition that tells why it is deleted, and deletes it.
    async fn mark_and_delete(&self, eviction: &Eviction<'_>, mut delete: DeleteOptions) -> Result<(), Error> {
        let request = eviction.request;
        fn part_of_action<'a>(request: &'a Request<'a>, eviction: &'a Eviction<'_>) -> Write<'a> {
            let (relies_on, configured) = (&*eviction.requires, eviction.configured.as_ref());
            Write { relies_on, configured, ..Write::part_of_action(request) }
        }
        if delete.dry_run == DryRun::No {
            let pod = request.target;
            let propose = &mut |found: Option<&Current>| {
                let current = &found.ok_or_else(|| pod.not_found())?.object;
                let Resource { definition, behavior, .. } = pod.resource;
                deletion::check(current, &delete.preconditions, definition, &behavior.strategy)?;
                let mut new = current.clone();
                condition::set(fields::object_mut(&mut new, "status"), &TARGET, &self.now());
                Ok(Proposal::Object(new))
            };
            let marking = Request { options: Options::None, warnings: &Warnings::UNREAD, ..*request };
            let write = Write { part: Part::Status, ..part_of_action(&marking, eviction) };
            let modified = self.modify(write, propose).await?;
            if matches!(modified.outcome, Outcome::Deleted(_)) {
                return Ok(());
            }
            if let (Some(pinned), Answer::Stored(marked)) =
                (&mut delete.preconditions.resource_version, &modified.answer)
            {
                *pinned = marked.revision().to_string();
            }
        }
        self.delete_as(part_of_action(&request.with(&delete), eviction)).await.map(drop)
    }
}

/// 422 of an eviction that would delete a Pod which cannot be read.
fn refuse_unread(eviction: &ObjectMap, name: &str) -> Result<(), Error> {
    if fields::at(eviction, &["deleteOptions", IGNORE_READ_ERROR]) != Some(&Value::Bool(true)) {
        return Ok(());
    }
    let field = format!("deleteOptions.{IGNORE_READ_ERROR}");
    let why = "can not be set for pod eviction, try after removing the option";
    let (kind, name) = (GroupKind::new("policy", "Eviction"), name.to_owned());
    Err(Error::Invalid { kind, name, causes: vec![Cause::invalid(&field, true, why)] })
}

/// An eviction that admission has accepted.
struct Eviction<'a> {
    /// The request to the subresource `pods/eviction`.
    request: &'a Request<'a>,
    requires: Vec<Requirement>,
    /// The requirement that the configuration of its admission is unchanged.
    configured: Option<Arc<Requirement>>,
}

/// The result of trying an eviction without a budget.
enum Looked {
    Evicted,
    /// The pod needs the consent of its budgets.
    Guarded(ObjectMap),
}

/// How long the pod needs no budget's consent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// For ever, since the pod has finished.
    Ever,
    ItStarts,
}

fn unguarded(pod: &ObjectMap) -> Option<Until> {
    let terminating = fields::at(pod, &["metadata", "deletionTimestamp"]).is_some_and(Value::is_string);
    match fields::text(pod, &["status", "phase"]) {
        "Succeeded" | "Failed" => Some(Until::Ever),
        _ if terminating => Some(Until::Ever),
        "Pending" => Some(Until::ItStarts),
        _ => None,
    }
}

fn is_ready(pod: &ObjectMap) -> bool {
    let conditions = fields::items(pod, &["status", "conditions"]).iter().filter_map(Value::as_object);
    let mut ready = conditions.filter(|condition| fields::text(condition, &["type"]) == "Ready");
    ready.next().is_some_and(|condition| fields::text(condition, &["status"]) == "True")
}

fn revision_of(object: &ObjectMap) -> String {
    fields::text(object, &["metadata", "resourceVersion"]).to_owned()
}

/// 429 while the budget's controller or another eviction is changing the budget.
fn still_processed(budget: &str) -> Error {
    let message = format!("The disruption budget {budget} is still being processed by the server.");
    Error::Disruption { cause: Cause::new(CauseReason::DisruptionBudget, "", message), retry_after: SOON }
}
