//! MutatingAdmissionWebhook and ValidatingAdmissionWebhook: webhooks that users configure see writes, and may change or
//! refuse them.

mod call;
mod claimed;
mod client;
mod configuration;
mod credentials;
mod mutating;
mod review;
mod validating;

use std::sync::Arc;
use std::time::Instant;

use super::authorize::Asked;
use super::by_resource;
use super::conditions::{Outcome, described};
use super::evaluation::Seen;
use super::follow::Index;
use super::matching::{Facts, Matched, converted, has_versions, matched};
use crate::admission::Attempt;
use crate::codec::managed;
use crate::error::Error;
use crate::followers::configured::GROUP;
use crate::long_work::Stretch;
use crate::metrics::ConditionSource;
use crate::request::{Hooks, Request};
use crate::resource::Resource;
use crate::{Cluster, ObjectMap};
use claimed::Unsaid;
use configuration::{Configurations, FailurePolicy, Hook};
use review::Payload;

pub(in crate::admission) use mutating::MutatingAdmissionWebhook;
pub(in crate::admission) use validating::ValidatingAdmissionWebhook;

/// Whether webhooks may see a request. Of what configures admission only webhooks of files are told, so that a stored webhook
/// that refuses everything can be removed.
fn sees(index: &Index<Configurations>, request: &Request<'_>) -> bool {
    request.hooks == Hooks::See && (!configures(request) || index.files().is_some())
}

fn configures(request: &Request<'_>) -> bool {
    request.target.resource.definition.group().as_str() == GROUP
}

/// All webhooks, if one of them may see a request.
fn in_force(
    index: &Index<Configurations>,
    attempt: &Attempt<'_>,
) -> Result<Option<configuration::Hooks>, Error> {
    by_resource::in_force(index, attempt, configures(attempt.request))
}

/// A request while webhooks are found for it.
struct Matching<'a> {
    cluster: &'a Cluster,
    request: &'a Request<'a>,
    facts: Facts<'a>,
    /// The other versions of its resource, once somebody has asked.
    others: Option<Vec<Arc<Resource>>>,
    /// Upstream's label `type`.
    kind: &'static str,
    unsaid: Unsaid,
    stretch: Stretch,
}

impl<'a> Matching<'a> {
    fn new(attempt: &Attempt<'a>, kind: &'static str) -> Self {
        let facts = Facts::of(attempt);
        Self {
            cluster: attempt.cluster,
            request: attempt.request,
            facts,
            others: None,
            kind,
            unsaid: Unsaid::default(),
            stretch: Stretch::default(),
        }
    }

    /// The version in which a webhook wants to see the request; `None` if it is not called.
    async fn version_for(&mut self, hook: &Hook, attempt: &Attempt<'_>) -> Result<Option<Matched>, Error> {
        // An error counts only for a webhook that would be called otherwise.
        let namespace = hook.namespaces.select_namespace(attempt, &self.facts);
        if matches!(namespace, Ok(false)) {
            return Ok(None);
        }
        let object = hook.objects.select_object(attempt.object.as_ref(), attempt.old);
        if matches!(object, Ok(false)) {
            return Ok(None);
        }
        let found = matched(&hook.rules, hook.is_equivalent, &self.facts, &mut self.others, self.cluster);
        let Some(found) = found else { return Ok(None) };
        namespace.and(object)?;
        if !hook.conditions.is_empty() {
            self.stretch.pause().await;
            self.unsaid.is_wanted_in(&found.kind);
        }
        match hook.conditions.is_empty() || self.meets(hook, &found, attempt).await? {
            true => Ok(Some(found)),
            false => Ok(None),
        }
    }

    async fn meets(&self, hook: &Hook, found: &Matched, attempt: &Attempt<'_>) -> Result<bool, Error> {
        let (mut object, mut old) = self.objects(found, attempt).await?;
        if hook.conditions.sees_managers {
            [&mut object, &mut old].into_iter().flatten().for_each(managed::open);
        }
        let request = described(self.request, &self.facts, found);
        let (object, old) = (object.as_ref(), old.as_ref());
        let (asked, began) = (Arc::new(Asked::about(&self.facts)), Instant::now());
        let seen = Seen { object, old, request: Some(&request), asked: Some(&asked), ..Seen::default() };
        let mut outcome = hook.conditions.evaluate(seen, &[]);
        while asked.settle(self.request).await {
            outcome = hook.conditions.evaluate(seen, &[]);
        }
        let source = ConditionSource {
            name: &hook.name,
            kind: "webhook",
            of: self.kind,
            operation: self.facts.operation.as_str(),
        };
        let metrics = &self.cluster.runtime.metrics;
        if outcome != Outcome::Met {
            metrics.conditions_unmet(&source, began.elapsed());
        }
        match outcome {
            Outcome::Met => Ok(true),
            Outcome::Unmet => {
                metrics.condition_excluded(&source);
                Ok(false)
            }
            Outcome::Failed { errors, why } => {
                metrics.condition_failed(&source, errors);
                match hook.on_failure {
                    FailurePolicy::Ignore => {
                        metrics.condition_excluded(&source);
                        Ok(false)
                    }
                    FailurePolicy::Fail => Err(Error::Forbidden {
                        resource: self.facts.resource.group_resource(),
                        name: self.facts.name.to_owned(),
                        reason: why,
                    }),
                }
            }
        }
    }

    /// New and old object in the version that a webhook wants.
    async fn objects(
        &self,
        found: &Matched,
        attempt: &Attempt<'_>,
    ) -> Result<(Option<ObjectMap>, Option<ObjectMap>), Error> {
        let convert = async |object: Option<&ObjectMap>| match (&found.other, object) {
            (_, None) => Ok(None),
            (Some(other), Some(object)) if has_versions(self.facts) => {
                Box::pin(converted(self.cluster, self.facts.resource, other, object.clone())).await.map(Some)
            }
            (_, Some(object)) => Ok(Some(object.clone())),
        };
        let (mut object, old) = (convert(attempt.object.as_ref()).await?, convert(attempt.old).await?);
        object.iter_mut().for_each(|object| self.unsaid.take_from(object));
        Ok((object, old))
    }

    /// The payload for a webhook, in the version that it wants.
    async fn payload(&self, found: &Matched, attempt: &Attempt<'_>) -> Result<Payload, Error> {
        let request = described(self.request, &self.facts, found);
        if found.other.is_none() && self.unsaid.is_like(&Unsaid::default()) {
            let (object, old) = (attempt.object.as_ref(), attempt.old);
            return Ok(Payload::new(&request, &found.kind, object, old));
        }
        let (object, old) = self.objects(found, attempt).await?;
        Ok(Payload::new(&request, &found.kind, object.as_ref(), old.as_ref()))
    }
}
