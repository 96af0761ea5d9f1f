//! The policies, bindings and params that a request meets.

use std::sync::Arc;
use std::time::Instant;

use super::params;
use super::policy::{Binding, Policy};
use crate::admission::Attempt;
use crate::admission::dynamic::conditions::Outcome;
use crate::admission::dynamic::evaluation::Seen;
use crate::admission::dynamic::matching::{Facts, Matched, stored_namespace};
use crate::error::Error;
use crate::metrics::ConditionSource;
use crate::resource::Resource;
use crate::{Cluster, ObjectMap};

/// A request while policies are found for it.
pub struct Choosing<'a> {
    pub facts: Facts<'a>,
    /// The other versions of its resource, once somebody has asked.
    others: Option<Vec<Arc<Resource>>>,
}

impl<'a> Choosing<'a> {
    pub fn of(attempt: &Attempt<'a>) -> Self {
        Self { facts: Facts::of(attempt), others: None }
    }

    /// The version of the request's resource that a policy is about. The error is one of the policy's configuration.
    pub fn policy<B>(
        &mut self,
        attempt: &Attempt<'_>,
        policy: &Policy<B>,
    ) -> Result<Option<Matched>, String> {
        let Some(matching) = &policy.matching else {
            return Err("policy contained no match constraints, a required field".to_owned());
        };
        let found = matching.matched(attempt, &self.facts, &mut self.others);
        let found = found.map_err(|error| error.to_string())?;
        if let (Some(_), Some(kind)) = (&found, &policy.params) {
            params::resource(attempt.cluster, kind)?;
        }
        Ok(found)
    }

    /// The params of a binding, none if the binding is not about the request; `None` stands for an evaluation without a
    /// param. The error is one of the binding's configuration.
    pub async fn params<B>(
        &mut self,
        attempt: &Attempt<'_>,
        policy: &Policy<B>,
        binding: &Binding,
    ) -> Result<Vec<Option<ObjectMap>>, String> {
        if let Some(matching) = &binding.matching {
            let found = matching.matched(attempt, &self.facts, &mut self.others);
            if found.map_err(|error| error.to_string())?.is_none() {
                return Ok(Vec::new());
            }
        }
        params::of(attempt.cluster, &self.facts, policy.params.as_ref(), binding).await
    }
}

/// The Namespace that a request is in; `None` for what is in none, and for Namespaces themselves.
pub fn namespace_of(cluster: &Cluster, facts: &Facts<'_>) -> Result<Option<ObjectMap>, Error> {
    if facts.is_namespace() || facts.namespace.is_empty() {
        return Ok(None);
    }
    stored_namespace(cluster, facts.namespace).map(Some)
}

/// Whether a policy's conditions are true, which do not see the Namespace.
pub async fn meets<B>(attempt: &Attempt<'_>, policy: &Policy<B>, seen: Seen<'_>) -> Outcome {
    if policy.conditions.is_empty() {
        return Outcome::Met;
    }
    // Upstream's label says so for both kinds of policies.
    let source = ConditionSource {
        name: &policy.name,
        kind: "policy",
        of: "validate",
        operation: attempt.operation.as_str(),
    };
    let metrics = &attempt.cluster.runtime.metrics;
    let (seen, began) = (Seen { namespace: None, ..seen }, Instant::now());
    let mut outcome = policy.conditions.evaluate(seen, &policy.variables);
    if let Some(asked) = seen.asked {
        while asked.settle(attempt.request).await {
            outcome = policy.conditions.evaluate(seen, &policy.variables);
        }
    }
    if outcome != Outcome::Met {
        metrics.conditions_unmet(&source, began.elapsed());
    }
    if let Outcome::Failed { errors, .. } = &outcome {
        metrics.condition_failed(&source, *errors);
    }
    outcome
}
