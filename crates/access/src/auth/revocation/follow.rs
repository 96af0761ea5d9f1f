//! Following what rights and tokens depend on, and asking the requests that send nothing.

use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::permit::Permitted;
use super::{Concern, Register, Revocations, Shared};
use crate::auth::rbac::Rbac;
use crate::auth::service_accounts::Resources;
use crate::cache::{Cache, State};
use crate::revision::Revision;
use crate::storage::{Key, ResourceId};

/// Permits that are asked without a pause.
const SLICE: usize = 64;
/// The pause after a slice, in times of what it has taken: a fifth of one processor at most is spent on asking.
const PAUSE: u32 = 4;
/// The time after which all permits are asked, for what ends with time: tokens, certificates, decisions of webhooks.
const PERIOD: Duration = Duration::from_secs(10);
/// How long a slice waits for an authorizer that is slow; its permits are asked again with the next period.
const PATIENCE: Duration = Duration::from_secs(5);

/// The objects that are followed.
pub struct Followed {
    cache: Cache,
    rbac: Option<Rbac>,
    resources: [ResourceId; 5],
    /// Every change of the resources up to here has been taken in.
    reached: Mutex<Revision>,
    /// The [count of rereads](State::rereads) up to here has been taken in.
    rereads: AtomicU64,
    /// Every change in the state with this serial, and in those before it, has been taken in.
    seen: AtomicU64,
}

impl Followed {
    pub fn new(cache: &Cache, rbac: Option<&Rbac>, resources: Resources) -> Self {
        let Resources { accounts, secrets, pods, nodes, keys } = resources;
        let state = cache.any();
        Self {
            cache: cache.clone(),
            rbac: rbac.cloned(),
            resources: [accounts, secrets, pods, nodes, keys],
            reached: Mutex::new(state.revision),
            rereads: AtomicU64::new(state.rereads),
            seen: AtomicU64::new(state.serial),
        }
    }

    pub fn take_in(&self, shared: &Shared) {
        if self.seen.load(Ordering::Acquire) >= self.cache.serial() {
            return;
        }
        let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        let state = self.cache.any();
        if self.seen.load(Ordering::Acquire) >= state.serial {
            return;
        }
        if let Some(rbac) = &self.rbac {
            rbac.take_in();
        }
        if self.rereads.swap(state.rereads, Ordering::AcqRel) != state.rereads {
            shared.raise_everybody();
        }
        for id in self.resources {
            self.take_in_rows(id, *reached, &state, shared);
        }
        *reached = state.revision;
        self.seen.fetch_max(state.serial, Ordering::AcqRel);
    }

    fn take_in_rows(&self, id: ResourceId, reached: Revision, state: &State, shared: &Shared) {
        let is_unchanged = state.changed(id).is_none_or(|changed| changed <= reached);
        if is_unchanged || !shared.register().depends_on(id) {
            return;
        }
        let Some(keys) = self.cache.changed_keys(id, reached) else { return shared.raise_everybody() };
        for key in keys {
            let (namespace, name) = key.split_once('\0').unwrap_or(("", &key));
            shared.raise(&Concern::Row(Key::new(id, namespace, name)));
        }
    }
}

impl Register {
    /// Whether a permit depends on a row of this resource.
    fn depends_on(&self, id: ResourceId) -> bool {
        let first = Concern::Row(Key::new(id, "", ""));
        let next = self.concerned.range(first..).next();
        matches!(next, Some((Concern::Row(key), _)) if key.resource == id)
    }

    /// Some permits with greater numbers than `after`, of a concern or of all.
    fn some(&self, concern: Option<&Concern>, after: u64) -> Vec<(u64, Option<Arc<Permitted>>)> {
        let range = (Bound::Excluded(after), Bound::Unbounded);
        let found = |id: &u64| (*id, self.permits.get(id).and_then(std::sync::Weak::upgrade));
        match concern {
            None => self.permits.range(range).take(SLICE).map(|(id, _)| found(id)).collect(),
            Some(concern) => {
                let members = self.concerned.get(concern);
                let ids = members.map(|members| members.permits.range(range).take(SLICE));
                ids.into_iter().flatten().map(found).collect()
            }
        }
    }
}

/// The permits that a walk asks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// Permits whose epochs have been raised.
    Concerned,
    All,
}

impl Revocations {
    /// Ends requests that send nothing, for ever.
    pub async fn follow(self) {
        let Self { shared } = self;
        let Some(followed) = shared.followed.get() else { return std::future::pending().await };
        let at = followed.cache.any().revision;
        let ids = followed.resources.into_iter().chain(followed.rbac.iter().flat_map(Rbac::resources));
        let mut watchers: Vec<_> = ids.map(|id| followed.cache.watch(id, at)).collect();
        let mut due = Instant::now() + PERIOD;
        loop {
            let changes = select_all(watchers.iter_mut().map(|watcher| Box::pin(watcher.changed())));
            tokio::select! {
                _ = changes => {}
                () = shared.woken.notified() => {}
                () = sleep_until(due) => {
                    walk(&shared, None, Ask::All).await;
                    due = Instant::now() + PERIOD;
                }
            }
            shared.take_in();
            while let Some(concern) = shared.next_pending() {
                walk(&shared, concern.as_ref(), Ask::Concerned).await;
            }
        }
    }
}

impl Shared {
    /// A concern that was raised; `Some(None)` for everybody.
    fn next_pending(&self) -> Option<Option<Concern>> {
        let mut register = self.register();
        if std::mem::take(&mut register.is_everybody_pending) {
            register.pending.clear();
            return Some(None);
        }
        register.pending.pop_first().map(Some)
    }
}

/// Asks the permits of a concern, or all, in slices.
async fn walk(shared: &Shared, concern: Option<&Concern>, ask: Ask) {
    let mut after = 0;
    loop {
        let some = shared.register().some(concern, after);
        let Some((last, _)) = some.last() else { return };
        after = *last;
        let is_whole = some.len() < SLICE;
        let began = Instant::now();
        let asking = some.into_iter().filter_map(|(_, permit)| permit).map(async |permit| match ask {
            Ask::Concerned => permit.ask_if_concerned().await,
            Ask::All => permit.ask().await,
        });
        let _ = timeout(PATIENCE, join_all(asking)).await;
        if is_whole {
            return;
        }
        sleep(began.elapsed() * PAUSE).await;
    }
}
