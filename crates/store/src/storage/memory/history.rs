//! The past of a store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::tables::{Tables, Version as Stored};
use super::{Memory, reads};
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::history::before_or_all;
use crate::storage::history::retention::Thinning;
use crate::storage::{
    ChangeFilter, ChangeOfPast, Error, History, Holding, Key, Moment, PastError, Precision, Present,
    ResourceId, Row, RowStream, Scan, Version,
};

#[async_trait]
impl History for Memory {
    async fn present(&self) -> Result<Present, PastError> {
        Ok(Present { moment: self.picture().newest(), now_ms: self.clock.millis() })
    }

    async fn raise_floors(&self, others: Revision, own: &[(ResourceId, Revision)]) -> Result<(), PastError> {
        let tables = &mut self.lock().tables;
        let compacted = tables.clock.compacted;
        let unlisted: Vec<ResourceId> =
            tables.floors.keys().filter(|id| own.iter().all(|(own, _)| own != *id)).copied().collect();
        let unlisted = unlisted.into_iter().map(|id| (id, others));
        for (id, floor) in own.iter().copied().chain(unlisted) {
            let raised = tables.floor(id).max(floor.min(compacted));
            tables.floors.insert(id, raised);
        }
        tables.other_floors = tables.other_floors.max(others.min(compacted));
        Ok(())
    }

    async fn resources(&self) -> Result<Vec<(ResourceId, GroupResource)>, PastError> {
        Ok(self.lock().resources.iter().map(|(name, id)| (*id, name.clone())).collect())
    }

    async fn holdings(&self) -> Result<Vec<Holding>, PastError> {
        let tables = self.picture();
        let mut sizes: BTreeMap<ResourceId, (u64, u64)> = BTreeMap::new();
        for change in tables.changes_after(Revision(0)) {
            let superseded = change.previous.and_then(|at| tables.version(at));
            let (changes, bytes) = sizes.entry(change.key.resource).or_default();
            *changes += 1;
            *bytes += superseded.map_or(0, |version| version.value.len() as u64);
        }
        let holding = |(resource, (changes, bytes))| {
            let floor = tables.floor(resource);
            Holding { resource, floor, changes, bytes }
        };
        Ok(sizes.into_iter().map(holding).collect())
    }

    async fn nth_change(&self, resource: ResourceId, before: u64) -> Result<Option<Revision>, PastError> {
        let tables = self.picture();
        let found =
            tables.changes_of(resource, Revision(0)).nth(before as usize).map(|change| change.revision);
        Ok(found)
    }

    async fn unswept(&self) -> Result<u64, PastError> {
        Ok(self.picture().due().count() as u64)
    }

    async fn thin(&self) -> Result<(), PastError> {
        let now_ms = self.clock.millis();
        let tables = &mut self.lock().tables;
        for Thinning { from_ms, to_ms, width_ms } in Thinning::all(now_ms) {
            let marks: Vec<i64> = tables.marks.range(from_ms..to_ms).map(|(at, _)| *at).collect();
            for pair in marks.windows(2) {
                if let [at, next] = pair
                    && at / width_ms == next / width_ms
                {
                    tables.marks.remove(at);
                }
            }
        }
        Ok(())
    }

