//! Custom objects: each is judged by a definition, which has to mean the same at the commit.

use super::{Concern, Judged, ObjectChange};
use crate::admission::Verdict;
use crate::effects::Effects;
use crate::error::Error;
use crate::revision::Revision;
use crate::schema::resource::ResourceDefinition;
use crate::{Cluster, ObjectMap, Target};

pub(super) struct CustomObjects;

impl Concern for CustomObjects {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        definition.is_custom()
    }

    /// 403 of a new object while its definition is being deleted.
    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, old, .. } = judged;
        let target = attempt.target;
        let ends =
            target.resource.custom.as_ref().is_some_and(|custom| custom.version.definition.is_terminating);
        Verdict::Now(valid.and_then(|()| match old {
            None if ends => {
                Err(target.forbidden("create not allowed while custom resource definition is terminating"))
            }
            _ => Ok(()),
        }))
    }

    /// An object that is stored otherwise than it would be now is written even if nothing of it changes.
    fn settle(
        &self,
        change: &mut ObjectChange<'_>,
        _: &mut ObjectMap,
        effects: &mut Effects,
    ) -> Result<(), Error> {
        if let Some(custom) = &change.target.resource.custom {
            effects.require([custom.requirement()]);
            if change.stored.is_some_and(|stored| !custom.is_stored_as_now(stored)) {
                effects.write_unchanged();
            }
        }
        Ok(())
    }

    /// An error that lets the client try again, if the definition has another meaning now.
    fn unmet<'a>(&'a self, cluster: &'a Cluster, target: Target<'a>, judged_at: Revision) -> Verdict<'a> {
        Verdict::Later(Box::pin(async move {
            cluster.cache.at_least(judged_at).await?;
            cluster.follow_definitions().await?;
            cluster.check_current(target)
        }))
    }
}
