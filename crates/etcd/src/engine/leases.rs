//! Leases: granted and ended in the store, timed in memory.
//!
//! Each server counts a lease's time from when it saw the lease's row last, so that no clock but its own matters, and
//! after a restart each lease has its full time again. Where there are other servers, a renewal writes the row again:
//! they see it, and the end of a lease requires the row as it was seen, so nobody ends what somebody else has
//! renewed.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use rowplane_store::storage::{Counting, Expect};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::locks::Name;
use super::rows::{Stored, delete};
use super::state::{State, lease_id};
use super::{Error, Etcd};
use crate::wire::messages::{
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseLeasesResponse, LeaseRevokeRequest, LeaseRevokeResponse, LeaseStatus, LeaseTimeToLiveRequest,
    LeaseTimeToLiveResponse,
};

/// The longest and the shortest time to live, in seconds.
const LONGEST: i64 = 9_000_000_000;
const SHORTEST: i64 = 2;
/// The leases that are ended at the same time.
const AT_ONCE: usize = 64;
/// The pause before a lease that could not be ended is looked at again.
const PAUSE: Duration = Duration::from_millis(500);

/// When leases end, as this server counts.
#[derive(Default)]
pub struct Deadlines {
    times: Mutex<Times>,
    changed: Notify,
}

#[derive(Default)]
struct Times {
    of: HashMap<i64, Instant>,
    sorted: BTreeSet<(Instant, i64)>,
}

impl Times {
    fn set(&mut self, lease: i64, at: Instant) {
        self.remove(lease);
        self.of.insert(lease, at);
        self.sorted.insert((at, lease));
    }

    fn remove(&mut self, lease: i64) {
        if let Some(at) = self.of.remove(&lease) {
            self.sorted.remove(&(at, lease));
        }
    }
}

impl Deadlines {
    fn times(&self) -> MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives all leases their full time.
    pub fn begin(&self, state: &State) {
        let now = Instant::now();
        let mut times = Times::default();
        for (id, lease) in &state.leases {
            times.set(*id, after(now, lease.ttl));
        }
        state.orphans().for_each(|id| times.set(id, now));
        *self.times() = times;
        self.changed.notify_one();
    }

    /// Takes in what has become of the rows with these names, and of the leases of these keys.
    pub fn follow(&self, state: &State, rows: &[Arc<str>], leases: &BTreeSet<i64>) {
        if rows.is_empty() && leases.is_empty() {
            return;
        }
        let now = Instant::now();
        let mut times = self.times();
        let rows: Vec<i64> = rows.iter().filter_map(|name| lease_id(name).ok()).collect();
        for id in &rows {
            match state.leases.get(id) {
                Some(lease) => times.set(*id, after(now, lease.ttl)),
                None => times.remove(*id),
            }
        }
        for id in rows.iter().chain(leases) {
            // A key that was put on another server at the very moment.
            if !state.leases.contains_key(id) && state.attached(*id).next().is_some() {
                times.set(*id, now);
            }
        }
        self.changed.notify_one();
    }

    fn renew(&self, lease: i64, ttl: i64) {
        // It ends later than before, so nobody need be woken.
        self.times().set(lease, after(Instant::now(), ttl));
    }

    fn of(&self, lease: i64) -> Option<Instant> {
        self.times().of.get(&lease).copied()
    }

    fn next(&self) -> Option<Instant> {
        self.times().sorted.first().map(|(at, _)| *at)
    }

    /// The leases whose time is over. They get a moment more, in which they have to be ended, to a time that is
    /// returned.
    fn take_due(&self) -> Vec<(i64, Instant)> {
        let now = Instant::now();
        let mut times = self.times();
        let due: Vec<i64> = times.sorted.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| *id).collect();
        due.into_iter().map(|id| (id, now + PAUSE)).inspect(|(id, at)| times.set(*id, *at)).collect()
    }
}

fn after(now: Instant, ttl: i64) -> Instant {
    // The longest time is some hundred years.
    now + Duration::from_secs(ttl.clamp(0, LONGEST) as u64)
}

impl Etcd {
    pub async fn lease_grant(&self, request: LeaseGrantRequest) -> Result<LeaseGrantResponse, Error> {
        let LeaseGrantRequest { ttl, id: wanted } = request;
        if ttl > LONGEST {
            return Err(Error::TtlTooLarge);
        }
        let ttl = ttl.max(SHORTEST);
        loop {
            let id = match wanted {
                0 => (self.shared.runtime.random.uuid().as_u128() as i64 & i64::MAX).max(1),
                wanted => wanted,
            };
            let row = Stored::Lease(ttl).put(self.shared.tables.lease(id), Expect::Absent, Counting::None);
            if self.commit_rows(vec![row]).await?.is_some() {
                let header = Some(self.newest_header());
                return Ok(LeaseGrantResponse { header, id, ttl, error: String::new() });
            }
            if wanted != 0 {
                return Err(Error::LeaseExists);
            }
        }
    }

