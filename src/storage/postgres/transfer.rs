//! Moving a whole store out of PostgreSQL, beside servers that may be running, and into it.

use futures_util::{StreamExt, TryStreamExt};
use sqlx::Connection;
use sqlx::postgres::PgConnection;
use tokio::sync::mpsc;

use super::error::unavailable;
use super::session::{Connector, Purpose};
use super::{Address, MIGRATIONS, Postgres, connector, reads, unreachable};
use crate::revision::Revision;
use crate::storage::inventory::{self, Inventory};
use crate::storage::stale::PROTOBUF;
use crate::storage::stream::{ROWS_AHEAD, stream};
use crate::storage::transfer::{
    COUNTS, Counts, Error, Export, LIVE_OBJECTS, RECORDS_AT_ONCE, Record, StoredObject, TOKEN_KEYS,
    clock_after, compare,
};
use crate::storage::{self, TokenKey, migrations, transfer};

impl Postgres {
    /// The newest state of the store, from one snapshot. Takes no lock: servers go on writing.
    pub async fn export(address: &Address) -> Result<Export, Error> {
        let Snapshot { mut connection, revision, connector, .. } = snapshot(address).await?;
        let (sender, receiver) = mpsc::channel(ROWS_AHEAD);
        let records = stream(receiver, async move {
            send(&mut connection, &sender).await;
            drop(connector);
        });
        Ok(Export { revision, records })
    }

    /// What is in the store, from one snapshot. Takes no lock either.
    pub async fn inventory(address: &Address) -> Result<Inventory, Error> {
        let Snapshot { mut connection, revision, schema, connector: _connector } = snapshot(address).await?;
        let stored = sqlx::query_as(include_str!("../sql/stored_versions.sql")).bind(PROTOBUF);
        let stored = stored.fetch_all(&mut connection).await.map_err(unavailable)?;
        let registered = match schema >= inventory::REGISTRY {
            true => sqlx::query_as(include_str!("../sql/registered_versions.sql"))
                .fetch_all(&mut connection)
                .await
                .map_err(unavailable)?,
            false => Vec::new(),
        };
        Ok(Inventory::new(revision, stored, registered))
    }

    /// Fills this store, which has to be new. All of it is one transaction.
    pub async fn import(&self, export: Export) -> Result<Counts, Error> {
        let mut connection = self.pool.acquire().await?;
        import(&mut connection, export).await
    }
}

/// A connection that holds a snapshot of a store that is only read.
struct Snapshot {
    connection: PgConnection,
    /// The connection may lead through its link.
    connector: Connector,
    revision: Revision,
    /// The newest migration of its schema.
    schema: i64,
}

async fn snapshot(address: &Address) -> Result<Snapshot, Error> {
    let (connector, shown) = connector(address).await?;
    let unreachable = |source| unreachable(&shown, source);
    let mut connection = connector.connect(Purpose::Whole).await.map_err(unreachable)?;
    let newest = sqlx::query_scalar("SELECT MAX(version) FROM _sqlx_migrations");
    let schema: i64 = newest.fetch_one(&mut connection).await.map_err(unreachable)?;
    migrations::refuse_newer(&MIGRATIONS, schema)?;
    sqlx::query(reads::SNAPSHOT).execute(&mut connection).await.map_err(unavailable)?;
    let revision = reads::clock(&mut connection).await?.revision;
    Ok(Snapshot { connection, connector, revision, schema })
}

/// Sends everything in the snapshot that the connection holds, until nobody listens.
async fn send(connection: &mut PgConnection, records: &mpsc::Sender<Result<Record, Error>>) {
    let keys = sqlx::query_as(TOKEN_KEYS).fetch_all(&mut *connection).await.map_err(unavailable);
    let keys = match keys {
        Ok(keys) => keys,
        Err(error) => return drop(records.send(Err(error.into())).await),
    };
    let objects = sqlx::query_as(LIVE_OBJECTS).fetch(connection).map_err(unavailable);
    transfer::send(keys, objects, records).await;
}

async fn import(connection: &mut PgConnection, export: Export) -> Result<Counts, Error> {
    let mut transaction = connection.begin().await.map_err(unavailable)?;
    // The records may be slow to come.
    sqlx::query("SET LOCAL idle_in_transaction_session_timeout = 0")
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    // The clock's lock comes first: a server that starts on this database now waits, and finds it filled.
    let clock: i64 = sqlx::query_scalar("SELECT revision FROM clock FOR UPDATE")
        .fetch_one(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let used: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM objects) OR EXISTS (SELECT 1 FROM changes)")
            .fetch_one(&mut *transaction)
            .await
            .map_err(unavailable)?;
    if used || clock > 1 {
        return Err(Error::NotEmpty(Revision(clock as u64)));
    }
    sqlx::query("DELETE FROM token_keys").execute(&mut *transaction).await.map_err(unavailable)?;
    let mut read = Counts::new();
    let mut records = export.records.chunks(RECORDS_AT_ONCE);
    while let Some(chunk) = records.next().await {
        let mut objects = Vec::with_capacity(chunk.len());
        for record in chunk {
            match record? {
                Record::TokenKey(key) => insert_key(&mut transaction, key).await?,
                Record::Object(object) => {
                    *read.entry(object.resource.clone()).or_default() += 1;
                    objects.push(object);
                }
            }
        }
        insert_objects(&mut transaction, &objects).await?;
    }
    sqlx::query("UPDATE clock SET revision = $1, compacted = $1")
        .bind(clock_after(export.revision).0 as i64)
        .execute(&mut *transaction)
        .await
        .map_err(unavailable)?;
    let written = sqlx::query_as(COUNTS).fetch_all(&mut *transaction).await.map_err(unavailable)?;
    compare(&read, written)?;
    transaction.commit().await.map_err(unavailable)?;
    Ok(read)
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

async fn insert_objects(
    connection: &mut PgConnection,
    objects: &[StoredObject],
) -> Result<(), storage::Error> {
    let groups = objects.iter().map(|object| &*object.resource.group).collect::<Vec<_>>();
    let plurals = objects.iter().map(|object| &*object.resource.plural).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO resources (api_group, plural) SELECT DISTINCT * FROM unnest($1::text[], $2::text[]) \
         ON CONFLICT DO NOTHING",
    )
    .bind(&groups)
    .bind(&plurals)
    .execute(&mut *connection)
    .await
    .map_err(unavailable)?;
    let texts = |pick: fn(&StoredObject) -> &str| objects.iter().map(pick).collect::<Vec<_>>();
    sqlx::query(
        "INSERT INTO objects (resource_version, resource, namespace, name, deleted, uid, stored_version, value)
         SELECT o.revision, r.id, o.namespace, o.name, false, o.uid, o.stored_version, o.value
         FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::bytea[])
             AS o (api_group, plural, revision, namespace, name, uid, stored_version, value)
         JOIN resources r ON r.api_group = o.api_group AND r.plural = o.plural",
    )
    .bind(&groups)
    .bind(&plurals)
    .bind(objects.iter().map(|object| object.revision.0 as i64).collect::<Vec<_>>())
    .bind(texts(|object| &object.namespace))
    .bind(texts(|object| &object.name))
    .bind(texts(|object| &object.uid))
    .bind(texts(|object| &object.stored_version))
    .bind(objects.iter().map(|object| &object.value[..]).collect::<Vec<_>>())
    .execute(connection)
    .await
    .map(drop)
    .map_err(unavailable)
}
