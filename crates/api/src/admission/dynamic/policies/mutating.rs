//! MutatingAdmissionPolicy: expressions that users write change objects (`pkg/admission/plugin/policy/mutating`).

mod patch;
mod refusals;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::choice::{Choosing, meets, namespace_of};
use super::policy::{Binding, Bound, InForce, Mutation, Mutations, Policies, Policy};
use super::{directory, in_force, sees};
use crate::admission::configuration::Configuration;
use crate::admission::dynamic::authorize::Asked;
use crate::admission::dynamic::conditions::{Outcome, described};
use crate::admission::dynamic::evaluation::{OUT_OF_BUDGET, Seen};
use crate::admission::dynamic::follow::Index;
use crate::admission::dynamic::matching::{Facts, Matched, closed, converted, has_versions};
use crate::admission::dynamic::reinvocation::Calls;
use crate::admission::{Admission, Attempt, Files, Operation, Verdict};
use crate::codec::managed;
use crate::error::Error;
use crate::long_work::Stretch;
use crate::patch::apply::schema::Schema;
use crate::request::Request;
use crate::schema::names::Gvr;
use crate::{ObjectMap, meta, metadata};
use patch::{Failure, Patch};
use refusals::Refusals;

static CONFIGURATIONS: [Gvr; 2] = [
    Gvr::fixed("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"),
    Gvr::fixed("admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings"),
];

const FROM_FILES: [&str; 2] = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];

pub struct MutatingAdmissionPolicy {
    index: Index<Policies<Mutations>>,
}

impl MutatingAdmissionPolicy {
    pub fn new(configuration: Option<&Configuration>) -> Result<Self, String> {
        let directory = directory(configuration, "MutatingAdmissionPolicyConfiguration")?;
        Ok(Self { index: Index::new(&CONFIGURATIONS).with_files(directory, &FROM_FILES)? })
    }
}

impl Admission for MutatingAdmissionPolicy {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Delete && sees(&self.index, request)
    }

    /// A write requires that nothing has been configured since.
    fn looks(&self, attempt: &Attempt<'_>) -> bool {
        !matches!(in_force(&self.index, attempt), Ok(None))
    }

    fn files(&self) -> Option<&dyn Files> {
        self.index.files()
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        match in_force(&self.index, attempt) {
            Ok(None) => Verdict::Nothing,
            Ok(Some(policies)) => Verdict::Later(Box::pin(mutate(attempt, policies))),
            Err(error) => Verdict::Now(Err(error)),
        }
    }
}

/// A policy that a request meets, with one of its params.
struct Invocation<'p> {
    policy: &'p Policy<Mutations>,
    binding: &'p Binding,
    found: Matched,
    param: Option<ObjectMap>,
}

impl Invocation<'_> {
    /// The key that tells the invocation from others.
    fn key(&self) -> String {
        let of_param = |field| self.param.as_ref().and_then(metadata).map(|own| meta::text(own, field));
        let (namespace, name) = (of_param("namespace"), of_param("name"));
        let (namespace, name) = (namespace.unwrap_or_default(), name.unwrap_or_default());
        format!("{}/{}/{namespace}/{name}", self.policy.name, self.binding.name)
    }
}

async fn mutate(attempt: &mut Attempt<'_>, policies: Arc<InForce<Mutations>>) -> Result<(), Error> {
    let mut refusals = Refusals::default();
    let (facts, invocations) = invocations(attempt, &policies, &mut refusals).await;
    if !invocations.is_empty() {
        let namespace = match invocations.iter().any(|invocation| invocation.policy.sees_namespace) {
            true => namespace_of(attempt.cluster, &facts)?,
            false => None,
        };
        let asked = Arc::new(Asked::about(&facts));
        let mut mutating =
            Mutating { facts, namespace, asked, olds: Vec::new(), stretch: Stretch::default() };
        mutating.all(attempt, &invocations, &mut refusals).await?;
    }
    refusals.conclude(attempt)
}

