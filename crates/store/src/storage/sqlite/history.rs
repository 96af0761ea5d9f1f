//! The past on SQLite.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _, Transaction};

use super::Sqlite;
use super::error::{corrupt, unavailable};
use super::reads::{self, live_row};
use super::upkeep;
use crate::revision::Revision;
use crate::storage::history::segments::shared::shared_segments;
use crate::storage::history::segments::{Stored, listed, past_list};
use crate::storage::history::shared::shared_history;
use crate::storage::history::{before_or_all, retention};
use crate::storage::{ChangeKind, Error, History, Key, ResourceId, Row, RowStream, Scan};

shared_history!(SqliteConnection, SqliteRow);
shared_segments!(SqliteConnection, SqliteRow);

#[async_trait]
impl History for Sqlite {
    async fn present(&self) -> Result<Present, PastError> {
        Ok(self.past().await?.1)
    }

    async fn raise_floors(&self, others: Revision, own: &[(ResourceId, Revision)]) -> Result<(), PastError> {
        let mut turn = self.writer.turn().await?;
        self.writer.heed(raise_floors(&mut turn.connection, others, own).await)?;
        Ok(turn.finish(None).await?.flush().await?)
    }

    async fn resources(&self) -> Result<Vec<(ResourceId, GroupResource)>, PastError> {
        Ok(resources(&mut *self.readers.acquire().await.map_err(unavailable)?).await?)
    }

    async fn holdings(&self) -> Result<Vec<Holding>, PastError> {
        Ok(holdings(&mut *self.scans.acquire().await.map_err(unavailable)?).await?)
    }

    async fn nth_change(&self, resource: ResourceId, before: u64) -> Result<Option<Revision>, PastError> {
        Ok(nth_change(&mut *self.scans.acquire().await.map_err(unavailable)?, resource, before).await?)
    }

    async fn unswept(&self) -> Result<u64, PastError> {
        Ok(unswept(&mut *self.readers.acquire().await.map_err(unavailable)?).await?)
    }

    async fn thin(&self) -> Result<(), PastError> {
        let now_ms = self.clock.millis();
        let mut turn = self.writer.turn().await?;
        self.writer.heed(thin(&mut turn.connection, now_ms).await)?;
        Ok(turn.leave().await?)
    }

    async fn segment(&self, until: Revision) -> Result<bool, PastError> {
        let slice = next_slice(&mut *self.scans.acquire().await.map_err(unavailable)?, until).await?;
        let Some(slice) = slice else { return Ok(false) };
        let stored = slice.stored()?;
        let mut turn = self.writer.turn().await?;
        self.writer.heed(move_rows(&mut turn.connection, &slice, stored).await)?;
        turn.leave().await?;
        Ok(true)
    }

    async fn moment_at(&self, ms: i64) -> Result<Moment, PastError> {
        let (mut transaction, newest) = self.past().await?;
        if newest.at(ms)?.is_none() {
            return earlier_moment(&mut transaction, ms).await;
        }
        drop(transaction);
        // A batch that was stamped at this time or before may be on its way. Those that come after this turn get later
        // stamps.
        self.wait_until_after(ms).await;
        let mut turn = self.writer.turn().await?;
        let newest = stamped(&mut turn.connection).await?;
        turn.unused().flush().await?;
        if ms >= newest.committed_ms {
            return Ok(newest);
        }
        let (mut transaction, _) = self.past().await?;
        earlier_moment(&mut transaction, ms).await
    }

    async fn moment_of(&self, revision: Revision) -> Result<(Moment, Precision), PastError> {
        let (mut transaction, Present { moment, .. }) = self.past().await?;
        if revision > moment.revision {
            return Err(Error::Future { requested: revision, current: moment.revision }.into());
        }
        Ok(moment_of(&mut transaction, moment, revision).await?)
    }

    async fn floor(&self, resource: ResourceId, _namespace: Option<&str>) -> Result<Revision, PastError> {
        let (mut transaction, _) = self.past().await?;
        Ok(floor(&mut transaction, resource).await?)
    }

    async fn scan_past(&self, scan: Scan, at: Revision) -> Result<RowStream, PastError> {
        let mut transaction = self.scans.begin().await.map_err(unavailable)?;
        let newest = self.newest(&mut transaction).await?;
        check_past(&mut transaction, newest, scan.resource, at).await?;
        let sql = past_list(include_str!("../sql/sqlite/list_past.sql"), &scan);
        Ok(reads::rows(transaction, sql, scan, at, past_row))
    }

