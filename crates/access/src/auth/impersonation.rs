//! Impersonation: a request of one user in the name of another (docs/spec/auth.md, section 2).
//!
//! There are five modes, which are tried in order. The four constrained ones ask twice: may the requester do *this* in
//! somebody else's name, and may he use *that* name. The oldest mode asks for the name alone.

mod headers;
mod mode;

use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use self::mode::{Checks, Mode};
use super::authorizer::{Attributes, Authorizer, Refusal};
use super::recent::Recent;
use crate::metrics::Metrics;
use crate::user::User;

pub use self::headers::{NoName, is_requested, requested};
pub use self::mode::is_subdomain;

/// The number of requesters for whom the mode that has passed is remembered.
const REQUESTERS: usize = 5000;

/// Finds out whether users may act as others.
pub struct Impersonator {
    /// The mode that has passed for a requester goes first. Requesters are known by the hashes of their names: two with the
    /// same one only change the order for each other.
    passed: Recent<u64, Mode>,
    hashes: RandomState,
    metrics: Arc<Metrics>,
}

/// A user whose name somebody else uses.
#[derive(Debug)]
pub struct Impersonated {
    pub user: Arc<User>,
    /// The verb that has allowed it, for the audit log; `None` in the mode that is not constrained.
    pub constraint: Option<&'static str>,
    /// The mode's name in metrics.
    pub mode: &'static str,
}

impl Default for Impersonator {
    fn default() -> Self {
        Self::new(Arc::default())
    }
}

impl Impersonator {
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { passed: Recent::new(REQUESTERS), hashes: RandomState::new(), metrics }
    }

    /// The user that the request is to be made as, or why it must not be: the refusal of the first mode that applies.
    /// `attributes` are those of the request with the requester's name.
    pub async fn impersonate(
        &self,
        wanted: &User,
        attributes: &Attributes<'_>,
        authorizer: &dyn Authorizer,
    ) -> Result<Impersonated, Refusal> {
        let requester = self.hashes.hash_one(&attributes.user.name);
        let first = self.passed.get(&requester);
        let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != first);
        let mut refused = None;
        for mode in first.into_iter().chain(others).filter(|mode| mode.applies(wanted, attributes.user)) {
            let metrics = &*self.metrics;
            match (Checks { mode, wanted, attributes, authorizer, metrics }).run().await {
                Ok(user) => {
                    if first != Some(mode) {
                        self.passed.put(requester, mode);
                    }
                    let (user, constraint) = (Arc::new(user), mode.constraint());
                    return Ok(Impersonated { user, constraint, mode: mode.name() });
                }
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        // The mode without constraints applies always, so there is a refusal.
        Err(refused.unwrap_or_else(|| attributes.forbidden("").into()))
    }
}

#[cfg(test)]
mod tests;
