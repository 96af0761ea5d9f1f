//! Quotas: what an object uses is charged in the transaction that writes it, and the figures of a quota that is written are
//! right when its writer is answered.

use super::{Committed, Concern, Following, ObjectChange};
use crate::api::effects::Effects;
use crate::api::error::Error;
use crate::api::quota::Usage;
use crate::api::quota::evaluator::Evaluator;
use crate::api::{Api, ObjectMap};
use crate::schema::resource::ResourceDefinition;

pub(super) struct Quotas;

impl Concern for Quotas {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        Evaluator::of(definition).is_some()
    }

    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        new: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        let ObjectChange { api, target, part, old, .. } = *change;
        let quota = api.settle_quota(target, part, new, old);
        let judged = change.quotas.take();
        let limited = judged.as_ref().is_some_and(|judged| judged.limited);
        let usage = Usage { target, old, new: Some(new), part, changes_set: quota.joins(), limited };
        let charged = api.metered(usage, judged.and_then(|judged| judged.quotas))?;
        effects.add(quota);
        effects.add(charged);
        Ok(())
    }

    /// What an object that cannot be read has used is given back when its quotas are counted again.
    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        let ObjectChange { api, target, part, old, .. } = *change;
        let quota = api.release_quota(target);
        if old.is_some() {
            let usage = Usage { target, old, new: None, part, changes_set: quota.joins(), limited: false };
            effects.add(api.metered(usage, None)?);
        }
        effects.add(quota);
        Ok(())
    }

    fn committed<'a>(&'a self, api: &'a Api, written: Committed<'a>) -> Option<Following<'a>> {
        let quota = written.new.filter(|_| api.are_quotas(written.target.resource))?;
        Some(Box::pin(api.recount_written(written.target.resource, quota)))
    }
}