    async fn row_past(&self, key: &Key, at: Revision) -> Result<Option<Row>, PastError> {
        let (mut transaction, Present { moment, .. }) = self.past().await?;
        check_past(&mut transaction, moment, key.resource, at).await?;
        Ok(row_at(&mut transaction, key, at).await?)
    }

    async fn count_past(&self, scan: &Scan, at: Revision) -> Result<u64, PastError> {
        let (mut transaction, Present { moment, .. }) = self.past().await?;
        check_past(&mut transaction, moment, scan.resource, at).await?;
        let rows = reads::count_at(&mut transaction, scan, at).await?;
        Ok(rows + count_in_segments(&mut transaction, scan, at).await?)
    }

    async fn versions_of(
        &self,
        key: &Key,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Version>, PastError> {
        let (mut transaction, Present { moment, .. }) = self.past().await?;
        let before = before_or_all(before, moment);
        Ok(versions_of(&mut transaction, key, before, limit).await?)
    }

    async fn changes_between(
        &self,
        filter: &ChangeFilter,
        before: Option<Revision>,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<ChangeOfPast>, PastError> {
        let (mut transaction, Present { moment, .. }) = self.past().await?;
        let before = before_or_all(before, moment);
        Ok(changes_between(&mut transaction, filter, (after, before), limit).await?)
    }
}

impl Sqlite {
    /// A snapshot, and the newest commit in it that readers may see.
    async fn past(&self) -> Result<(Transaction<'static, sqlx::Sqlite>, Present), Error> {
        let mut transaction = self.readers.begin().await.map_err(unavailable)?;
        let moment = self.newest(&mut transaction).await?;
        Ok((transaction, Present { moment, now_ms: self.clock.millis() }))
    }

    async fn newest(&self, connection: &mut SqliteConnection) -> Result<Moment, Error> {
        let durable = self.writer.durable();
        let newest = stamped(connection).await?;
        match newest.revision > durable {
            true => moment_of(connection, newest, durable).await.map(|(moment, _)| moment),
            false => Ok(newest),
        }
    }

    async fn wait_until_after(&self, ms: i64) {
        if self.clock.millis() <= ms {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// The newest commit, as the connection sees it.
async fn stamped(connection: &mut SqliteConnection) -> Result<Moment, Error> {
    let newest = sqlx::query_as("SELECT revision, committed_ms FROM clock");
    let (revision, committed_ms): (i64, i64) = newest.fetch_one(connection).await.map_err(unavailable)?;
    Ok(Moment { revision: Revision(revision as u64), committed_ms })
}

async fn raise_floors(
    connection: &mut SqliteConnection,
    others: Revision,
    own: &[(ResourceId, Revision)],
) -> Result<(), Error> {
    let mut transaction = upkeep::begin(connection).await?;
    for statement in retention::raising("MAX", "MIN", others, own) {
        sqlx::query(AssertSqlSafe(statement))
            .persistent(false)
            .execute(&mut *transaction)
            .await
            .map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)
}

async fn thin(connection: &mut SqliteConnection, now_ms: i64) -> Result<(), Error> {
    let mut transaction = upkeep::begin(connection).await?;
    for statement in retention::thinning(now_ms) {
        let thinned = sqlx::query(AssertSqlSafe(statement)).persistent(false).execute(&mut *transaction);
        thinned.await.map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)
}

/// Makes the moves of a slice.
async fn move_rows(
    connection: &mut SqliteConnection,
    slice: &Slice,
    stored: Vec<Stored>,
) -> Result<(), Error> {
    let mut transaction = upkeep::begin(connection).await?;
    let gone = format!(
        "UPDATE segmented SET revision = {}, moves = moves + 1; DELETE FROM objects WHERE resource_version IN ({})",
        slice.to,
        listed(slice.rows())
    );
    let gone = sqlx::query(AssertSqlSafe(gone)).persistent(false).execute(&mut *transaction);
    gone.await.map_err(unavailable)?;
    for Stored { key, common, first, end, versions, frame } in stored {
        let row = sqlx::query("INSERT OR REPLACE INTO segments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
            .bind(first.0 as i64)
            .bind(end.0 as i64)
            .bind(key.resource.0)
            .bind(&*key.namespace)
            .bind(&*key.name)
            .bind(common.uid)
            .bind(common.stored_version)
            .bind(common.format)
            .bind(versions as i64)
            .bind(frame.len() as i64)
            .bind(frame);
        row.execute(&mut *transaction).await.map_err(unavailable)?;
    }
    transaction.commit().await.map_err(unavailable)
}