/// The invocations for a request, found before anything is mutated.
async fn invocations<'a, 'p>(
    attempt: &Attempt<'a>,
    policies: &'p InForce<Mutations>,
    refusals: &mut Refusals,
) -> (Facts<'a>, Vec<Invocation<'p>>) {
    let mut choosing = Choosing::of(attempt);
    let mut invocations = Vec::new();
    for (_, Bound { policy, bindings }) in policies.about(attempt.plural()) {
        let found = match choosing.policy(attempt, policy) {
            Ok(None) => continue,
            Ok(Some(found)) => found,
            Err(why) => {
                refusals.misconfigured(policy, None, &why);
                continue;
            }
        };
        for binding in bindings {
            match choosing.params(attempt, policy, binding).await {
                Ok(params) => invocations.extend(params.into_iter().map(|param| Invocation {
                    policy,
                    binding,
                    found: found.clone(),
                    param,
                })),
                Err(why) => refusals.misconfigured(policy, Some(binding), &why),
            }
        }
    }
    (choosing.facts, invocations)
}

/// The old object in a version, opened or not.
type OldObject<'a> = ((Gvr, bool), Arc<Cow<'a, ObjectMap>>);

/// A request while policies mutate its object.
struct Mutating<'a> {
    facts: Facts<'a>,
    namespace: Option<ObjectMap>,
    asked: Arc<Asked>,
    /// The old object in the versions that policies have matched in so far, opened if the policies see managers.
    olds: Vec<OldObject<'a>>,
    stretch: Stretch,
}

