//! Copying a whole store out of PostgreSQL while servers may be running, and filling a new store.

use std::collections::HashMap;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;

use super::database::{schema_named, ways};
use super::error::unavailable;
use super::holder::RESTORES;
use super::hosts::Use;
use super::session::{Connector, Purpose};
use super::{Address, MIGRATIONS, Postgres, not_opened, reads, unreachable, whole};
use crate::codec::sealed::ENCRYPTED;
use crate::revision::Revision;
use crate::schema::names::GroupResource;
use crate::storage::inventory::{self, Extent, Inventory, LongObject};
use crate::storage::shared::snapshot_reads;
use crate::storage::stale::PROTOBUF;
use crate::storage::stream::stream;
use crate::storage::transfer::{
    Arrivals, COUNTS, Counts, Error, Export, Length, Meter, ObjectRow, Received, Record, Step, StoredObject,
    compare,
};
use crate::storage::{self, AuditQuery, TokenKey, migrations, transfer};

/// The migration from which on the clock has a lag.
const COUNTING: i64 = 13;

snapshot_reads!(Postgres, Address, PgConnection, storage::audit::OTHERS_ON_POSTGRES, 12);

impl Postgres {
    /// Fills this store, which must be new, in one transaction.
    pub async fn import(&self, export: Export, meter: &Meter) -> Result<Counts, Error> {
        let mut connection = self.pool.acquire().await?;
        let counts = import(&mut connection, export, meter).await;
        if counts.is_err() {
            connection.discard();
        }
        counts
    }
}

/// The size of the store's tables with their indexes, and the time of the database's host.
async fn extent(connection: &mut PgConnection) -> Result<Extent, Error> {
    // Not every database that speaks PostgreSQL's protocol knows sizes.
    let found: Option<(i64, i64)> = sqlx::query_as(
        "SELECT COALESCE(SUM(pg_total_relation_size(pg_class.oid)), 0)::bigint, \
         (EXTRACT(epoch FROM clock_timestamp()) * 1000000)::bigint \
         FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace \
         WHERE relkind = 'r' AND nspname = current_schema()",
    )
    .fetch_one(connection)
    .await
    .ok();
    Ok(found.map_or(Extent::default(), |(bytes, clock)| Extent {
        bytes: bytes.unsigned_abs(),
        clock: Some(clock),
    }))
}

async fn snapshot(address: &Address) -> Result<Snapshot, Error> {
    let mut connection = connect(address).await?;
    let unreachable = |source: sqlx::Error| unreachable(&address.to_string(), source);
    let newest = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations");
    let schema: i64 = newest.fetch_one(&mut connection).await.map_err(unreachable)?;
    migrations::refuse_newer(&MIGRATIONS, schema)?;
    sqlx::query(reads::SNAPSHOT).execute(&mut connection).await.map_err(unavailable)?;
    // The release before counts no lag.
    let clock = match schema >= COUNTING {
        true => sqlx::query_as("SELECT revision, lag FROM clock"),
        false => sqlx::query_as("SELECT revision, CAST(0 AS bigint) FROM clock"),
    };
    let (revision, lag): (i64, i64) = clock.fetch_one(&mut connection).await.map_err(unavailable)?;
    Ok(Snapshot { connection, revision: Revision(revision as u64), lag, schema })
}

/// Another program's database, in one read-only snapshot. The connection is made as those to a store of rowplane are.
pub async fn foreign_snapshot(address: &Address) -> Result<PgConnection, Error> {
    let mut connection = connect(address).await?;
    sqlx::query(reads::SNAPSHOT).execute(&mut connection).await.map_err(unavailable)?;
    Ok(connection)
}

async fn connect(address: &Address) -> Result<PgConnection, Error> {
    let (ways, shown) = ways(address, Use::Reading)?;
    let schema = schema_named(&shown, address.split().1.as_deref())?;
    let connector = Connector::new(&ways, schema, address.accepted);
    let connected = connector.connect(Purpose::Whole).await;
    let (connection, _host) = connected.map_err(|error| not_opened(&shown, error))?;
    Ok(connection)
}

