//! Engines that speak PostgreSQL's protocol, and lack what PostgreSQL has.

use std::sync::Arc;

use rowplane::revision::Revision;
use rowplane::storage::postgres::Postgres;
use rowplane::storage::{Key, Reads as _, Upkeep as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

use crate::support::client::{Client, Protocol};
use crate::support::cluster::Cluster;
use crate::support::object::{create, give_up, pass, resource};
use crate::support::process::Installation;
use crate::support::proxy::Target;
use crate::support::server::{config_map, rv};

/// A way to a cluster on which LISTEN is no statement.
struct Deaf {
    port: u16,
    accepting: JoinHandle<()>,
}

impl Deaf {
    async fn start(cluster: &Cluster) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let Target::Unix(target) = cluster.target() else { panic!("clusters of tests are behind sockets") };
        let accepting = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.expect("accept");
                let server = UnixStream::connect(&target).await.expect("connect");
                tokio::spawn(carry(client, server));
            }
        });
        Self { port, accepting }
    }

    fn url(&self) -> String {
        format!(
            "postgres://simple@127.0.0.1:{}/postgres?sslmode=disable&options=-csearch_path%3Dsimple",
            self.port
        )
    }
}

impl Drop for Deaf {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn carry(client: TcpStream, server: UnixStream) {
    let ((mut from_client, mut to_client), (mut from_server, mut to_server)) =
        (client.into_split(), server.into_split());
    let up = async {
        // The first message has no type.
        let mut first = true;
        while let Some(mut message) = message(&mut from_client, !std::mem::take(&mut first)).await {
            if let Some(at) = memchr::memmem::find(&message, b"LISTEN \"") {
                message[at..at + 6].copy_from_slice(b"LISTEM");
            }
            if to_server.write_all(&message).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

/// A whole message of the protocol. `None` at the end.
async fn message(from: &mut (impl AsyncRead + Unpin), typed: bool) -> Option<Vec<u8>> {
    let head = if typed { 5 } else { 4 };
    let mut message = vec![0; head];
    from.read_exact(&mut message).await.ok()?;
    let length = u32::from_be_bytes(message[head - 4..].try_into().expect("four bytes")) as usize;
    message.resize(head - 4 + length, 0);
    from.read_exact(&mut message[head..]).await.ok()?;
    Some(message)
}

/// A cluster whose functions for notifications and advisory locks may not be called by the server's role.
async fn simple_cluster() -> Cluster {
    let cluster = Cluster::create().await;
    cluster
        .execute(
            "DO $$ DECLARE f regprocedure; BEGIN \
               FOR f IN SELECT oid FROM pg_proc WHERE proname = 'pg_notify' OR proname LIKE '%advisory%' LOOP \
                 EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f); END LOOP; END $$; \
             CREATE ROLE simple LOGIN; CREATE SCHEMA simple AUTHORIZATION simple",
        )
        .await;
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polling_and_rows_take_the_place_of_what_is_missing() {
    let cluster = simple_cluster().await;
    let deaf = Deaf::start(&cluster).await;
    // Both make the schema, or wait until it is made.
    let (one, other) = tokio::join!(Postgres::open(deaf.url()), Postgres::open(deaf.url()));
    let (one, other) = (Arc::new(one.expect("open")), other.expect("open"));
    let resource = resource(&*one, "things").await;
    let key = |name: &str| Key::new(resource, "ns", name);
    let first = pass(&*one, create(&key("a"), 1)).await;
    pass(&other, create(&key("b"), 1)).await;
    assert_eq!(one.clock().await.expect("a clock").revision.0, first.0 + 1);
    // Two sweep at once, and each change is removed once.
    give_up(&*one, Revision(first.0 + 1)).await;
    let mut swept = 0;
    while swept < 2 {
        let (mine, theirs) = tokio::join!(one.sweep(1), other.sweep(1));
        swept += mine.expect("sweep").changes + theirs.expect("sweep").changes;
    }
    assert_eq!(swept, 2);
    one.close().await;
    other.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_serve_on_an_engine_without_notifications_and_advisory_locks() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let cluster = simple_cluster().await;
    let deaf = Deaf::start(&cluster).await;
    let one = Installation::sqlite().with(&format!("--datastore={}", deaf.url()));
    let other = Installation::sqlite().with(&format!("--datastore={}", deaf.url()));
    let servers = [one.start().await, other.start().await];
    let clients = [&one, &other].map(|installation| {
        let kubeconfig =
            kube::config::Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
        Client::of_certificate(&kubeconfig, Protocol::Any)
    });
    let mut watch = clients[1].watch(format!("{MAPS}?watch=1")).await;
    let made = clients[0].post(MAPS, &config_map("a", serde_json::json!({}))).await.expect(201);
    assert_eq!(rv(&watch.expect("ADDED").await), rv(&made), "found by asking");
    for server in servers {
        server.terminate().await;
        assert!(server.end().await.success());
    }
    for installation in [&one, &other] {
        let log = std::fs::read_to_string(installation.dir().join("server.log")).expect("a log");
        for told in ["has no LISTEN", "has no pg_notify", "has no advisory locks"] {
            assert_eq!(log.matches(told).count(), 1, "{told}: {log}");
        }
        assert!(!log.contains("ERROR"), "{log}");
    }
}