    pub async fn lease_revoke(&self, request: LeaseRevokeRequest) -> Result<LeaseRevokeResponse, Error> {
        if !self.end_lease(request.id, |_| true).await? {
            return Err(Error::LeaseNotFound);
        }
        Ok(LeaseRevokeResponse { header: Some(self.newest_header()) })
    }

    /// Ends a lease together with its keys, if it may end. Returns whether there was one.
    async fn end_lease(&self, id: i64, may_end: impl Fn(&Self) -> bool) -> Result<bool, Error> {
        let _turn = self.shared.locks.take(BTreeSet::from([Name::Lease(id)]), BTreeSet::new()).await;
        let (tables, mut is_newest) = (&self.shared.tables, !self.backend().shared());
        loop {
            let state = if is_newest { self.state() } else { self.newest().await? };
            is_newest = true;
            let lease = state.leases.get(&id);
            let mut unit = Vec::new();
            unit.extend(lease.map(|lease| delete(tables.lease(id), lease.sequence, Counting::Shared)));
            let keys = state.attached(id).filter_map(|key| state.kv(key));
            unit.extend(keys.map(|kv| delete(tables.key(&kv.key), kv.sequence, Counting::Shared)));
            if unit.is_empty() || !may_end(self) {
                return Ok(!unit.is_empty());
            }
            let has_keys = unit.len() > usize::from(lease.is_some());
            if let Some(last) = unit.last_mut() {
                last.counting = if has_keys { Counting::Own } else { Counting::None };
            }
            if self.commit_rows(unit).await?.is_some() {
                return Ok(lease.is_some());
            }
        }
    }

    pub async fn lease_keep_alive(
        &self,
        request: LeaseKeepAliveRequest,
    ) -> Result<LeaseKeepAliveResponse, Error> {
        let id = request.id;
        let header = Some(self.newest_header());
        // While the lease is being ended, its renewal waits for the outcome.
        let _turn = self.shared.locks.take(BTreeSet::new(), BTreeSet::from([Name::Lease(id)])).await;
        let is_shared = self.backend().shared();
        let mut state = self.state();
        loop {
            let Some(lease) = state.leases.get(&id).copied() else {
                if !is_shared || !self.newest().await?.leases.contains_key(&id) {
                    return Ok(LeaseKeepAliveResponse { header: header.clone(), id, ttl: 0 });
                }
                state = self.state();
                continue;
            };
            let answer = LeaseKeepAliveResponse { header: header.clone(), id, ttl: lease.ttl };
            if !is_shared {
                self.shared.deadlines.renew(id, lease.ttl);
                return Ok(answer);
            }
            let key = self.shared.tables.lease(id);
            let row = Stored::Lease(lease.ttl).put(key, Expect::At(lease.sequence), Counting::None);
            if self.commit_rows(vec![row]).await?.is_some() {
                return Ok(answer);
            }
            state = self.newest().await?;
        }
    }

    pub async fn lease_time_to_live(
        &self,
        request: LeaseTimeToLiveRequest,
    ) -> Result<LeaseTimeToLiveResponse, Error> {
        let LeaseTimeToLiveRequest { id, keys } = request;
        let state = self.newest().await?;
        let header = Some(self.header(state.revision()));
        let Some(lease) = state.leases.get(&id) else {
            return Ok(LeaseTimeToLiveResponse { header, id, ttl: -1, ..Default::default() });
        };
        let left = self.shared.deadlines.of(id).map_or(Duration::ZERO, |at| at - Instant::now());
        let keys = state.attached(id).filter(|_| keys).cloned().collect();
        Ok(LeaseTimeToLiveResponse { header, id, ttl: left.as_secs() as i64, granted_ttl: lease.ttl, keys })
    }

    pub async fn lease_leases(&self) -> Result<LeaseLeasesResponse, Error> {
        let state = self.newest().await?;
        let leases = state.leases.keys().map(|id| LeaseStatus { id: *id }).collect();
        Ok(LeaseLeasesResponse { header: Some(self.header(state.revision())), leases })
    }

    /// Ends a lease whose time is over.
    async fn expire_lease(&self, id: i64, until: Instant) {
        // A renewal sets another time.
        let is_due = |etcd: &Self| etcd.shared.deadlines.of(id).is_none_or(|at| at == until);
        if let Err(error) = self.end_lease(id, is_due).await {
            tracing::warn!(%error, lease = id, "a lease could not be ended, will be tried again");
        }
    }
}

/// Ends leases when their time is over.
pub async fn expire(etcd: Etcd) {
    let deadlines = &etcd.shared.deadlines;
    loop {
        let due = deadlines.take_due();
        stream::iter(due).for_each_concurrent(AT_ONCE, |(id, until)| etcd.expire_lease(id, until)).await;
        let never = async || std::future::pending().await;
        tokio::select! {
            () = deadlines.changed.notified() => {}
            () = async { match deadlines.next() {
                Some(at) => sleep_until(at).await,
                None => never().await,
            } } => {}
        }
    }
}