async fn import(connection: &mut PgConnection, export: Export, meter: &Meter) -> Result<Counts, Error> {
    let mut received = Received::nothing_of(&export);
    let Export { length, mut batches, .. } = export;
    meter.expect(length);
    let mut transaction = connection.begin().await.map_err(unavailable)?;
    // The records may arrive slowly, and nobody may end the session for that (`holder.rs`).
    let patient = "SELECT set_config('idle_in_transaction_session_timeout', '0', true), set_config('application_name', $1, true)";
    sqlx::query(patient).bind(RESTORES).execute(&mut *transaction).await.map_err(unavailable)?;
    refuse_used(&mut transaction).await?;
    sqlx::query("DELETE FROM token_keys").execute(&mut *transaction).await.map_err(unavailable)?;
    let mut ids = HashMap::new();
    while let Some(batch) = batches.next().await {
        let Arrivals { keys, objects, removed } = Arrivals::of(batch?, &mut received, meter);
        for key in keys {
            insert_key(&mut transaction, key).await?;
        }
        copy_objects(&mut transaction, &objects, &mut ids).await?;
        if !removed.is_empty() {
            let removed: Vec<i64> = removed.iter().map(|revision| revision.0 as i64).collect();
            let delete = sqlx::query("DELETE FROM objects WHERE resource_version = ANY($1)").bind(removed);
            delete.execute(&mut *transaction).await.map_err(unavailable)?;
        }
    }
    let (clock, lag) = (whole::number(Some(received.clock().0 as i64)), whole::number(Some(received.lag)));
    // No history comes with the objects.
    let set = format!(
        "UPDATE clock SET revision = {clock}, compacted = {clock}, lag = {lag}, made = NULL, \
             committed_ms = floor(extract(epoch FROM clock_timestamp()) * 1000); \
         DELETE FROM marks; INSERT INTO marks (at_ms, revision) SELECT committed_ms, revision FROM clock; \
         DELETE FROM floors; INSERT INTO floors (resource, revision) SELECT 0, compacted FROM clock"
    );
    whole::run(&mut transaction, set).await.map_err(unavailable)?;
    let written = sqlx::query_as(COUNTS).fetch_all(&mut *transaction).await.map_err(unavailable)?;
    compare(&received.counts, written)?;
    meter.step(Step::Syncing);
    transaction.commit().await.map_err(unavailable)?;
    Ok(received.counts)
}

/// Fails unless the store is new. Takes the clock's lock: a server that starts on this database waits, and then finds
/// it filled.
async fn refuse_used(connection: &mut PgConnection) -> Result<(), Error> {
    let clock: i64 = sqlx::query_scalar("SELECT revision FROM clock FOR UPDATE")
        .fetch_one(&mut *connection)
        .await
        .map_err(unavailable)?;
    let used: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM objects) OR EXISTS (SELECT 1 FROM changes)")
            .fetch_one(connection)
            .await
            .map_err(unavailable)?;
    if used || clock > 1 { Err(Error::NotEmpty(Revision(clock as u64))) } else { Ok(()) }
}

async fn insert_key(connection: &mut PgConnection, key: TokenKey) -> Result<(), storage::Error> {
    sqlx::query("INSERT INTO token_keys (id, created_at, secret) VALUES ($1, $2, $3)")
        .bind(key.id as i32)
        .bind(key.created_at)
        .bind(key.secret)
        .execute(connection)
        .await
        .map(drop)
        .map_err(unavailable)
}

/// Inserts objects. `ids` caches the ids of the resources that have occurred so far.
async fn copy_objects(
    connection: &mut PgConnection,
    objects: &[StoredObject],
    ids: &mut HashMap<GroupResource, i32>,
) -> Result<(), storage::Error> {
    if objects.is_empty() {
        return Ok(());
    }
    for object in objects {
        if !ids.contains_key(&object.resource) {
            let id = resource_id(connection, &object.resource).await?;
            ids.insert(object.resource.clone(), id);
        }
    }
    let mut copy = connection
        .copy_in_raw(
            "COPY objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value) \
             FROM STDIN (FORMAT binary)",
        )
        .await
        .map_err(unavailable)?;
    copy.send(copied(objects, ids)).await.map_err(unavailable)?;
    copy.finish().await.map(drop).map_err(unavailable)
}

/// Rows in the binary format of COPY: a header; for each row its number of fields, and each field behind its length; a
/// trailer.
fn copied(objects: &[StoredObject], ids: &HashMap<GroupResource, i32>) -> Vec<u8> {
    let values: usize = objects.iter().map(|object| object.value.len()).sum();
    let mut out = Vec::with_capacity(values + 256 * objects.len());
    out.extend_from_slice(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0");
    for object in objects {
        let id = ids.get(&object.resource).copied().unwrap_or_default();
        let revision = object.revision.0.to_be_bytes();
        let fields: [&[u8]; 8] = [
            &revision,
            &id.to_be_bytes(),
            object.namespace.as_bytes(),
            object.name.as_bytes(),
            &[0],
            object.uid.as_bytes(),
            object.stored_version.as_bytes(),
            &object.value,
        ];
        out.extend_from_slice(&(fields.len() as i16).to_be_bytes());
        for field in fields {
            out.extend_from_slice(&(field.len() as i32).to_be_bytes());
            out.extend_from_slice(field);
        }
    }
    out.extend_from_slice(&(-1_i16).to_be_bytes());
    out
}

async fn resource_id(connection: &mut PgConnection, resource: &GroupResource) -> Result<i32, storage::Error> {
    sqlx::query_scalar(
        "INSERT INTO resources (api_group, plural) VALUES ($1, $2) \
         ON CONFLICT (api_group, plural) DO UPDATE SET plural = excluded.plural RETURNING id",
    )
    .bind(&*resource.group)
    .bind(&*resource.plural)
    .fetch_one(connection)
    .await
    .map_err(unavailable)
}
