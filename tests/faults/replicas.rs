//! The servers of a run and their database.

use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex as StdMutex};

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Connection};
use tokio::sync::Mutex;

use super::cluster::{self, Cluster};
use super::failovers::Promotion;
use super::history::{Promise, Violation};
use super::log::Row;
use super::proxy::Target;
use super::records;
use super::releases::Releases;
use super::server::Server;

pub enum Database {
    Sqlite,
    Postgres(Primary),
}

/// The cluster to which servers connect. A failover replaces it.
pub struct Primary(StdMutex<Arc<Cluster>>);

impl Primary {
    pub fn get(&self) -> Arc<Cluster> {
        self.0.lock().unwrap().clone()
    }

    pub fn replace(&self, cluster: Arc<Cluster>) {
        *self.0.lock().unwrap() = cluster;
    }
}

impl Database {
    pub async fn postgres() -> Self {
        Database::Postgres(Primary(StdMutex::new(Arc::new(Cluster::on_a_disk_of_its_own().await))))
    }

    /// The address to which servers connect, if they use a network.
    pub fn target(&self) -> Option<Target> {
        match self {
            Database::Sqlite => None,
            Database::Postgres(primary) => Some(primary.get().target()),
        }
    }
}

/// The servers and their database.
pub struct Replicas {
    pub servers: Vec<Server>,
    pub database: Database,
    /// The standbys that have taken over so far. Locked while a fault disturbs the database.
    pub database_turn: Mutex<Vec<Promotion>>,
    /// Rows that were written without a registration.
    pub unfenced: AtomicUsize,
    pub releases: Releases,
}

impl Replicas {
    /// Servers that have ended without being told to.
    pub async fn deaths(&self) -> Vec<Violation> {
        let mut violations = self.panics();
        for server in &self.servers {
            if server.process().await.as_mut().is_none_or(|process| process.has_ended()) {
                violations.push(Violation::new(
                    Promise::Recovered,
                    format!("a server has ended: {}", server.installation.log()),
                ));
            }
        }
        violations
    }

    /// How many calls of servers and of the present database have met a disk in trouble.
    pub fn struck_calls(&self) -> u32 {
        let servers: u32 = self.servers.iter().map(|server| server.installation.disk.struck()).sum();
        let database = match &self.database {
            Database::Postgres(primary) => primary.get().disk().map_or(0, |disk| disk.struck()),
            Database::Sqlite => 0,
        };
        servers + database
    }

    pub fn panics(&self) -> Vec<Violation> {
        let lines = self.servers.iter().flat_map(Server::panics);
        lines.map(|line| Violation::new(Promise::Recovered, line)).collect()
    }

    pub async fn install_witness(&self) -> u64 {
        match &self.database {
            Database::Postgres(primary) => primary.get().install_witness().await,
            Database::Sqlite => {
                let mut file = self.file().await;
                let statement = "BEGIN IMMEDIATE; \
                     CREATE TABLE witness (revision INTEGER, resource INTEGER, namespace TEXT, name TEXT, deleted INTEGER, uid TEXT, value BLOB); \
                     CREATE TRIGGER witness AFTER INSERT ON objects BEGIN \
                       INSERT INTO witness VALUES (NEW.resource_version, NEW.resource, NEW.namespace, NEW.name, NEW.deleted, NEW.uid, NEW.value); END; \
                     CREATE TABLE witness_start AS SELECT revision FROM clock; COMMIT";
                sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut file).await.expect("the witness");
                let start: i64 = sqlx::query_scalar("SELECT revision FROM witness_start")
                    .fetch_one(&mut file)
                    .await
                    .expect("a clock");
                start as u64
            }
        }
    }

    pub async fn witnessed(&self) -> Vec<Row> {
        match &self.database {
            Database::Postgres(primary) => primary.get().witnessed().await,
            Database::Sqlite => {
                let mut file = self.file().await;
                let rows = sqlx::query_as(cluster::WITNESSED)
                    .fetch_all(&mut file)
                    .await
                    .expect("what was witnessed");
                rows.into_iter().map(cluster::row).collect()
            }
        }
    }

    /// The record of these resources.
    pub async fn records(&self, plurals: &[&str]) -> Vec<records::Row> {
        let query = AssertSqlSafe(records::select(plurals));
        let rows = match &self.database {
            Database::Postgres(primary) => {
                let mut connection = primary.get().try_connect().await.expect("connect");
                sqlx::query_as(query).fetch_all(&mut connection).await
            }
            Database::Sqlite => sqlx::query_as(query).fetch_all(&mut self.file().await).await,
        };
        rows.expect("what was witnessed").into_iter().map(records::row).collect()
    }

    pub async fn clock(&self) -> u64 {
        let query = "SELECT revision FROM clock";
        let revision: i64 = match &self.database {
            Database::Postgres(primary) => primary.get().number(query).await,
            Database::Sqlite => {
                sqlx::query_scalar(query).fetch_one(&mut self.file().await).await.expect("a clock")
            }
        };
        revision as u64
    }

    /// The rows of a query for one text.
    pub async fn texts(&self, query: &str) -> Vec<String> {
        match &self.database {
            Database::Postgres(primary) => {
                let mut connection = primary.get().try_connect().await.expect("connect");
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut connection).await.expect("query")
            }
            Database::Sqlite => {
                let mut file = self.file().await;
                sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&mut file).await.expect("query")
            }
        }
    }

    /// The database of the only server.
    async fn file(&self) -> SqliteConnection {
        let path = self.servers[0].installation.dir().join("state.db");
        SqliteConnection::connect(&format!("sqlite://{}", path.display())).await.expect("open the file")
    }
}
