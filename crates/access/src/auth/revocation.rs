//! Revocation: long-running requests (watches, streams) end with the credential or the right that let them in.
//!
//! Each of them has a [`Permit`]. [`Revocations`] follows what rights and tokens depend on (roles, bindings, accounts, Secrets,
//! Pods, Nodes, keys), and keeps for every user, group and row an epoch, which a change that may have taken something away
//! raises. A permit asks again, at the latest before the next event is sent, when an epoch of its own has been raised: what
//! concerns others costs it a comparison. Requests that send nothing are asked by a task, in slices, which also asks all
//! of them now and then, for what ends with time alone.

mod follow;
mod permit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use self::follow::Followed;
pub use self::permit::Permit;
use self::permit::Permitted;
use super::authn::Unauthenticated;
use super::authorizer::Refusal;
use super::rbac::{Rbac, Sort, Subject};
use super::service_accounts::Resources;
use crate::cache::Cache;
use crate::storage::Key;
use crate::user::User;

/// Why a long-running request ends.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Revoked {
    #[error(transparent)]
    Credential(#[from] Unauthenticated),
    #[error(transparent)]
    Right(Box<Refusal>),
}

impl From<Refusal> for Revoked {
    fn from(refusal: Refusal) -> Self {
        Self::Right(Box::new(refusal))
    }
}

/// Asks once more whether a request would be let in. Fails only if it certainly would not: an authenticator or authorizer
/// that cannot answer ends nothing.
pub trait Reauthorize: Send + Sync {
    fn ask(&self) -> BoxFuture<'_, Result<(), Revoked>>;
}

/// The users or objects that a change concerns.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    User(Box<str>),
    Group(Box<str>),
    /// A row that a token depends on.
    Row(Key),
}

impl Concern {
    /// The concerns of a user: his name and his groups.
    pub fn of(user: &User) -> impl Iterator<Item = Self> {
        let groups = user.groups.iter().map(|group| Self::Group(group.as_str().into()));
        groups.chain([Self::User(user.name.as_str().into())])
    }
}

/// The long-running requests of a server. Clones share them.
#[derive(Clone, Default)]
pub struct Revocations {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// `None` until the server has read its objects.
    followed: OnceLock<Followed>,
    /// The number of changes that may have taken something away from somebody.
    changes: AtomicU64,
    /// The epoch of all permits.
    everybody: Arc<AtomicU64>,
    register: Mutex<Register>,
    /// Notified when `pending` is not empty any more.
    woken: Notify,
}

/// The permits, and whom they concern.
#[derive(Default)]
struct Register {
    next: u64,
    permits: BTreeMap<u64, Weak<Permitted>>,
    concerned: BTreeMap<Concern, Members>,
    /// The changes since the task has looked last.
    pending: BTreeSet<Concern>,
    is_everybody_pending: bool,
}

#[derive(Default)]
struct Members {
    epoch: Arc<AtomicU64>,
    permits: BTreeSet<u64>,
}

impl Revocations {
    /// Follows the objects that rights and tokens depend on. Only the first call has an effect.
    pub fn know(&self, cache: &Cache, rbac: Option<&Rbac>, resources: Resources) {
        if let Some(rbac) = rbac {
            let shared = Arc::downgrade(&self.shared);
            rbac.tell_losses(Box::new(move |subject| {
                let Some(shared) = shared.upgrade() else { return };
                match subject {
                    Some(subject) => shared.raise(&concern_of(subject)),
                    None => shared.raise_everybody(),
                }
            }));
        }
        let _ = self.shared.followed.set(Followed::new(cache, rbac, resources));
    }

    /// A permit for a request of these concerns. It asks for the first time before the request sends anything, so that what
    /// changes while it is made is not missed.
    pub fn permit(
        &self,
        concerns: impl IntoIterator<Item = Concern>,
        reauthorize: Box<dyn Reauthorize>,
    ) -> Permit {
        Permit::register(&self.shared, concerns.into_iter().collect(), reauthorize)
    }

    /// All permits ask again: credentials or authorizers have been replaced.
    pub fn ask_everybody(&self) {
        self.shared.raise_everybody();
    }
}

impl Shared {
    fn register(&self) -> MutexGuard<'_, Register> {
        self.register.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Raises the epoch of a concern, if a permit has it.
    fn raise(&self, concern: &Concern) {
        let mut register = self.register();
        let Some(members) = register.concerned.get(concern) else { return };
        members.epoch.fetch_add(1, Ordering::Release);
        register.pending.insert(concern.clone());
        drop(register);
        self.changed();
    }

    fn raise_everybody(&self) {
        self.everybody.fetch_add(1, Ordering::Release);
        self.register().is_everybody_pending = true;
        self.changed();
    }

    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        self.woken.notify_one();
    }

    /// Takes in all changes that the cache has.
    fn take_in(&self) {
        if let Some(followed) = self.followed.get() {
            followed.take_in(self);
        }
    }
}

fn concern_of(subject: &Subject) -> Concern {
    match subject.sort {
        Sort::Group => Concern::Group(subject.name.clone()),
        Sort::User | Sort::Account => Concern::User(subject.name.clone()),
    }
}

#[cfg(test)]
mod tests;
