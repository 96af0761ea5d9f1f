//! ResourceQuota: refuses what a quota of the namespace does not allow. What is used is counted by `api::quota`, in the
//! transaction of the write, whether this plugin is on or not.

use std::sync::atomic::Ordering;

use super::{Admission, Attempt, Operation, Verdict};
use crate::api::error::Error;
use crate::api::quota::evaluator::Evaluator;
use crate::api::quota::limited::LimitedResources;
use crate::api::quota::{Checked, Refusal, check, is_handled};
use crate::api::request::Request;
use crate::cache::State;
use crate::tree::Value;

pub(super) struct ResourceQuota {
    limited: LimitedResources,
}

impl ResourceQuota {
    /// Reads a ResourceQuotaConfiguration.
    pub fn new(content: Option<&Value>) -> Result<Self, String> {
        Ok(Self { limited: LimitedResources::parse(content)? })
    }

    fn judge(&self, attempt: &Attempt<'_>, state: &State) -> Result<(), Error> {
        let (target, subresource) = (attempt.target, attempt.request.subresource);
        let (Some(evaluator), Some(new)) = (Evaluator::of(&target.resource.definition), &attempt.object)
        else {
            return Ok(());
        };
        if !is_handled(evaluator, subresource, attempt.old, new) {
            return Ok(());
        }
        let devices = attempt.api.devices(&target.resource.definition, state);
        let evaluator = evaluator.knowing(devices.as_ref());
        let (old, is_status) = (attempt.old, subresource == "status");
        attempt.limited.store(!is_status, Ordering::Relaxed);
        let quotas = attempt.api.quotas(state, target.namespace)?;
        let write = Checked { evaluator, old, new, is_status, limited: &self.limited };
        check(write, &quotas).map_err(|refusal| match refusal {
            Refusal::Forbidden(reason) => attempt.refused(reason),
            Refusal::Plain(why) => Error::Unclassified(why),
        })?;
        if let Some(seen) = attempt.api.seen_quotas(state, target.namespace, quotas) {
            let _ = attempt.quotas.set(seen);
        }
        Ok(())
    }
}

impl Admission for ResourceQuota {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        let Some(evaluator) = Evaluator::of(&request.target.resource.definition) else { return false };
        let (subresource, creates) = (request.subresource, operation == Operation::Create);
        match (evaluator, operation) {
            (_, Operation::Delete | Operation::Connect) => false,
            (Evaluator::Pods, Operation::Update) => matches!(subresource, "" | "resize"),
            (Evaluator::Claims, Operation::Update) => matches!(subresource, "" | "status"),
            (Evaluator::Objects(_), _) => creates && subresource.is_empty(),
            _ => subresource.is_empty(),
        }
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let api = attempt.api;
        match self.judge(attempt, &api.cache.any()) {
            Err(_) if api.store.backend().shared() => Verdict::Later(Box::pin(async move {
                let fresh = api.cache.fresh().await?;
                self.judge(attempt, &fresh)
            })),
            verdict => Verdict::Now(verdict),
        }
    }
}