    async fn moment_at(&self, ms: i64) -> Result<Moment, PastError> {
        let now_ms = self.clock.millis();
        if now_ms == ms {
            // What is committed within this millisecond belongs to it.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let tables = self.picture();
        match (Present { moment: tables.newest(), now_ms }).at(ms)? {
            Some(moment) => Ok(moment),
            None => tables.earlier_moment(ms).ok_or(PastError::BeforeFirst),
        }
    }

    async fn moment_of(&self, revision: Revision) -> Result<(Moment, Precision), PastError> {
        let tables = self.picture();
        if revision > tables.clock.revision {
            return Err(Error::Future { requested: revision, current: tables.clock.revision }.into());
        }
        Ok(tables.moment_of(revision))
    }

    async fn floor(&self, resource: ResourceId, _namespace: Option<&str>) -> Result<Revision, PastError> {
        Ok(self.picture().floor(resource))
    }

    async fn scan_past(&self, scan: Scan, at: Revision) -> Result<RowStream, PastError> {
        Ok(reads::scan(self.picture_of_past(scan.resource, at)?, scan, at))
    }

    async fn row_past(&self, key: &Key, at: Revision) -> Result<Option<Row>, PastError> {
        let tables = self.picture_of_past(key.resource, at)?;
        let newest = tables.versions_of(key, Revision(at.0 + 1)).next();
        Ok(newest.filter(|version| version.is_live()).map(|version| version.row()))
    }

    async fn count_past(&self, scan: &Scan, at: Revision) -> Result<u64, PastError> {
        Ok(self.picture_of_past(scan.resource, at)?.live_at(scan, at).count() as u64)
    }

    async fn versions_of(
        &self,
        key: &Key,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Version>, PastError> {
        let tables = self.picture();
        let floor = tables.floor(key.resource);
        let before = before_or_all(before, tables.newest());
        let at_floor = tables.versions_of(key, Revision(floor.0 + 1)).next().map(|version| version.revision);
        let kept = tables.versions_of(key, before).filter(|version| {
            version.revision > floor || version.is_live() && at_floor == Some(version.revision)
        });
        Ok(kept.take(limit as usize).map(|version| tables.past_version(&version)).collect())
    }

    async fn changes_between(
        &self,
        filter: &ChangeFilter,
        before: Option<Revision>,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<ChangeOfPast>, PastError> {
        let tables = self.picture();
        let before = before_or_all(before, tables.newest());
        let wanted = |change: &&Arc<Stored>| {
            let Key { resource, namespace, .. } = &change.key;
            filter.resource.is_none_or(|only| only == *resource)
                && filter.namespace.as_deref().is_none_or(|only| only == &**namespace)
                && change.revision > tables.floor(*resource)
        };
        let changes = tables.changes_between(after, before).filter(wanted).take(limit as usize);
        Ok(changes.map(|change| tables.change_of_past(change)).collect())
    }
}

impl Memory {
    /// A snapshot in which a resource can be read at a revision.
    fn picture_of_past(&self, resource: ResourceId, at: Revision) -> Result<Tables, PastError> {
        let tables = self.picture();
        if at > tables.clock.revision {
            return Err(Error::Future { requested: at, current: tables.clock.revision }.into());
        }
        let floor = tables.floor(resource);
        if at < floor {
            return Err(PastError::Expired { resource, floor: tables.moment_of(floor).0 });
        }
        Ok(tables)
    }
}

impl Tables {
    fn newest(&self) -> Moment {
        Moment { revision: self.clock.revision, committed_ms: self.committed_ms }
    }

    /// The newest commit at or before a time that is before the newest commit of all.
    fn earlier_moment(&self, ms: i64) -> Option<Moment> {
        let (at, mark) = self.marks.range(..=ms).next_back()?;
        let next = self.marks.range(ms + 1..).next().map_or(self.clock.revision, |(_, next)| *next);
        let mut later = self.changes_between(*mark, Revision(next.0 + 1));
        let later = later.find(|change| change.committed_ms <= ms);
        let mark = Moment { revision: *mark, committed_ms: *at };
        Some(
            later.map_or(mark, |change| Moment {
                revision: change.revision,
                committed_ms: change.committed_ms,
            }),
        )
    }

    fn moment_of(&self, revision: Revision) -> (Moment, Precision) {
        if let Some(change) = self.change(revision) {
            return (Moment { revision, committed_ms: change.committed_ms }, Precision::Exact);
        }
        if revision == self.clock.revision {
            return (self.newest(), Precision::Exact);
        }
        let before = self.marks.iter().rev().find(|(_, mark)| **mark <= revision).map(|(at, _)| *at);
        let after = self.marks.iter().find(|(_, mark)| **mark >= revision).map(|(at, _)| *at);
        let committed_ms = after.unwrap_or(self.committed_ms);
        let precision = match before {
            None => Precision::Before,
            Some(before) if before == committed_ms => Precision::Exact,
            Some(before) => Precision::Within { ms: committed_ms - before },
        };
        (Moment { revision, committed_ms }, precision)
    }

    fn past_version(&self, version: &Stored) -> Version {
        let change = self.change(version.revision);
        Version {
            revision: version.revision,
            committed_ms: change.map(|change| change.committed_ms),
            event: change.map(|change| change.kind),
            previous: change.and_then(|change| change.previous),
            uid: self.uid(version),
            deleted: !version.is_live(),
            writer: change.and_then(|change| change.author.as_ref()).map(|author| author.writer().clone()),
            row: version.row(),
        }
    }

    fn change_of_past(&self, change: &Stored) -> ChangeOfPast {
        ChangeOfPast {
            revision: change.revision,
            committed_ms: Some(change.committed_ms),
            event: change.kind,
            previous: change.previous,
            uid: self.uid(change),
            writer: change.author.as_ref().map(|author| author.writer().clone()),
            resource: change.key.resource,
            namespace: (*change.key.namespace).into(),
            name: (*change.key.name).into(),
        }
    }

    /// The object's uid; that of the object that was deleted, for a deletion.
    fn uid(&self, version: &Stored) -> Box<str> {
        let deleted = version.previous.filter(|_| !version.is_live()).and_then(|at| self.version(at));
        deleted.map_or_else(|| (*version.uid).into(), |deleted| (*deleted.uid).into())
    }
}
