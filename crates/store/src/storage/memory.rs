//! A store in memory: ordered maps and the rules of `judge`, without a file, a thread or SQL.
//!
//! The contents of a [`Memory`] live as long as the value. Closing it does nothing: when a server is stopped, another
//! one can be started on the same value and finds everything. Only one server may use it at a time, since a second one
//! would not be told what the first writes.
//!
//! A [fork](Memory::fork) is a store over another one's state, which shares the objects of that state.

mod base;
mod history;
mod reads;
mod tables;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;

pub use self::base::{Base, BaseObject};
use self::tables::Tables;
use super::audit::KEPT_IN_MEMORY;
use super::commit::{audit_rows, ranges};
use super::counting::counted_versions;
use super::judge::{Found, judge_under};
use super::token_key::rotate;
use super::{
    AuditQuery, AuditRemoval, AuditRing, AuditRow, Backend, Batch, BlockStream, Change, Changes, Clock,
    Commit, Commits, Error, Feed, Fence, Mutation, Reads, Registration, Registry, RegistryChange, ResourceId,
    RowStream, Scan, Stale, StaleRow, Swept, Terms, TokenKey, Upkeep,
};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::wall_clock::WallClock;

/// An empty store in memory.
pub struct Memory {
    held: Mutex<Held>,
    /// The most bytes of values; `None` without a limit.
    most_bytes: Option<u64>,
    clock: WallClock,
}

/// All tables of the store.
struct Held {
    tables: Tables,
    resources: HashMap<GroupResource, ResourceId>,
    servers: HashMap<Arc<str>, Arc<Registration>>,
    /// Sorted from the newest to the oldest.
    token_keys: Vec<TokenKey>,
    audit: AuditRows,
}

/// Opens an empty store. This takes no time and cannot fail.
pub fn open() -> Arc<dyn Backend> {
    Arc::new(Memory::default())
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(WallClock::default())
    }
}

impl Memory {
    /// An empty store whose commits are stamped by this clock.
    pub fn new(clock: WallClock) -> Self {
        let tables = Tables::new(clock.millis());
        Self { held: Mutex::new(Held::new(tables, HashMap::new())), most_bytes: None, clock }
    }

    /// A store that begins with a state, whose resources have these numbers, and writes beside it. It takes at most so many
    /// bytes of values beyond the state.
    pub fn fork(
        base: Arc<dyn Base>,
        resources: HashMap<GroupResource, ResourceId>,
        most_bytes: u64,
        clock: WallClock,
    ) -> Self {
        let held = Held::new(Tables::over(base, clock.millis()), resources);
        Self { held: Mutex::new(held), most_bytes: Some(most_bytes), clock }
    }

    /// Fails if the values of a batch do not fit.
    fn check_room(&self, held: &Held, batch: &[Mutation]) -> Result<(), Error> {
        let Some(most) = self.most_bytes else { return Ok(()) };
        let length = |mutation: &Mutation| match &mutation.change {
            Change::Put { value, .. } => value.bytes().len() as u64,
            Change::Delete | Change::Count(_) => 0,
        };
        let added: u64 = batch.iter().map(length).sum();
        if added > 0 && held.tables.bytes + added > most {
            return Err(Error::Full(most));
        }
        Ok(())
    }

    /// Locks the tables. The guard is never held across an await.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot of all rows, which later writes do not change. It costs a few pointers.
    fn picture(&self) -> Tables {
        self.lock().tables.clone()
    }

    /// A snapshot in which the state at `at` can be read.
    fn picture_at(&self, at: Revision) -> Result<Tables, Error> {
        let tables = self.picture();
        tables.clock.check(at)?;
        Ok(tables)
    }
}

#[async_trait]
impl Commits for Memory {
    async fn commit_under(&self, batch: &mut dyn Batch, terms: Terms<'_>) -> Result<Commit, Error> {
        let mut held = self.lock();
        let mutations = batch.close();
        let base = held.tables.clock.revision;
        if base < terms.floor {
            return Err(Error::Regressed { floor: terms.floor, found: base });
        }
        self.check_room(&held, mutations)?;
        held.tables.copy_rows(mutations);
        let live = held.tables.live_versions(mutations);
        let registered = terms.fence.is_some_and(|fence| held.is_registered(fence));
        let versions = counted_versions(mutations, &live).into_iter();
        let counted = versions.filter_map(|at| Some((at, held.tables.version(at)?.value.clone()))).collect();
        let changed: Vec<bool> = ranges(mutations).map(|range| held.tables.has_changed(range)).collect();
        let Clock { compacted, lag, .. } = held.tables.clock;
        let found = Found { live: &live, counted: &counted, registered, compacted, changed: &changed, lag };
        let (verdict, registry) = judge_under(mutations, base, found, terms)?;
        held.tables.write(mutations, &verdict.writes, self.clock.millis());
        held.add_audit_rows(audit_rows(mutations, &verdict.writes).into_iter().cloned());
        if let Some(change) = registry {
            held.register(change);
        }
        Ok(Commit { base, outcomes: verdict.outcomes })
    }

