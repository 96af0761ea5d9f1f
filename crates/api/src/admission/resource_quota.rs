//! ResourceQuota: refuses what a quota of the namespace does not allow. What is used is counted by `api::quota`, in the
//! transaction of the write, whether this plugin is on or not.

use super::{Admission, Attempt, Operation, Verdict};
use crate::cache::State;
use crate::error::Error;
use crate::quota::evaluator::Evaluator;
use crate::quota::limited::LimitedResources;
use crate::quota::{Checked, JudgedByQuotas, Refusal, check, is_handled};
use crate::request::Request;
use crate::tree::Value;

pub(super) struct ResourceQuota {
    limited: LimitedResources,
}

impl ResourceQuota {
    /// Reads a ResourceQuotaConfiguration.
    pub fn new(content: Option<&Value>) -> Result<Self, String> {
        Ok(Self { limited: LimitedResources::parse(content)? })
    }

    /// Whether Pods of the namespace hold something that the write may need and they may not.
    fn is_helped_by_pods(&self, attempt: &Attempt<'_>) -> bool {
        let evaluator = Evaluator::of(&attempt.target.resource.definition);
        let shares = matches!(evaluator, Some(Evaluator::Pods(_) | Evaluator::ResourceClaims(_)));
        shares && attempt.cluster.has_past_grace(attempt.target.namespace)
    }

    fn judge(&self, attempt: &Attempt<'_>, state: &State) -> Result<JudgedByQuotas, Error> {
        let (target, subresource) = (attempt.target, attempt.request.subresource);
        let (Some(evaluator), Some(new)) = (Evaluator::of(&target.resource.definition), &attempt.object)
        else {
            return Ok(JudgedByQuotas::default());
        };
        if !is_handled(evaluator, subresource, attempt.old, new) {
            return Ok(JudgedByQuotas::default());
        }
        let notes = attempt.cluster.notes(&target.resource.definition, state);
        let evaluator = evaluator.knowing(notes.as_ref());
        let (old, is_status) = (attempt.old, subresource == "status");
        let quotas = attempt.cluster.quotas(state, target.namespace)?;
        let write = Checked { evaluator, old, new, is_status, limited: &self.limited };
        check(write, &quotas).map_err(|refusal| match refusal {
            Refusal::Forbidden(reason) => attempt.refused(reason),
            Refusal::Plain(why) => Error::Unclassified(why),
        })?;
        let quotas = attempt.cluster.seen_quotas(state, target.namespace, quotas);
        Ok(JudgedByQuotas { limited: !is_status, quotas })
    }
}

impl Admission for ResourceQuota {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let Some(evaluator) = Evaluator::of(&request.target.resource.definition) else { return false };
        let (subresource, creates) = (request.subresource, operation == Operation::Create);
        match (evaluator, operation) {
            (_, Operation::Delete | Operation::Connect) => false,
            (Evaluator::Pods(_), Operation::Update) => matches!(subresource, "" | "resize"),
            (Evaluator::Claims, Operation::Update) => matches!(subresource, "" | "status"),
            (Evaluator::Objects(_), _) => creates && subresource.is_empty(),
            _ => subresource.is_empty(),
        }
    }

    /// A write requires the namespace's set of quotas.
    fn looks(&self, _: &Attempt<'_>) -> bool {
        false
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        let namespace = attempt.target.namespace;
        match self.judge(attempt, &cluster.cache.any()) {
            Err(_) if cluster.store.backend().shared() || self.is_helped_by_pods(attempt) => {
                Verdict::OfQuotasLater(Box::pin(async move {
                    let verdict = self.judge(attempt, &*cluster.cache.fresh().await?);
                    let helps = verdict.is_err() && self.is_helped_by_pods(attempt);
                    if helps && cluster.release_past_grace(Some(namespace)).await? {
                        return self.judge(attempt, &*cluster.cache.fresh().await?);
                    }
                    verdict
                }))
            }
            verdict => Verdict::OfQuotas(verdict),
        }
    }
}
