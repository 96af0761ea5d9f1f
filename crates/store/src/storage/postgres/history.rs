//! The past on PostgreSQL, whose clock stamps the commits of all servers.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryFutureExt as _;
use serde_json::{Value, json};
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{Row as _, Transaction};

use super::error::{corrupt, unavailable};
use super::lent::Lent;
use super::pool::{long, short};
use super::reads::{self, Begin, SNAPSHOT, live_row};
use super::{Postgres, checked, whole};
use crate::codec::at_rest::ValueFormat;
use crate::revision::Revision;
use crate::storage::history::segments::shared::shared_segments;
use crate::storage::history::segments::{Stored, listed, past_list};
use crate::storage::history::shared::shared_history;
use crate::storage::history::{Told, before_or_all, retention};
use crate::storage::{ChangeKind, Error, History, Key, ResourceId, Row, RowStream, Scan};

shared_history!(PgConnection, PgRow);
shared_segments!(PgConnection, PgRow);

/// The newest commit and the database's time. Servers of the release before leave the clock's stamp as it is.
const PRESENT: &str = "SELECT c.revision, \
     GREATEST(c.committed_ms, (SELECT h.committed_ms FROM changes h WHERE h.resource_version = c.revision)), \
     floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint FROM clock c";

#[async_trait]
impl History for Postgres {
    async fn present(&self) -> Result<Present, PastError> {
        within(async {
            let mut connection = self.pool.acquire().await?;
            Ok(newest(&mut connection).await?)
        })
        .await
    }

    async fn raise_floors(&self, others: Revision, own: &[(ResourceId, Revision)]) -> Result<(), PastError> {
        let mut connection = self.pool.acquire().await?;
        let statements = retention::raising("GREATEST", "LEAST", others, own).join("; ");
        let raised = short(whole::run(&mut connection, statements).map_err(unavailable)).await;
        Ok(checked(connection, raised).map(drop)?)
    }

    async fn resources(&self) -> Result<Vec<(ResourceId, GroupResource)>, PastError> {
        let mut connection = self.pool.acquire().await?;
        let found = short(resources(&mut connection)).await;
        Ok(checked(connection, found)?)
    }

    async fn holdings(&self) -> Result<Vec<Holding>, PastError> {
        let mut connection = self.scans.acquire().await?;
        let found = long(holdings(&mut connection)).await;
        Ok(checked(connection, found)?)
    }

    async fn nth_change(&self, resource: ResourceId, before: u64) -> Result<Option<Revision>, PastError> {
        let mut connection = self.scans.acquire().await?;
        let found = long(nth_change(&mut connection, resource, before)).await;
        Ok(checked(connection, found)?)
    }

    async fn unswept(&self) -> Result<u64, PastError> {
        let mut connection = self.pool.acquire().await?;
        let found = long(unswept(&mut connection)).await;
        Ok(checked(connection, found)?)
    }

    async fn thin(&self) -> Result<(), PastError> {
        let mut connection = self.pool.acquire().await?;
        let work = async {
            let now_ms = newest(&mut connection).await?.now_ms;
            let statements = retention::thinning(now_ms).join("; ");
            whole::run(&mut connection, statements).await.map_err(unavailable)
        };
        let thinned = long(work).await;
        Ok(checked(connection, thinned).map(drop)?)
    }

    async fn segment(&self, until: Revision) -> Result<bool, PastError> {
        let mut connection = self.scans.acquire().await?;
        let slice = long(next_slice(&mut connection, until)).await;
        let Some(slice) = checked(connection, slice)? else { return Ok(false) };
        let mut connection = self.pool.acquire().await?;
        let rows = long(connection.run_transaction(moving(&slice)?).map_err(unavailable)).await?;
        // Another server has moved them, or one of an earlier release would not find them.
        Ok(rows.iter().any(|row| !row.columns().is_empty()))
    }