impl<'a> Mutating<'a> {
    async fn all(
        &mut self,
        attempt: &mut Attempt<'a>,
        invocations: &[Invocation<'_>],
        refusals: &mut Refusals,
    ) -> Result<(), Error> {
        let mut calls = attempt.rounds.policies.take().unwrap_or_default();
        calls.begin(attempt.rounds.number, attempt.object.as_ref());
        let mut has_mutated = false;
        for invocation in invocations {
            self.stretch.pause().await;
            has_mutated |= self.one(attempt, invocation, &mut calls, refusals).await?;
        }
        if has_mutated {
            // Upstream repeats policies after every mutation, also after one that has not changed the object.
            calls.object_has_changed();
            attempt.rounds.again |= calls.is_any_due();
        }
        calls.end(attempt.object.as_ref());
        attempt.rounds.policies = Some(calls);
        Ok(())
    }

    /// Whether at least one mutation has been carried out.
    async fn one(
        &mut self,
        attempt: &mut Attempt<'a>,
        invocation: &Invocation<'_>,
        calls: &mut Calls,
        refusals: &mut Refusals,
    ) -> Result<bool, Error> {
        let Invocation { policy, binding, found, .. } = invocation;
        let other = found.other.as_ref().filter(|_| has_versions(self.facts));
        let object = match (&attempt.object, other) {
            (Some(own), Some(other)) => {
                Some(Cow::Owned(converted(attempt.cluster, self.facts.resource, other, own.clone()).await?))
            }
            (own, _) => own.as_ref().map(Cow::Borrowed),
        };
        let old = self.old(attempt, found, policy.sees_managers).await?;
        let request = policy.sees_request.then(|| described(attempt.request, &self.facts, found));
        let seen = Seen {
            object: None,
            old: old.as_deref().map(|old| &**old),
            request: request.as_ref(),
            namespace: self.namespace.as_ref(),
            params: invocation.param.as_ref(),
            asked: Some(&self.asked),
        };
        let shown = shown(object.as_deref(), policy.sees_managers);
        match meets(attempt, policy, Seen { object: shown.as_deref(), ..seen }).await {
            Outcome::Met => {}
            Outcome::Unmet => return Ok(false),
            Outcome::Failed { why, .. } => {
                refusals.failed(policy, binding, &why);
                return Ok(false);
            }
        }
        let key = invocation.key();
        if calls.leaves_out(attempt.rounds.number, &key) {
            return Ok(false);
        }
        let Some(before) = object else { return Ok(false) };
        let mut now: Option<ObjectMap> = None;
        for mutation in &policy.body.list {
            self.stretch.pause().await;
            let began = Instant::now();
            let outcome =
                self.patched(attempt, invocation, mutation, now.as_ref().unwrap_or(&before), seen).await;
            let metrics = &attempt.cluster.runtime.metrics;
            let count = |error| metrics.policy_mutated(&policy.name, &binding.name, error, began.elapsed());
            match outcome {
                Ok(patched) => {
                    count("no_error");
                    now = Some(patched);
                }
                Err(Failure::OfPolicy(why)) => {
                    count(error_type(&why));
                    refusals.failed(policy, binding, &why);
                }
                Err(Failure::OfRequest(error)) => {
                    count("invalid_error");
                    return Err(error);
                }
            }
        }
        let has_mutated = now.is_some();
        if let Some(mut now) = now.filter(|now| *now != *before) {
            calls.object_has_changed();
            attempt.rounds.again = true;
            if let Some(other) = other {
                now = closed(converted(attempt.cluster, other, self.facts.resource, now).await?);
            }
            attempt.replace_object(now);
        }
        if policy.body.is_reinvoked {
            calls.repeat(key);
        }
        Ok(has_mutated)
    }

    async fn patched(
        &self,
        attempt: &Attempt<'_>,
        invocation: &Invocation<'_>,
        mutation: &Mutation,
        object: &ObjectMap,
        seen: Seen<'_>,
    ) -> Result<ObjectMap, Failure> {
        let Invocation { policy, found, .. } = invocation;
        let shown = shown(Some(object), policy.sees_managers);
        let seen = Seen { object: shown.as_deref(), ..seen };
        let mut patch = Patch::of(mutation, policy, seen);
        while self.asked.settle(attempt.request).await {
            patch = Patch::of(mutation, policy, seen);
        }
        let patch = patch.map_err(Failure::OfPolicy)?;
        let kind = &found.kind;
        if !has_versions(self.facts) {
            return patch.apply(object, kind, Schema::of(kind).as_ref());
        }
        let resource = found.other.as_deref().unwrap_or(self.facts.resource);
        patch.apply(object, kind, resource.schema(kind.gvk.api_version()))
    }

    /// The old object in the version in which a policy has matched.
    async fn old(
        &mut self,
        attempt: &Attempt<'a>,
        found: &Matched,
        sees_managers: bool,
    ) -> Result<Option<Arc<Cow<'a, ObjectMap>>>, Error> {
        let Some(old) = attempt.old else { return Ok(None) };
        let version = (found.resource.clone(), sees_managers);
        if let Some((_, known)) = self.olds.iter().find(|(known, _)| *known == version) {
            return Ok(Some(known.clone()));
        }
        let mut old = match found.other.as_ref().filter(|_| has_versions(self.facts)) {
            Some(other) => {
                Cow::Owned(converted(attempt.cluster, self.facts.resource, other, old.clone()).await?)
            }
            None => Cow::Borrowed(old),
        };
        if sees_managers {
            managed::open(old.to_mut());
        }
        let old = Arc::new(old);
        self.olds.push((version, old.clone()));
        Ok(Some(old))
    }
}

/// The object as expressions see it.
fn shown(object: Option<&ObjectMap>, sees_managers: bool) -> Option<Cow<'_, ObjectMap>> {
    object.map(|object| match sees_managers {
        true => Cow::Owned(managed::opened(object)),
        false => Cow::Borrowed(object),
    })
}

/// Upstream's label `error_type`.
fn error_type(why: &str) -> &'static str {
    match why {
        _ if why.starts_with("compilation") => "compile_error",
        _ if why.starts_with(OUT_OF_BUDGET) => "out_of_budget",
        _ => "invalid_error",
    }
}
