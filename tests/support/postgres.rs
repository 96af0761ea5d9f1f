//! A separate schema for every test, in the PostgreSQL cluster that `./test` starts.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

use super::proxy::Target;

/// A schema that is dropped with its content at the end of the test.
pub struct Schema {
    name: String,
}

impl Schema {
    pub async fn create() -> Self {
        let name = format!("t_{:016x}", rand::random::<u64>());
        // With a role of its own, a connection's owner can be seen in pg_stat_activity.
        let make = format!("CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}");
        execute(&cluster(), &make).await;
        Self { name }
    }

    /// The name of the schema and of the role that owns it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A URL whose connections use this schema.
    pub fn url(&self) -> String {
        format!("{}?user={}&options=-csearch_path%3D{}", cluster(), self.name, self.name)
    }

    /// Like [`Schema::url`], for a cluster that is reached through a port of this machine.
    pub fn url_through(&self, port: u16) -> String {
        let server = format!("postgres://127.0.0.1:{port}/postgres?sslmode=disable");
        format!("{server}&user={}&options=-csearch_path%3D{}", self.name, self.name)
    }

    /// The address of the cluster.
    pub fn target(&self) -> Target {
        let options: PgConnectOptions = cluster().parse().expect("the URL of the cluster");
        let socket = options.get_socket().expect("a cluster that listens on a socket");
        Target::Unix(socket.join(format!(".s.PGSQL.{}", options.get_port())))
    }

    /// Ends every connection that uses this schema, as a restart or a network failure would. Returns their number.
    pub async fn kill_connections(&self) -> i64 {
        let mut connection = connect(&cluster()).await;
        sqlx::query_scalar("SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = $1")
            .bind(&self.name)
            .fetch_one(&mut connection)
            .await
            .expect("terminate backends")
    }
}

impl Drop for Schema {
    /// Drops the schema on a thread of its own, since the test's runtime may be shutting down.
    fn drop(&mut self) {
        // Open connections would block the statement.
        let statement = format!(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{0}'; \
             DROP SCHEMA {0} CASCADE; DROP OWNED BY {0}; DROP ROLE {0}",
            self.name
        );
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(execute(&cluster(), &statement));
        });
        if dropped.join().is_err() {
            eprintln!("schema {} was not dropped", self.name);
        }
    }
}

/// The URL of the cluster's administrator, without options.
pub fn cluster() -> String {
    std::env::var("ROWPLANE_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!("ROWPLANE_TEST_POSTGRES is not set: run ./test, which starts a PostgreSQL")
    })
}

pub async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("connect to the cluster of ROWPLANE_TEST_POSTGRES")
}

pub async fn execute(url: &str, statement: &str) {
    let mut connection = connect(url).await;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.expect("execute");
}