    async fn moment_at(&self, ms: i64) -> Result<Moment, PastError> {
        within(async {
            let mut connection = self.pool.acquire().await?;
            let first = newest(&mut connection).await?;
            if first.at(ms)?.is_none() {
                return earlier_moment(&mut connection, ms).await;
            }
            // A batch that was stamped at this time or before may be on its way, and keeps the clock locked. Those that
            // come later get later stamps.
            if first.now_ms <= ms {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let locked = whole::run(&mut connection, format!("{PRESENT} FOR SHARE OF c")).await;
            let Present { moment, .. } = present_of(locked.map_err(unavailable)?.first())?;
            match ms >= moment.committed_ms {
                true => Ok(moment),
                false => earlier_moment(&mut connection, ms).await,
            }
        })
        .await
    }

    async fn moment_of(&self, revision: Revision) -> Result<(Moment, Precision), PastError> {
        within(async {
            let mut connection = self.pool.acquire().await?;
            let (mut transaction, moment) = past(&mut connection).await?;
            if revision > moment.revision {
                return Err(Error::Future { requested: revision, current: moment.revision }.into());
            }
            Ok(moment_of(&mut transaction, moment, revision).await?)
        })
        .await
    }

    async fn floor(&self, resource: ResourceId, _namespace: Option<&str>) -> Result<Revision, PastError> {
        within(async {
            let mut connection = self.pool.acquire().await?;
            Ok(floor(&mut connection, resource).await?)
        })
        .await
    }

    async fn scan_past(&self, scan: Scan, at: Revision) -> Result<RowStream, PastError> {
        let resource = scan.resource;
        let begin: Begin = Box::new(move |connection| Box::pin(snapshot(connection, resource, at)));
        let sql = past_list(include_str!("../sql/postgres/list_past.sql"), &scan);
        reads::scan_from(&self.scans, (sql, past_row), scan, at, begin).await
    }

    async fn row_past(&self, key: &Key, at: Revision) -> Result<Option<Row>, PastError> {
        let mut connection = self.pool.acquire().await?;
        let mut transaction = snapshot(&mut connection, key.resource, at).await?;
        Ok(short(row_at(&mut transaction, key, at)).await?)
    }

    async fn count_past(&self, scan: &Scan, at: Revision) -> Result<u64, PastError> {
        let mut connection = self.scans.acquire().await?;
        let mut transaction = snapshot(&mut connection, scan.resource, at).await?;
        let rows = long(reads::count_at(&mut transaction, scan, at)).await?;
        Ok(rows + long(count_in_segments(&mut transaction, scan, at)).await?)
    }

    async fn versions_of(
        &self,
        key: &Key,
        before: Option<Revision>,
        limit: u32,
    ) -> Result<Vec<Version>, PastError> {
        let mut connection = self.pool.acquire().await?;
        let (mut transaction, newest) = short(past(&mut connection)).await?;
        let before = before_or_all(before, newest);
        Ok(long(versions_of(&mut transaction, key, before, limit)).await?)
    }

    async fn changes_between(
        &self,
        filter: &ChangeFilter,
        before: Option<Revision>,
        after: Revision,
        limit: u32,
    ) -> Result<Vec<ChangeOfPast>, PastError> {
        let mut connection = self.scans.acquire().await?;
        let (mut transaction, newest) = short(past(&mut connection)).await?;
        let before = before_or_all(before, newest);
        Ok(long(changes_between(&mut transaction, filter, (after, before), limit)).await?)
    }
}

/// Ends work that the database does not answer.
async fn within<T>(work: impl Future<Output = Result<T, PastError>>) -> Result<T, PastError> {
    short(async { Ok(work.await) }).await?
}

/// A snapshot, and the newest commit in it.
async fn past(connection: &mut Lent) -> Result<(Transaction<'_, sqlx::Postgres>, Moment), Error> {
    let mut transaction = connection.begin(SNAPSHOT).await.map_err(unavailable)?;
    let Present { moment, .. } = newest(&mut transaction).await?;
    Ok((transaction, moment))
}

/// A snapshot in which a resource can be read at a revision.
async fn snapshot(
    connection: &mut Lent,
    resource: ResourceId,
    at: Revision,
) -> Result<Transaction<'_, sqlx::Postgres>, PastError> {
    within(async {
        let (mut transaction, newest) = past(connection).await?;
        check_past(&mut transaction, newest, resource, at).await?;
        Ok(transaction)
    })
    .await
}

