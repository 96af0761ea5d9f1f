//! A schema of its own for every test, in the PostgreSQL cluster that `./test` starts.

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

use super::proxy::Target;

/// Dropped, with all that is in it, at the end of the test.
pub struct Schema {
    name: String,
}

impl Schema {
    pub async fn create() -> Self {
        let name = format!("t_{:016x}", rand::random::<u64>());
        // A role of its own tells in pg_stat_activity whose a connection is.
        let make = format!("CREATE ROLE {name} LOGIN; CREATE SCHEMA {name} AUTHORIZATION {name}");
        execute(&cluster(), &make).await;
        Self { name }
    }

    /// Of the schema, and of the role that owns it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A URL whose connections find and make their tables in this schema.
    pub fn url(&self) -> String {
        format!("{}?user={}&options=-csearch_path%3D{}", cluster(), self.name, self.name)
    }

    /// The same, where the cluster is reached through a port of this machine.
    pub fn url_through(&self, port: u16) -> String {
        let server = format!("postgres://127.0.0.1:{port}/postgres?sslmode=disable");
        format!("{server}&user={}&options=-csearch_path%3D{}", self.name, self.name)
    }

    /// Where the cluster listens.
    pub fn target(&self) -> Target {
        let options: PgConnectOptions = cluster().parse().expect("the URL of the cluster");
        let socket = options.get_socket().expect("a cluster that listens on a socket");
        Target::Unix(socket.join(format!(".s.PGSQL.{}", options.get_port())))
    }

    /// Ends every connection that works in this schema, as a restart or a network would. Returns how many.
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
    /// On a thread of its own: the test's runtime may be the thing that is being torn down.
    fn drop(&mut self) {
        // Who is still at work there would hold it up.
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

/// The cluster's URL, without options: its administrator's.
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
