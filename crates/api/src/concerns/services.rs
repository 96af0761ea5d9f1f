//! Services: addresses and node ports are claimed before a Service is written, and released after it.

use super::{Committed, Concern, Following, Judged, ObjectChange, Reserving};
use crate::admission::Verdict;
use crate::error::Error;
use crate::kinds::behavior::part::Part;
use crate::options::DryRun;
use crate::request::Request;
use crate::schema::resource::ResourceDefinition;
use crate::services::is_service;
use crate::{Cluster, ObjectMap};

pub(super) struct Services;

impl Concern for Services {
    fn sees(&self, definition: &ResourceDefinition) -> bool {
        is_service(definition)
    }

    fn needs_confirmed_right(&self, _: &Request<'_>) -> bool {
        true
    }

    /// Faults of addresses and ports are told instead of all others: upstream allocates before it validates.
    fn judge<'a>(&'a self, judged: Judged<'a>, valid: Result<(), Error>) -> Verdict<'a> {
        let Judged { attempt, part, new, old } = judged;
        match valid {
            Err(error) if part == Part::Main => Verdict::Later(Box::pin(async move {
                let first = attempt.cluster.refused_before_validation(attempt.target, new, old).await;
                Err(first.unwrap_or(error))
            })),
            valid => Verdict::Now(valid),
        }
    }

    fn reserve<'a>(
        &'a self,
        change: &'a ObjectChange<'a>,
        new: &'a mut ObjectMap,
        dry_run: DryRun,
    ) -> Option<Reserving<'a>> {
        Some(Box::pin(change.cluster.allocate(change.target, new, change.old, dry_run)))
    }

    fn committed<'a>(&'a self, cluster: &'a Cluster, written: Committed<'a>) -> Option<Following<'a>> {
        let Committed { target, old, new: None, .. } = written else { return None };
        let last = old.and_then(|old| target.resource.decode(old).ok())?;
        Some(Box::pin(async move {
            cluster.release_all(target, &last).await;
            Ok(None)
        }))
    }
}
