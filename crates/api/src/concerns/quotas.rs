//! Quotas: what an object uses is charged in the transaction that writes it, and the figures of a quota that is written are
//! right when its writer is answered.

use super::{Committed, Concern, Following, ObjectChange};
use crate::effects::Effects;
use crate::error::Error;
use crate::quota::Usage;
use crate::quota::evaluator::Evaluator;
use crate::schema::resource::ResourceDefinition;
use crate::{Cluster, ObjectMap};

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
        let ObjectChange { cluster, target, part, old, .. } = *change;
        let quota = cluster.settle_quota(target, part, new, old);
        let judged = change.quotas.take();
        let limited = judged.as_ref().is_some_and(|judged| judged.limited);
        let usage = Usage { target, old, new: Some(new), part, changes_set: quota.joins(), limited };
        let charged = cluster.metered(usage, judged.and_then(|judged| judged.quotas))?;
        effects.add(quota);
        effects.add(charged);
        Ok(())
    }

    /// The usage of an object that cannot be read is given back when its quotas are counted again.
    fn remove(&self, change: &ObjectChange<'_>, effects: &mut Effects) -> Result<(), Error> {
        let ObjectChange { cluster, target, part, old, .. } = *change;
        let quota = cluster.release_quota(target);
        let changes_set = quota.joins();
        effects.add(quota);
        if old.is_some() {
            let usage = Usage { target, old, new: None, part, changes_set, limited: false };
            effects.add(cluster.metered(usage, None)?);
        }
        Ok(())
    }

    fn committed<'a>(&'a self, cluster: &'a Cluster, written: Committed<'a>) -> Option<Following<'a>> {
        let quota = written.new.filter(|_| cluster.are_quotas(written.target.resource))?;
        Some(Box::pin(cluster.recount_written(written.target.resource, quota)))
    }
}