async fn newest(connection: &mut PgConnection) -> Result<Present, Error> {
    present_of(Some(&sqlx::query(PRESENT).fetch_one(connection).await.map_err(unavailable)?))
}

fn present_of(row: Option<&PgRow>) -> Result<Present, Error> {
    let row = row.ok_or_else(|| Error::Corrupt("there is no clock".into()))?;
    let number = |column: usize| row.try_get::<i64, _>(column).map_err(corrupt);
    let moment = Moment { revision: Revision(number(0)? as u64), committed_ms: number(1)? };
    Ok(Present { moment, now_ms: number(2)? })
}

/// The writers of a batch whose rows the table may lack, as the procedure takes them.
pub fn new_authors(told: &Told) -> Option<String> {
    if told.new.is_empty() {
        return None;
    }
    let rows = told.new.iter().map(|author| {
        let [username, impersonator, verb, subresource, manager, client] = author.writer().texts();
        json!({
            "id": author.id(), "username": username, "impersonator": impersonator, "verb": verb,
            "subresource": subresource, "manager": manager, "client": client,
        })
    });
    Some(Value::Array(rows.collect()).to_string())
}

/// The transaction that makes the moves of a slice, and returns a row if it has. It waits for the turn of whoever sweeps: a
/// version whose change has gone would never be swept. If a crash takes it back, the rows are as they were.
fn moving(slice: &Slice) -> Result<String, Error> {
    let mut inserted = Vec::new();
    for Stored { key, common, first, end, versions, frame } in slice.stored()? {
        inserted.push(format!(
            "({first}::bigint, {end}::bigint, {}::integer, {}, {}, {}, {}, {}::smallint, {versions}::integer, {}::integer, {})",
            key.resource.0,
            whole::text(&key.namespace),
            whole::text(&key.name),
            whole::text(&common.uid),
            whole::text(&common.stored_version),
            common.format,
            frame.len(),
            whole::bytes(&frame)
        ));
    }
    let moved = match inserted.is_empty() {
        true => String::new(),
        false => format!(
            ", moved AS ( \
                 INSERT INTO segments SELECT v.* FROM (VALUES {}) AS v \
                 WHERE EXISTS (SELECT FROM mine) AND EXISTS (SELECT FROM changes c WHERE c.resource_version = v.column2) \
                 ON CONFLICT (first_version) DO UPDATE SET \
                     (end_version, versions, bytes, value) = (excluded.end_version, excluded.versions, excluded.bytes, excluded.value) \
             )",
            inserted.join(", ")
        ),
    };
    Ok(format!(
        "BEGIN; \
         SET LOCAL synchronous_commit = off; \
         SELECT FROM turns WHERE work = 'sweep by floors' FOR UPDATE; \
         WITH mine AS ( \
             UPDATE segmented SET revision = {}, moves = moves + 1 WHERE moves = {} \
               AND NOT EXISTS (SELECT FROM servers WHERE value_format < {}) RETURNING 1 \
         ), gone AS ( \
             DELETE FROM objects WHERE EXISTS (SELECT FROM mine) AND resource_version IN ({}) \
         ){moved} \
         SELECT 1 AS moved FROM mine; \
         COMMIT",
        slice.to,
        slice.seen,
        ValueFormat::Segmented.number(),
        listed(slice.rows())
    ))
}
