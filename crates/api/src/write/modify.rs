//! The one loop around every write: read, change, write, and repeat if another write came in between.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::outcome::{Modified, Placed};
use super::{Current, Existing, Next, Propose, Reads, Ready, Write};
use crate::codec::object::Object;
use crate::concerns::{self, Committed};
use crate::error::Error;
use crate::long_work::LONG;
use crate::options::DryRun;
use crate::{Answer, Api, Target};

/// How many names are tried for a `generateName` (apiserver's `maxNameGenerationCreateAttempts`).
const NAMES: usize = 8;
/// How many attempts may fail because another write has changed the object meanwhile. Usually the request's time is
/// over before.
const LOST: usize = 4096;
/// How many attempts may fail at the commit because a requirement of admission had changed, though admission accepted
/// the write again. A client that labels a namespace in every batch makes about half of the concurrent creates in it
/// fail so.
const UNMET: usize = 16;

/// The number of failed attempts.
#[derive(Default)]
struct Failed {
    lost: usize,
    unmet: usize,
}

impl Api {
    /// Tries a write until its result is stored or refused: first on the state that this replica has, then, if that
    /// loses a race or fails, on the newest state.
    pub(crate) async fn modify(
        &self,
        write: Write<'_>,
        propose: &mut Propose<'_>,
    ) -> Result<Modified, Error> {
        let target = write.request.target;
        let looks = write.existing == Existing::Change;
        let mut state = self.cache.any();
        let mut proven = !looks || !self.store.backend().shared();
        let mut failed = Failed::default();
        loop {
            let stored = match looks {
                true => state.get(target.resource.id, target.namespace, target.name),
                false => None,
            };
            let old = stored.clone();
            let is_long = AtomicBool::new(stored.as_ref().is_some_and(|stored| stored.size() >= LONG));
            // Within a block, so that the request's future has one room for this attempt and for what follows it.
            let (current, ready) = {
                let attempt = pin!(async {
                    let current = match stored {
                        Some(stored) => Some(self.current(target, write.reads, stored).await?),
                        None => None,
                    };
                    let ready = self.attempt(write, propose, current.as_ref()).await;
                    Ok::<_, Error>((current, ready))
                });
                self.lanes.drive(attempt, &is_long).await?
            };
            if !proven && !proves_itself(&write, &ready) {
                state = self.cache.fresh().await?;
                proven = true;
                continue;
            }
            let placed = self.put(write, ready?, current).await?;
            if matches!(placed, Placed::Unmet { .. }) {
                // What has changed may be the right to write.
                Box::pin(write.request.confirm()).await?;
            }
            let judged_at = match placed {
                Placed::Done(mut modified) => {
                    if write.request.options.dry_run() == DryRun::No {
                        self.follow(write, old.as_deref(), &mut modified).await?;
                    }
                    if write.reads == Reads::AsServed {
                        let answer = self.converter.answer(target.resource, modified.answer).await;
                        modified.answer = answer.map_err(|error| Error::Done(Box::new(error)))?;
                    }
                    return Ok(modified);
                }
                Placed::Unmet { judged_at } if concerns::are_contended(target.resource) => {
                    failed.lost += 1;
                    judged_at
                }
                Placed::Unmet { judged_at } => {
                    failed.unmet += 1;
                    concerns::unmet(self, target, judged_at).await?;
                    judged_at
                }
                Placed::Lost { judged_at, naming } => {
                    failed.lost += 1;
                    if let (Existing::Refuse, Some(naming)) = (write.existing, &naming)
                        && (!naming.generated || failed.lost >= NAMES)
                    {
                        self.cache.at_least(judged_at).await?;
                        return Err(self.already_exists(write.target(Some(naming)), naming.prefixed));
                    }
                    judged_at
                }
            };
            failed.check(target)?;
            state = self.cache.at_least(judged_at).await?;
            proven = true;
        }
    }
}

impl Api {
    /// Lets concerns follow a commit, and answers with the version that they have made.
    async fn follow(
        &self,
        write: Write<'_>,
        old: Option<&Object>,
        modified: &mut Modified,
    ) -> Result<(), Error> {
        let new = match &modified.answer {
            Answer::Stored(object) => Some(&**object),
            Answer::Unstored(_) => None,
        };
        let written = Committed { target: write.request.target, part: write.part, old, new };
        if let Some(newer) = concerns::committed(self, written).await? {
            modified.answer = Answer::Stored(newer);
        }
        Ok(())
    }

    /// A stored object as a write finds it.
    pub(crate) async fn current(
        &self,
        target: Target<'_>,
        reads: Reads,
        stored: Arc<Object>,
    ) -> Result<Current, Error> {
        let resource = target.resource;
        let Some((custom, _)) = resource.hooked() else {
            return Ok(Current { object: resource.decode_closed(&stored)?, stored, conversions: None });
        };
        let object = match reads {
            Reads::AsStored => custom.as_stored(stored.to_closed_map()?)?,
            Reads::AsServed => {
                resource.decode_closed(&*self.converter.object(resource, stored.clone()).await?)?
            }
        };
        Ok(Current { object, stored, conversions: Some(Box::default()) })
    }
}

/// Whether the result is valid even if it was computed from an old state. A refusal or a no-op is not; a write is,
/// since its commit checks the versions that it was computed from.
fn proves_itself(write: &Write<'_>, ready: &Result<Ready, Error>) -> bool {
    match ready {
        Err(_) | Ok(Ready { next: Next::Unchanged, .. }) => false,
        Ok(_) => write.request.options.dry_run() == DryRun::No,
    }
}

impl Failed {
    /// 500 for a write that has lost too many races.
    fn check(&self, target: Target<'_>) -> Result<(), Error> {
        let operation = match self {
            _ if self.unmet >= UNMET => "create",
            _ if self.lost >= LOST => "update",
            _ => return Ok(()),
        };
        Err(Error::ServerTimeout { resource: target.resource.group_resource(), operation })
    }
}