    /// Committing in memory waits for nothing, so there is no time in which to prepare a second batch.
    fn pipeline_depth(&self) -> usize {
        1
    }
}

#[async_trait]
impl Reads for Memory {
    async fn clock(&self) -> Result<Clock, Error> {
        Ok(self.lock().tables.clock)
    }

    async fn size(&self) -> Result<Option<u64>, Error> {
        Ok(self.most_bytes.map(|_| self.lock().tables.bytes))
    }

    async fn scan(&self, scan: Scan, at: Revision) -> Result<RowStream, Error> {
        Ok(reads::scan(self.picture_at(at)?, scan, at))
    }

    async fn live_revisions(
        &self,
        resources: &[ResourceId],
        at: Revision,
    ) -> Result<Vec<Vec<Revision>>, Error> {
        let tables = self.picture_at(at)?;
        let live = |resource: &ResourceId| {
            tables.live_at(&Scan::all(*resource), at).map(|live| live.revision()).collect()
        };
        Ok(resources.iter().map(live).collect())
    }

    async fn rows_of(&self, revisions: Vec<Revision>) -> Result<BlockStream, Error> {
        Ok(reads::rows_of(self.picture(), revisions))
    }

    async fn lag_at(&self, at: Revision) -> Result<i64, Error> {
        Ok(self.picture_at(at)?.lag_at(at))
    }

    async fn sequence_of(&self, revision: i64) -> Result<Revision, Error> {
        self.picture().sequence_of(revision)
    }

    async fn count(&self, scan: &Scan, at: Revision) -> Result<u64, Error> {
        Ok(self.picture_at(at)?.live_at(scan, at).count() as u64)
    }

    async fn stale_rows(
        &self,
        stale: &Stale,
        (namespace, name): (&str, &str),
        limit: u32,
    ) -> Result<Vec<StaleRow>, Error> {
        let scan = Scan { after: Some((namespace.into(), name.into())), ..Scan::all(stale.resource) };
        Ok(reads::stale(&self.picture(), stale, &scan).take(limit as usize).collect())
    }

    async fn stale_count(&self, stale: &Stale) -> Result<u64, Error> {
        Ok(reads::stale(&self.picture(), stale, &Scan::all(stale.resource)).count() as u64)
    }
}

#[async_trait]
impl Feed for Memory {
    async fn changes(
        &self,
        after: Revision,
        resource: Option<ResourceId>,
        limit: u32,
    ) -> Result<Changes, Error> {
        let tables = self.picture();
        tables.clock.check_feed(after)?;
        Ok(reads::changes(&tables, after, resource, limit))
    }

    /// Never returns: no other server commits to this store.
    async fn hint(&self) {
        std::future::pending().await
    }

    fn shared(&self) -> bool {
        false
    }
}

#[async_trait]
impl Upkeep for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    async fn compact(&self, to: Revision) -> Result<Clock, Error> {
        let clock = &mut self.lock().tables.clock;
        clock.compacted = clock.compacted.max(to.min(clock.revision));
        Ok(*clock)
    }

    async fn oldest_change(&self) -> Result<Option<Revision>, Error> {
        Ok(self.lock().tables.oldest_change())
    }

    async fn sweep(&self, limit: u32) -> Result<Swept, Error> {
        let mut held = self.lock();
        let begun = Instant::now();
        let changes = held.tables.sweep(limit);
        Ok(Swept { changes, took: begun.elapsed().max(Duration::from_nanos(1)) })
    }

    /// Swept rows are returned to the allocator at once, so there is nothing to do.
    async fn reclaim(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn advance_clock(&self, floor: Revision) -> Result<Clock, Error> {
        let tables = &mut self.lock().tables;
        if tables.clock.revision < floor {
            tables.clock = Clock { revision: floor, compacted: floor, ..tables.clock };
            tables.floors.clear();
            tables.other_floors = floor;
        }
        Ok(tables.clock)
    }

    async fn close(&self) {}
}

