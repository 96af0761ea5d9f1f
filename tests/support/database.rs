//! An empty store of any kind, as a single type.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::TryStreamExt as _;
use rowplane::revision::Revision;
use rowplane::server::datastore::Datastore;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Backend, OpenError, memory};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::postgres::{self, Schema};

const NOT_SQL: &str = "a store in memory has neither a URL nor SQL";

/// Removed when it is dropped.
pub enum Database {
    Sqlite(tempfile::TempDir),
    Postgres(Schema),
    /// The same store each time it is opened.
    Memory(Arc<dyn Backend>),
}

/// A table that every store has in some form.
#[derive(Clone, Copy, Debug)]
pub enum Table {
    Objects,
    Changes,
    TokenKeys,
}

impl Database {
    pub fn sqlite() -> Self {
        Database::Sqlite(tempfile::tempdir().expect("a temporary directory"))
    }

    pub async fn postgres() -> Self {
        Database::Postgres(Schema::create().await)
    }

    pub fn memory() -> Self {
        Database::Memory(memory::open())
    }

    /// Opens the store as a server would.
    pub async fn open(&self) -> Arc<dyn Backend> {
        self.try_open().await.expect("open the store")
    }

    pub async fn try_open(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(match self {
            Database::Sqlite(_) => Arc::new(Sqlite::open(&self.file()).await?),
            Database::Postgres(schema) => Arc::new(Postgres::open(&schema.url()).await?),
            Database::Memory(store) => store.clone(),
        })
    }

    /// The value for the flag `--datastore`.
    pub fn url(&self) -> String {
        match self {
            Database::Sqlite(_) => format!("sqlite:{}", self.file().display()),
            Database::Postgres(schema) => schema.url(),
            Database::Memory(_) => "memory:".to_owned(),
        }
    }

    /// The parsed value of the flag `--datastore`.
    pub fn datastore(&self) -> Datastore {
        match self {
            Database::Sqlite(_) => Datastore::Sqlite(self.file()),
            Database::Postgres(schema) => Datastore::Postgres(schema.url().into()),
            Database::Memory(_) => Datastore::Memory,
        }
    }

    /// Executes a statement directly in the database.
    pub async fn execute(&self, statement: &str) {
        match self {
            Database::Sqlite(_) => {
                let mut connection = self.connect_sqlite().await;
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("execute");
                connection.close().await.expect("close");
            }
            Database::Postgres(schema) => postgres::execute(&schema.url(), statement).await,
            Database::Memory(_) => panic!("{NOT_SQL}"),
        }
    }

    /// The number that a query returns directly from the database.
    pub async fn number(&self, query: &str) -> i64 {
        let query = sqlx::AssertSqlSafe(query);
        match self {
            Database::Sqlite(_) => {
                let mut connection = self.connect_sqlite().await;
                sqlx::query_scalar(query).fetch_one(&mut connection).await.expect("query")
            }
            Database::Postgres(schema) => {
                let mut connection = postgres::connect(&schema.url()).await;
                sqlx::query_scalar(query).fetch_one(&mut connection).await.expect("query")
            }
            Database::Memory(_) => panic!("{NOT_SQL}"),
        }
    }

    /// The number of rows in a table, including unused ones.
    pub async fn rows(&self, table: Table) -> i64 {
        let Database::Memory(store) = self else {
            let name = match table {
                Table::Objects => "objects",
                Table::Changes => "changes",
                Table::TokenKeys => "token_keys",
            };
            return self.number(&format!("SELECT COUNT(*) FROM {name}")).await;
        };
        let rows = match table {
            Table::Objects => {
                let newest = store.clock().await.expect("clock").revision;
                let revisions = (0..=newest.0).map(Revision).collect();
                let blocks = store.rows_of(revisions).await.expect("rows");
                let blocks: Vec<_> = blocks.try_collect().await.expect("rows");
                blocks.iter().map(Vec::len).sum()
            }
            Table::Changes => {
                let (oldest, clock) = (store.oldest_change().await, store.clock().await.expect("clock"));
                let compacted = match oldest.expect("the oldest change") {
                    Some(oldest) => clock.compacted.0.saturating_sub(oldest.0 - 1),
                    None => 0,
                };
                let rest = store.changes(clock.compacted, None, u32::MAX).await.expect("changes");
                compacted as usize + rest.rows.len()
            }
            Table::TokenKeys => store.token_keys(0, i64::MAX / 4).await.expect("keys").len(),
        };
        rows as i64
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> PathBuf {
        match self {
            Database::Sqlite(directory) => directory.path().join("rowplane.db"),
            Database::Postgres(_) | Database::Memory(_) => panic!("this store has no file"),
        }
    }

    async fn connect_sqlite(&self) -> SqliteConnection {
        let url = format!("sqlite://{}?mode=rwc", self.file().display());
        SqliteConnection::connect(&url).await.expect("open the file")
    }
}
