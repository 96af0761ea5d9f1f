//! An empty database of either kind, behind one type.

use std::path::PathBuf;
use std::sync::Arc;

use rowplane::server::datastore::Datastore;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::sqlite::Sqlite;
use rowplane::storage::{Backend, OpenError};
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::postgres::{self, Schema};

/// Gone when dropped.
pub enum Database {
    Sqlite(tempfile::TempDir),
    Postgres(Schema),
}

impl Database {
    pub fn sqlite() -> Self {
        Database::Sqlite(tempfile::tempdir().expect("a temporary directory"))
    }

    pub async fn postgres() -> Self {
        Database::Postgres(Schema::create().await)
    }

    /// Opens the store as a server would.
    pub async fn open(&self) -> Arc<dyn Backend> {
        self.try_open().await.expect("open the store")
    }

    pub async fn try_open(&self) -> Result<Arc<dyn Backend>, OpenError> {
        Ok(match self {
            Database::Sqlite(_) => Arc::new(Sqlite::open(&self.file()).await?),
            Database::Postgres(schema) => Arc::new(Postgres::open(&schema.url()).await?),
        })
    }

    /// As a flag would name it.
    pub fn datastore(&self) -> Datastore {
        match self {
            Database::Sqlite(_) => Datastore::Sqlite(self.file()),
            Database::Postgres(schema) => Datastore::Postgres(schema.url().into()),
        }
    }

    /// Runs a statement behind the store's back.
    pub async fn execute(&self, statement: &str) {
        match self {
            Database::Sqlite(_) => {
                let mut connection = self.connect_sqlite().await;
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("execute");
                connection.close().await.expect("close");
            }
            Database::Postgres(schema) => postgres::execute(&schema.url(), statement).await,
        }
    }

    /// The number a query answers with, asked behind the store's back.
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
        }
    }

    /// The file of a SQLite database.
    pub fn file(&self) -> PathBuf {
        match self {
            Database::Sqlite(directory) => directory.path().join("rowplane.db"),
            Database::Postgres(_) => panic!("a PostgreSQL database has no file"),
        }
    }

    async fn connect_sqlite(&self) -> SqliteConnection {
        let url = format!("sqlite://{}?mode=rwc", self.file().display());
        SqliteConnection::connect(&url).await.expect("open the file")
    }
}
