//! ValidatingAdmissionPolicy: expressions that users write refuse requests, warn about them, or note something in the audit
//! log (`pkg/admission/plugin/policy/validating`).

mod decide;
mod params;
mod policy;

use std::sync::Arc;

use super::authorize::Asked;
use super::conditions::{Outcome, described};
use super::evaluation::Seen;
use super::follow::Index;
use super::matching::{Facts, Matched, converted, has_versions, stored_namespace};
use super::{Admission, Attempt, Operation, Verdict};
use crate::api::ObjectMap;
use crate::api::error::Error;
use crate::api::request::{Hooks, Request};
use crate::api::resource::Resource;
use crate::codec::managed;
use crate::metrics::ConditionSource;
use crate::schema::names::Gvr;
use decide::{Decided, Evaluated, Refused};
use policy::{Binding, Bound, Policies, Policy};

static CONFIGURATIONS: [Gvr; 2] = [
    Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
];
/// Policies do not see policies and their bindings.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

pub struct ValidatingAdmissionPolicy {
    index: Index<Policies>,
}

impl ValidatingAdmissionPolicy {
    pub fn new() -> Self {
        Self { index: Index::new(&CONFIGURATIONS) }
    }
}

impl Admission for ValidatingAdmissionPolicy {
    fn handles(&self, _: Operation, request: &Request<'_>) -> bool {
        let definition = &request.target.resource.definition;
        let is_exempt = definition.group().as_str() == "admissionregistration.k8s.io"
            && EXEMPT.contains(&definition.plural.as_str());
        request.hooks == Hooks::See && !is_exempt
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match self.index.newest(attempt.api) {
            Ok(None) => Verdict::Nothing,
            Ok(Some(policies)) => Verdict::Later(Box::pin(judge(attempt, policies))),
            Err(error) => Verdict::Now(Err(error)),
        }
    }
}

async fn judge(attempt: &Attempt<'_>, policies: Arc<[Bound]>) -> Result<(), Error> {
    let facts = Facts::of(attempt);
    let (asked, objects, decided) = (Arc::new(Asked::about(&facts)), Vec::new(), Decided::default());
    let mut judging = Judging { attempt, facts, others: None, asked, objects, decided };
    for Bound { policy, bindings } in &*policies {
        judging.policy(policy, bindings).await?;
    }
    let Judging { decided, .. } = judging;
    decided.conclude(attempt)
}

/// A request while policies are evaluated on it.
struct Judging<'a, 'b> {
    attempt: &'a Attempt<'b>,
    facts: Facts<'a>,
    /// The other versions of its resource, once somebody has asked.
    others: Option<Vec<Arc<Resource>>>,
    asked: Arc<Asked>,
    /// Its objects in the versions that policies have matched in so far.
    objects: Vec<(Gvr, Arc<Objects>)>,
    decided: Decided,
}

/// The objects of a request in one version, and the request itself, as expressions see them.
struct Objects {
    object: Option<ObjectMap>,
    old: Option<ObjectMap>,
    request: ObjectMap,
}

