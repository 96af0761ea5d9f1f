//! Counting again: what a quota's figures lack is added to them as a charge, which writes that happen meanwhile do not
//! disturb.
//!
//! In a state, all objects and the quotas that count them are of one revision, and from the quota's creation on every
//! write charges what it adds. So the difference between the sum and `status.used` is the same in every later state,
//! and can be added at any time.

use std::sync::Arc;

use super::amounts::{Amounts, is_zero};
use super::ledger::Quotas;
use super::{QUOTAS, fields};
use crate::cache::State;
use crate::codec::object::Object;
use crate::error::Error;
use crate::resource::Resource;
use crate::storage::counting::Charge;
use crate::storage::{Key, Written};
use crate::tree::Value;
use crate::{Cluster, Target};

/// How often a correction is tried while others change the set of quotas.
const TRIES: usize = 16;

/// When a quota is written although its figures are right.
#[derive(Clone, Copy)]
enum Correction {
    IfNeeded,
    Always,
}

impl Cluster {
    /// Makes the figures of a quota right that was written. Returns the version that has them, if it is a newer one.
    pub(crate) async fn recount_written(
        &self,
        resource: &Resource,
        written: &Object,
    ) -> Result<Option<Arc<Object>>, Error> {
        // The request for a new quota may not name it; the quota itself does.
        let (namespace, name) = (written.namespace().to_owned(), written.name().to_owned());
        self.cache.at_least(written.revision()).await?;
        self.release_past_grace(Some(&namespace)).await?;
        self.recount(&namespace, &name).await?;
        let newest = self.cache.any().get(resource.id, &namespace, &name);
        Ok(newest.filter(|newest| newest.revision() > written.revision()))
    }

    /// Makes the figures of a quota right if they are not.
    pub async fn recount(&self, namespace: &str, name: &str) -> Result<(), Error> {
        self.correct(namespace, name, Correction::IfNeeded).await
    }

    /// The variant of [`Cluster::recount`] for objects that use something else than before: a write on its way that has charged
    /// what they used before is counted, too, or tried again.
    pub(super) async fn recount_anew(&self, namespace: &str, name: &str) -> Result<(), Error> {
        // It makes the set another one, which writes on their way have not seen. What came before it is in the next state.
        self.correct(namespace, name, Correction::Always).await?;
        self.correct(namespace, name, Correction::IfNeeded).await
    }

    async fn correct(&self, namespace: &str, name: &str, correction: Correction) -> Result<(), Error> {
        let Some(resource) = self.resources.get(&QUOTAS) else { return Ok(()) };
        let target = Target { resource, namespace, name };
        let mut state = self.cache.any();
        for _ in 0..TRIES {
            let drift = match (self.drift(&state, target)?, correction) {
                (Some(drift), _) => drift,
                (None, Correction::Always) if state.get(resource.id, namespace, name).is_some() => {
                    Amounts::default()
                }
                (None, _) => return Ok(()),
            };
            let key = Key::new(resource.id, namespace, name);
            let charge = Charge { key, ledger: &Quotas, amounts: drift.into(), limited: false };
            let written = self.changed_set(&state, namespace).charging(vec![charge]);
            state = match self.store.write(written).await? {
                Written::Committed { revision, .. } => {
                    self.cache.at_least(revision).await?;
                    return Ok(());
                }
                Written::Conflict { judged_at, .. } | Written::Unmet { judged_at } => {
                    self.cache.at_least(judged_at).await?
                }
            };
        }
        Ok(())
    }

    /// The amounts that the figures of a quota lack; `None` if they are right, or if the quota is gone.
    fn drift(&self, state: &State, target: Target<'_>) -> Result<Option<Amounts>, Error> {
        let Some(found) = state.get(target.resource.id, target.namespace, target.name) else {
            return Ok(None);
        };
        let quota = target.resource.decode(&found)?;
        let used = Amounts::of(fields::at(&quota, &["status", "used"]).and_then(Value::as_object));
        let mut drift = self.counted(state, target, &quota, used.iter().map(|(name, _)| name));
        let known: Vec<String> = drift.iter().map(|(name, _)| name.to_owned()).collect();
        drift.subtract(&used);
        drift.retain(|name, amount| !is_zero(amount) && known.iter().any(|own| own == name));
        Ok(Some(drift).filter(|drift| !drift.is_empty()))
    }
}
