//! The live keys of kine's table, in SQLite or PostgreSQL. A row is a version of a key; its id is the version's
//! revision.

use std::path::Path;

use futures_util::stream::{BoxStream, StreamExt as _};
use rowplane_store::storage::postgres::{Address, foreign_snapshot};
use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};

use crate::{Error, KeyValue};

/// Rows that are read at once.
const PAGE: i64 = 500;

/// Selects the newest revision, and the number of live keys. Rows that kine writes for revisions that it has lost are
/// no keys; its own `compact_rev_key` is one that stands for no object.
const EXTENT: &str = "SELECT CAST(COALESCE(MAX(id), 0) AS BIGINT), \
     (SELECT COUNT(*) FROM kine AS k WHERE k.deleted = 0 AND k.name NOT LIKE 'gap-%' \
      AND NOT EXISTS (SELECT 1 FROM kine AS n WHERE n.name = k.name AND n.id > k.id)) FROM kine";

/// Selects the next live keys after a revision, as [`Row`]s. The index on name and id serves the inner query.
const NEXT: &str = "SELECT CAST(k.id AS BIGINT), k.name, k.value FROM kine AS k WHERE k.id > $1 AND k.deleted = 0 \
     AND k.name NOT LIKE 'gap-%' AND NOT EXISTS (SELECT 1 FROM kine AS n WHERE n.name = k.name AND n.id > k.id) \
     ORDER BY k.id LIMIT $2";
type Row = (i64, String, Option<Vec<u8>>);

/// A table that is open for reading, in one snapshot.
pub struct Kine {
    connection: Connection,
    revision: u64,
    count: u64,
}

enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Kine {
    /// Opens the table of a URL: `sqlite:PATH`, or `postgres://USER@HOST/DATABASE`.
    pub async fn open(url: &str) -> Result<Self, Error> {
        let mut connection = match url.strip_prefix("sqlite:") {
            Some(path) => {
                let options = SqliteConnectOptions::new().filename(Path::new(path)).read_only(true);
                let mut connection = options.disable_statement_logging().connect().await?;
                sqlx::query("BEGIN").execute(&mut connection).await?;
                Connection::Sqlite(connection)
            }
            None => Connection::Postgres(foreign_snapshot(&Address::from(url)).await?),
        };
        let (revision, count): (i64, i64) = match &mut connection {
            Connection::Sqlite(connection) => sqlx::query_as(EXTENT).fetch_one(connection).await?,
            Connection::Postgres(connection) => sqlx::query_as(EXTENT).fetch_one(connection).await?,
        };
        Ok(Self { connection, revision: revision.unsigned_abs(), count: count.unsigned_abs() })
    }

    /// The newest revision.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The number of live keys.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The live keys in batches, in the order of their revisions. An error ends the stream.
    pub fn keys(self) -> BoxStream<'static, Result<Vec<KeyValue>, Error>> {
        let pages = futures_util::stream::unfold(Some((self.connection, 0)), |reading| async move {
            let (mut connection, after) = reading?;
            match connection.next(after).await {
                Ok(rows) => {
                    let last = rows.last().map(|row| row.0)?;
                    Some((Ok(rows.into_iter().map(KeyValue::from).collect()), Some((connection, last))))
                }
                Err(error) => Some((Err(error.into()), None)),
            }
        });
        pages.boxed()
    }
}

impl Connection {
    async fn next(&mut self, after: i64) -> Result<Vec<Row>, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => {
                sqlx::query_as(NEXT).bind(after).bind(PAGE).fetch_all(connection).await
            }
            Self::Postgres(connection) => {
                sqlx::query_as(NEXT).bind(after).bind(PAGE).fetch_all(connection).await
            }
        }
    }
}

impl From<Row> for KeyValue {
    fn from((id, name, value): Row) -> Self {
        Self { key: name.into_bytes(), mod_revision: id.unsigned_abs(), value: value.unwrap_or_default() }
    }
}