impl Judging<'_, '_> {
    async fn policy(&mut self, policy: &Policy, bindings: &[Arc<Binding>]) -> Result<(), Error> {
        let found = match &policy.matching {
            None => Err("policy contained no match constraints, a required field".to_owned()),
            Some(matching) => matching
                .matched(self.attempt, &self.facts, &mut self.others)
                .map_err(|error| error.to_string()),
        };
        let found = match found {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => found,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        if let Some(kind) = &policy.params
            && let Err(why) = params::resource(self.attempt.api, kind)
        {
            self.misconfigured(policy, None, &why);
            return Ok(());
        }
        let mut annotations = Vec::new();
        for binding in bindings {
            self.binding(policy, binding, &found, &mut annotations).await?;
        }
        decide::annotate(self.attempt.request, &policy.name, annotations);
        Ok(())
    }

    async fn binding(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        found: &Matched,
        annotations: &mut Vec<(String, String)>,
    ) -> Result<(), Error> {
        if let Some(matching) = &binding.matching {
            match matching.matched(self.attempt, &self.facts, &mut self.others) {
                Ok(Some(_)) => {}
                Ok(None) => return Ok(()),
                Err(error) => {
                    self.misconfigured(policy, Some(binding), &error.to_string());
                    return Ok(());
                }
            }
        }
        let params = params::of(self.attempt.api, &self.facts, policy, binding).await;
        let params = match params {
            Ok(params) => params,
            Err(why) => {
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        if params.is_empty() {
            return Ok(());
        }
        let objects = match self.objects(policy, found).await {
            Ok(objects) => objects,
            Err(error) => {
                let why = format!("failed to convert object version: {error}");
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        let (namespace, asked) = (self.namespace()?, self.asked.clone());
        for param in &params {
            let seen = Seen {
                object: objects.object.as_ref(),
                old: objects.old.as_ref(),
                request: Some(&objects.request),
                namespace: namespace.as_ref(),
                params: param.as_ref(),
                asked: Some(&asked),
            };
            if self.meets(policy, binding, seen).await {
                let mut evaluated = Evaluated::of(policy, seen);
                while self.asked.settle(self.attempt.request).await {
                    evaluated = Evaluated::of(policy, seen);
                }
                self.decided.take(self.attempt, policy, binding, evaluated, annotations);
            }
        }
        Ok(())
    }

    /// Whether the policy's conditions are true. If they cannot be evaluated, that is a decision.
    async fn meets(&mut self, policy: &Policy, binding: &Binding, seen: Seen<'_>) -> bool {
        if policy.conditions.is_empty() {
            return true;
        }
        let source = ConditionSource {
            name: &policy.name,
            kind: "policy",
            of: "validate",
            operation: self.facts.operation.as_str(),
        };
        let metrics = &self.attempt.api.runtime.metrics;
        let seen = Seen { namespace: None, ..seen };
        let mut outcome = policy.conditions.evaluate(seen, &policy.variables);
        while self.asked.settle(self.attempt.request).await {
            outcome = policy.conditions.evaluate(seen, &policy.variables);
        }
        match outcome {
            Outcome::Met => true,
            Outcome::Unmet => {
                metrics.condition_excluded(&source);
                false
            }
            Outcome::Failed { errors, why } => {
                metrics.condition_failed(&source, errors);
                self.decided.failed(self.attempt, policy, binding, why);
                false
            }
        }
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, why: &str) {
        if !policy.fails_closed {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.decided.refuse(Refused {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message: format!("failed to configure {what}: {why}"),
            reason: String::new(),
        });
    }

    /// The request's objects in the version in which a policy has matched.
    async fn objects(&mut self, policy: &Policy, found: &Matched) -> Result<Arc<Objects>, Error> {
        let Attempt { api, request, object, old, .. } = self.attempt;
        let known = self.objects.iter().find(|(version, _)| *version == found.resource);
        if let Some((_, objects)) = known.filter(|_| !policy.sees_managers) {
            return Ok(objects.clone());
        }
        let convert = async |object: Option<&ObjectMap>| match (&found.other, object) {
            (_, None) => Ok(None),
            (Some(other), Some(object)) if has_versions(self.facts) => {
                Box::pin(converted(api, self.facts.resource, other, object.clone())).await.map(Some)
            }
            (_, Some(object)) => Ok(Some(object.clone())),
        };
        let mut objects = Objects {
            object: convert(object.as_ref()).await?,
            old: convert(*old).await?,
            request: described(request, &self.facts, found),
        };
        if policy.sees_managers {
            [&mut objects.object, &mut objects.old].into_iter().flatten().for_each(managed::open);
            return Ok(Arc::new(objects));
        }
        let objects = Arc::new(objects);
        self.objects.push((found.resource.clone(), objects.clone()));
        Ok(objects)
    }

    /// The Namespace that the request is in; `None` for what is in none, and for Namespaces themselves.
    fn namespace(&self) -> Result<Option<ObjectMap>, Error> {
        if self.facts.is_namespace() || self.facts.namespace.is_empty() {
            return Ok(None);
        }
        stored_namespace(self.attempt.api, self.facts.namespace).map(Some)
    }
}