#[async_trait]
impl Registry for Memory {
    async fn resource_ids(&self, resources: &[GroupResource]) -> Result<Vec<ResourceId>, Error> {
        let known = &mut self.lock().resources;
        let mut id = |resource: &GroupResource| {
            if let Some(id) = known.get(resource) {
                return *id;
            }
            let next = ResourceId(known.values().map(|id| id.0).max().unwrap_or_default() + 1);
            *known.entry(resource.clone()).or_insert(next)
        };
        Ok(resources.iter().map(&mut id).collect())
    }

    async fn token_keys(&self, now: i64, max_age: i64) -> Result<Vec<TokenKey>, Error> {
        let known = &mut self.lock().token_keys;
        let row = |key: &TokenKey| (i64::from(key.id), key.created_at, key.secret.clone());
        let rotation = rotate(known.iter().map(row).collect(), 0, now, max_age);
        if rotation.added.is_some() {
            known.clone_from(&rotation.keys);
        }
        Ok(rotation.keys)
    }

    async fn add_audit_rows(&self, rows: Vec<AuditRow>) -> Result<(), Error> {
        self.lock().add_audit_rows(rows.into_iter());
        Ok(())
    }

    async fn audit_rows(&self, query: &AuditQuery) -> Result<Vec<Bytes>, Error> {
        let held = self.lock();
        let mut found: Vec<&AuditRow> = held.audit.iter().filter(|row| query.matches(row)).collect();
        found.sort_by_key(|row| row.at);
        let extra = found.len().saturating_sub(query.limit as usize);
        Ok(found[extra..].iter().map(|row| row.event.clone()).collect())
    }

    async fn remove_audit_rows(&self, removal: AuditRemoval) -> Result<u64, Error> {
        let AuditRemoval { ring, before, most, most_bytes, limit } = removal;
        let mut all = self.lock();
        let audit = all.audit.ring(ring);
        let (held, mut removed) = (audit.len(), 0);
        audit.retain(|row| {
            let goes = row.at < before && removed < limit;
            removed += u32::from(goes);
            !goes
        });
        let too_many = audit.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        audit.drain(..too_many.min(limit as usize));
        let mut newer = 0;
        let fit = audit.iter().rev().take_while(|row| {
            newer += row.event.len() as u64;
            newer <= most_bytes
        });
        let too_large = audit.len() - fit.count();
        audit.drain(..too_large.min(limit as usize));
        Ok((held - audit.len()) as u64)
    }
}

/// The two tables of audit events.
#[derive(Default)]
struct AuditRows {
    writes: VecDeque<AuditRow>,
    others: VecDeque<AuditRow>,
}

impl AuditRows {
    fn ring(&mut self, ring: AuditRing) -> &mut VecDeque<AuditRow> {
        match ring {
            AuditRing::Writes => &mut self.writes,
            AuditRing::Others => &mut self.others,
        }
    }

    fn iter(&self) -> impl Iterator<Item = &AuditRow> {
        self.writes.iter().chain(&self.others)
    }
}

impl Held {
    fn new(tables: Tables, resources: HashMap<GroupResource, ResourceId>) -> Self {
        Self {
            tables,
            resources,
            servers: HashMap::new(),
            token_keys: Vec::new(),
            audit: AuditRows::default(),
        }
    }

    fn is_registered(&self, fence: &Fence) -> bool {
        self.servers.get(&fence.server).is_some_and(|found| found.incarnation == fence.incarnation)
    }

    fn add_audit_rows(&mut self, rows: impl Iterator<Item = AuditRow>) {
        for row in rows {
            let ring = self.audit.ring(row.ring);
            ring.push_back(row);
            if ring.len() > KEPT_IN_MEMORY {
                ring.pop_front();
            }
        }
    }

    fn register(&mut self, change: &RegistryChange) {
        match change {
            RegistryChange::Put(registration) => {
                self.servers.insert(registration.server.clone(), registration.clone());
            }
            // Fences ask who is registered; nobody asks this store how a server encodes.
            RegistryChange::Amend(_) => {}
            RegistryChange::Remove(servers) => {
                for server in servers {
                    self.servers.remove(&**server);
                }
            }
        }
    }
}
