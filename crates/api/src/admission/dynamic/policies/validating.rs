//! ValidatingAdmissionPolicy: expressions that users write refuse requests, warn about them, or note something in the audit
//! log (`pkg/admission/plugin/policy/validating`).

mod decide;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use super::choice::{Choosing, meets, namespace_of};
use super::policy::{Binding, Bound, InForce, Policies, Policy, Validations};
use super::{directory, in_force, sees};
use crate::ObjectMap;
use crate::admission::configuration::Configuration;
use crate::admission::dynamic::authorize::Asked;
use crate::admission::dynamic::conditions::{Outcome, described};
use crate::admission::dynamic::evaluation::Seen;
use crate::admission::dynamic::follow::Index;
use crate::admission::dynamic::matching::{Matched, converted, has_versions};
use crate::admission::{Admission, Attempt, Files, Operation, Verdict};
use crate::codec::managed;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::long_work::Stretch;
use crate::request::Request;
use crate::schema::names::{Gvk, Gvr};
use decide::{Decided, Evaluated, Refused};

static CONFIGURATIONS: [Gvr; 2] = [
    Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"),
    Gvr::fixed("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings"),
];

const FROM_FILES: [&str; 2] = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];

pub struct ValidatingAdmissionPolicy {
    index: Index<Policies<Validations>>,
}

impl ValidatingAdmissionPolicy {
    pub fn new(configuration: Option<&Configuration>) -> Result<Self, String> {
        let directory = directory(configuration, "ValidatingAdmissionPolicyConfiguration")?;
        Ok(Self { index: Index::new(&CONFIGURATIONS).with_files(directory, &FROM_FILES)? })
    }
}

impl Admission for ValidatingAdmissionPolicy {
    fn handles(&self, _: Operation, request: &Request<'_>) -> bool {
        sees(&self.index, request)
    }

    /// A write requires that nothing has been configured since.
    fn looks(&self, attempt: &Attempt<'_>) -> bool {
        !matches!(in_force(&self.index, attempt), Ok(None))
    }

    fn files(&self) -> Option<&dyn Files> {
        self.index.files()
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        match in_force(&self.index, attempt) {
            Ok(None) => Verdict::Nothing,
            Ok(Some(policies)) => Verdict::Later(Box::pin(judge(attempt, policies))),
            Err(error) => Verdict::Now(Err(error)),
        }
    }
}

async fn judge(attempt: &Attempt<'_>, policies: Arc<InForce<Validations>>) -> Result<(), Error> {
    let choosing = Choosing::of(attempt);
    let (asked, objects, decided) = (Arc::new(Asked::about(&choosing.facts)), Vec::new(), Decided::default());
    let stretch = Stretch::default();
    let mut judging = Judging { attempt, choosing, asked, objects, namespace: None, decided, stretch };
    for (_, Bound { policy, bindings }) in policies.about(attempt.plural()) {
        judging.policy(policy, bindings).await?;
    }
    let Judging { decided, .. } = judging;
    decided.conclude(attempt)
}

/// A request while policies are evaluated on it.
struct Judging<'a, 'b> {
    attempt: &'a Attempt<'b>,
    choosing: Choosing<'b>,
    asked: Arc<Asked>,
    /// Its objects in the versions that policies have matched in so far.
    objects: Vec<(Gvr, Arc<Objects<'a>>)>,
    /// The request's Namespace, once a policy speaks of it.
    namespace: Option<Option<ObjectMap>>,
    decided: Decided,
    stretch: Stretch,
}

/// The objects of a request in one version, and the request itself, as expressions see them.
struct Objects<'a> {
    object: Option<Cow<'a, ObjectMap>>,
    old: Option<Cow<'a, ObjectMap>>,
    /// Known once a policy speaks of it.
    request: OnceLock<ObjectMap>,
}

