//! PgBouncer between a server and its database.

use std::path::Path;
use std::process::Stdio;

use rowplane::storage::postgres::Postgres;
use rowplane::storage::{Key, OpenError, Upkeep as _};
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Child;

use crate::support::cluster::{Cluster, pause};
use crate::support::object::{create, pass, resource};
use crate::support::optional;
use crate::support::postgres_programs::as_user;

struct Pooler {
    url: String,
    _process: Child,
    _directory: TempDir,
}

impl Pooler {
    async fn start(program: &Path, cluster: &Cluster, mode: &str) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let reserved = TcpSocket::new_v4().expect("a socket");
        reserved.set_reuseaddr(true).expect("SO_REUSEADDR");
        reserved.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let port = reserved.local_addr().expect("bound").port();
        let settings = format!(
            "[databases]\npostgres = host=127.0.0.1 port={} user=rowplane\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\ndefault_pool_size = 40\n",
            cluster.port()
        );
        let file = directory.path().join("pgbouncer.ini");
        std::fs::write(&file, settings).expect("write");
        // The database's user reads it.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(directory.path(), open).expect("chmod");
        // It refuses to run as root, as PostgreSQL does.
        let process = as_user(program)
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("start PgBouncer");
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            pause().await;
        }
        let url = format!("postgres://rowplane@127.0.0.1:{port}/postgres?sslmode=disable");
        Self { url, _process: process, _directory: directory }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_pooler_that_lends_whole_sessions_is_used() {
    let Some(program) = optional::program("get-pgbouncer", "poolers").await else { return };
    let cluster = Cluster::listening(&[]).await;
    for (mode, shown) in [("transaction", "transaction"), ("statement", "statement")] {
        let pooler = Pooler::start(&program, &cluster, mode).await;
        // The second attempt meets what the first one has left behind in the pooler's sessions.
        for _ in 0..2 {
            match Postgres::open(&pooler.url).await.err() {
                Some(OpenError::Refused { reason, .. }) => {
                    assert!(
                        reason.contains(&format!("pool_mode = {shown}")) && !reason.contains('\n'),
                        "{reason}"
                    );
                }
                other => panic!("{mode}: {other:?}"),
            }
        }
    }
    let pooler = Pooler::start(&program, &cluster, "session").await;
    let store = Postgres::open(&pooler.url).await.expect("sessions");
    let resource = resource(&store, "things").await;
    pass(&store, create(&Key::new(resource, "ns", "a"), 1)).await;
    store.close().await;
}
