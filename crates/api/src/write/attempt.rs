//! One attempt at a write: everything before the store, in the only order there is.

use std::time::Instant;

use super::rescale::{Owners, Rescale, Scaled};
use super::{Current, Next, Proposal, Propose, Ready, Write, given_name, update};
use crate::admission::{Attempt, Operation};
use crate::concerns::{self, Judged, ObjectChange};
use crate::effects::Effects;
use crate::error::Error;
use crate::mutation::new_object::{self};
use crate::schema::resource::Verb;
use crate::{Api, ObjectMap, scale};

impl Api {
    /// Does everything before the store, in the only order there is.
    pub(crate) async fn attempt(
        &self,
        write: Write<'_>,
        propose: &mut Propose<'_>,
        found: Option<&Current>,
    ) -> Result<Ready, Error> {
        match self.proposed(write, propose, found).await? {
            Proposal::Object(object) => self.attempt_object(write, object, None, found).await,
            Proposal::Scale(Rescale { scale, owners }) => {
                let found = found.ok_or_else(|| write.request.target.not_found())?;
                self.attempt_object(write, scale, Some(owners), Some(found)).await
            }
            Proposal::Nothing => {
                let effects = Effects::default();
                Ok(Ready { next: Next::Unchanged, effects, naming: None, advised: false })
            }
            Proposal::Decided(next) => {
                let effects = self.admit_deletion(write, found.map(|found| &found.object)).await?;
                Ok(Ready { next, effects, naming: None, advised: false })
            }
        }
    }

    /// The proposal of a verb; where a webhook converts, an apply learns from it what other managers own.
    async fn proposed(
        &self,
        write: Write<'_>,
        propose: &mut Propose<'_>,
        found: Option<&Current>,
    ) -> Result<Proposal, Error> {
        let Some(conversions) = found.and_then(|found| found.conversions.as_deref()) else {
            return propose(found);
        };
        let resource = write.request.target.resource;
        let proposal = self.converter.with_conversions(resource, conversions, || propose(found)).await;
        conversions.failure().map_or(proposal, Err)
    }

    /// The variant of [`Write::begin`] that asks a webhook for conversions. The fields of managers whose version cannot
    /// be had stay as they are.
    async fn begun(
        &self,
        write: Write<'_>,
        object: ObjectMap,
        found: Option<&Current>,
        now: &str,
    ) -> Result<ObjectMap, Error> {
        let Some(conversions) = found.and_then(|found| found.conversions.as_deref()) else {
            return write.begin(object, found, now);
        };
        let begin = || write.begin(object.clone(), found, now);
        self.converter.with_conversions(write.request.target.resource, conversions, begin).await
    }

    /// `owners` is set if the object is a Scale: plugins see the Scale, and the kind's rules its parent.
    async fn attempt_object(
        &self,
        write: Write<'_>,
        object: ObjectMap,
        owners: Option<Owners>,
        found: Option<&Current>,
    ) -> Result<Ready, Error> {
        let (request, resource, now) = (write.request, write.request.target.resource, self.now());
        if request.is_foreseen() && concerns::need_confirmed_right(request) {
            Box::pin(request.confirm()).await?;
        }
        let mut object = self.begun(write, object, found, &now).await?;
        let scaled =
            owners.zip(found).map(|(owners, found)| Scaled::new(request, owners, found, &mut object, &now));
        let scaled = scaled.transpose()?;
        let given = found.is_none().then(|| given_name(&object));
        let mut attempt = write.attempted(self, object, (found, scaled.as_ref()), given.as_ref());
        write.mutate(self, &mut attempt).await?;
        attempt.old = scaled.as_ref().map(|scaled| &scaled.before).or(attempt.old);
        attempt.settle_rewritten()?;
        concerns::completed(&attempt).await?;
        let mut object = attempt.take_object()?;
        write.refuse_another_name(&object, found)?;
        let naming = found.is_none().then(|| new_object::stamp(self, resource, &mut object, &now));
        attempt.target = write.target(naming.as_ref());
        if let (Some(scaled), Some(found)) = (&scaled, found) {
            object = scaled.parent(request.target, &object, &found.object, &now)?;
        }
        write.prepare(&mut object, found, &now)?;
        self.judge(write, &attempt, &object, found).await?;
        let (shown, parent) = match &scaled {
            Some(_) => (scale::of(resource, &object)?, Some(object)),
            None => (object, None),
        };
        attempt.object = Some(shown);
        write.admit_as(self, &mut attempt, given.as_ref()).await?;
        let object = parent.map_or_else(|| attempt.take_object(), Ok)?;
        let (next, effects) = self.with_effects(write, attempt, object, found)?;
        Ok(Ready { next, effects, naming, advised: true })
    }

    /// Asks the kind's rules and the concerns, and for the right to create what an update or a patch makes.
    async fn judge(
        &self,
        write: Write<'_>,
        attempt: &Attempt<'_>,
        object: &ObjectMap,
        found: Option<&Current>,
    ) -> Result<(), Error> {
        let (request, old) = (write.request, found.map(|found| &found.object));
        let valid = write.validate(self, attempt.target.name, object, found).await;
        concerns::judge(Judged { attempt, part: write.part, new: object, old }, valid).await?;
        if found.is_none() && request.verb != Verb::Create {
            request.authorize(Verb::Create).await?;
        }
        Ok(())
    }

    /// Brings up to date what the server itself keeps in an admitted object, and collects the effects of its write.
    fn with_effects(
        &self,
        write: Write<'_>,
        mut attempt: Attempt<'_>,
        mut object: ObjectMap,
        found: Option<&Current>,
    ) -> Result<(Next, Effects), Error> {
        let mut change = ObjectChange {
            cluster: self,
            target: attempt.target,
            part: write.part,
            old: found.map(|found| &found.object),
            stored: found.map(|found| &*found.stored),
            quotas: attempt.quotas.take(),
        };
        let mut effects = write.effects_of(attempt);
        concerns::settle(&mut change, &mut object, &mut effects)?;
        let Some(found) = found else { return Ok((Next::Put(object), effects)) };
        let unchanged = effects.writes_unchanged().then(|| object.clone());
        let began = Instant::now();
        let (next, compared) = update::next(write.request.target.resource, object, &found.object);
        self.runtime.metrics.objects.compared(compared, began.elapsed());
        let next = match (next, unchanged) {
            (Next::Unchanged, Some(object)) => Next::Put(object),
            (next, _) => next,
        };
        Ok((next, effects))
    }

    /// Asks plugins about a deletion; `old` is `None` if the object cannot be read.
    pub(crate) async fn admit_deletion(
        &self,
        write: Write<'_>,
        old: Option<&ObjectMap>,
    ) -> Result<Effects, Error> {
        let mut attempt = Attempt::new(self, write.request, Operation::Delete, old);
        write.mutate(self, &mut attempt).await?;
        write.admit(self, &mut attempt).await?;
        Ok(write.effects_of(attempt))
    }
}