impl<'a> Judging<'a, '_> {
    async fn policy(&mut self, policy: &Policy<Validations>, bindings: &[Arc<Binding>]) -> Result<(), Error> {
        let found = match self.choosing.policy(self.attempt, policy) {
            Ok(None) => return Ok(()),
            Ok(Some(found)) => found,
            Err(why) => {
                self.misconfigured(policy, None, &why);
                return Ok(());
            }
        };
        let mut annotations = Vec::new();
        for binding in bindings {
            self.binding(policy, binding, &found, &mut annotations).await?;
        }
        decide::annotate(self.attempt.request, &policy.name, annotations);
        Ok(())
    }

    async fn binding(
        &mut self,
        policy: &Policy<Validations>,
        binding: &Binding,
        found: &Matched,
        annotations: &mut Vec<(String, String)>,
    ) -> Result<(), Error> {
        let params = match self.choosing.params(self.attempt, policy, binding).await {
            Ok(params) => params.into_iter().map(|param| Some(claimed(param?, policy))).collect::<Vec<_>>(),
            Err(why) => {
                self.misconfigured(policy, Some(binding), &why);
                return Ok(());
            }
        };
        if params.is_empty() || strikes(Bug::PolicySkipped) {
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
        if policy.sees_namespace && self.namespace.is_none() {
            self.namespace = Some(namespace_of(self.attempt.cluster, &self.choosing.facts)?);
        }
        let facts = &self.choosing.facts;
        let request = || objects.request.get_or_init(|| described(self.attempt.request, facts, found));
        let request = policy.sees_request.then(request);
        let asked = self.asked.clone();
        for param in &params {
            let seen = Seen {
                object: objects.object.as_deref(),
                old: objects.old.as_deref(),
                request,
                namespace: self.namespace.as_ref().and_then(Option::as_ref),
                params: param.as_ref(),
                asked: Some(&asked),
            };
            match meets(self.attempt, policy, seen).await {
                Outcome::Met => {}
                Outcome::Unmet => {
                    self.stretch.pause().await;
                    continue;
                }
                Outcome::Failed { why, .. } => {
                    self.decided.failed(self.attempt, policy, binding, why);
                    continue;
                }
            }
            self.stretch.pause().await;
            let mut evaluated = Evaluated::of(policy, seen, &mut self.stretch).await;
            while self.asked.settle(self.attempt.request).await {
                evaluated = Evaluated::of(policy, seen, &mut self.stretch).await;
            }
            self.decided.take(self.attempt, policy, binding, evaluated, annotations);
        }
        Ok(())
    }

    fn misconfigured(&mut self, policy: &Policy<Validations>, binding: Option<&Binding>, why: &str) {
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
    async fn objects(
        &mut self,
        policy: &Policy<Validations>,
        found: &Matched,
    ) -> Result<Arc<Objects<'a>>, Error> {
        let (Attempt { cluster, object, old, .. }, facts) = (self.attempt, self.choosing.facts);
        let known = self.objects.iter().find(|(version, _)| *version == found.resource);
        if let Some((_, objects)) = known.filter(|_| !policy.sees_managers) {
            return Ok(objects.clone());
        }
        let convert = async |object: Option<&'a ObjectMap>| match (&found.other, object) {
            (_, None) => Ok(None),
            (Some(other), Some(object)) if has_versions(facts) => {
                let object = Box::pin(converted(cluster, facts.resource, other, object.clone())).await?;
                Ok(Some(Cow::Owned(object)))
            }
            (_, Some(object)) => Ok::<_, Error>(Some(Cow::Borrowed(object))),
        };
        let mut objects = Objects {
            object: convert(object.as_ref()).await?,
            old: convert(*old).await?,
            request: OnceLock::new(),
        };
        if policy.sees_managers {
            for object in [&mut objects.object, &mut objects.old].into_iter().flatten() {
                managed::open(object.to_mut());
            }
            return Ok(Arc::new(objects));
        }
        let objects = Arc::new(objects);
        self.objects.push((found.resource.clone(), objects.clone()));
        Ok(objects)
    }
}

/// A param with the kind that the policy calls it, where it names none itself (upstream's `wrappedParam`; params of
/// mutating policies are not wrapped).
fn claimed(mut param: ObjectMap, policy: &Policy<Validations>) -> ObjectMap {
    if !param.contains_key("kind") {
        param.extend(policy.params.iter().flat_map(Gvk::claims));
    }
    param
}
