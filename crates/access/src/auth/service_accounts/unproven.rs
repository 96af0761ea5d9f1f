//! Tokens that are accepted by what this server knows: another one may have deleted since what they name.

use std::fmt;
use std::sync::Arc;

use super::{Content, Verified, Verifier, bound};
use crate::auth::authn::Unauthenticated;
use crate::storage::Requirement;

use super::NO_KEYS;
use super::live::Live;

/// A token that is valid as long as rows are as they were seen: somebody has to require them in a commit, or to prove the
/// token otherwise.
pub struct Unproven {
    verifier: Arc<Verifier>,
    verified: Arc<Verified>,
    rows: Vec<Requirement>,
}

impl Unproven {
    /// `None` for a token that does not tell which rows it depends on.
    pub(super) fn of(verifier: &Arc<Verifier>, verified: &Arc<Verified>, live: &Live<'_>) -> Option<Self> {
        let Content::Bound { claims, .. } = &verified.content else { return None };
        let mut rows = bound::rows(claims, live)?;
        rows.extend(verifier.issuer.keys.row(&verified.key, live));
        Some(Self { verifier: verifier.clone(), verified: verified.clone(), rows })
    }

    pub fn rows(&self) -> &[Requirement] {
        &self.rows
    }

    /// Fails unless the token is valid by all that any server has answered before the request.
    pub async fn prove(&self) -> Result<(), Unauthenticated> {
        let Self { verifier, verified, .. } = self;
        let state = verifier.cache.fresh_for_request().await.map_err(Unauthenticated::Unknown)?;
        let live = Live { state: &state, resources: &verifier.resources };
        let refused = |why: String| Unauthenticated::Refused(why);
        if !verifier.issuer.keys.is_known(&verified.key, &live) {
            return Err(refused(NO_KEYS.to_owned()));
        }
        match &verified.content {
            Content::Bound { claims, seen, .. } => {
                bound::check(claims, seen, &live, verifier.clock.seconds() as i64).map_err(refused)
            }
            Content::Legacy { .. } => Ok(()),
        }
    }
}

impl fmt::Debug for Unproven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unproven").field("rows", &self.rows).finish_non_exhaustive()
    }
}
