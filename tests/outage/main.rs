//! The database is unreachable, blocked or failing: what is answered meanwhile, and that everything recovers by itself.

#[path = "../support/mod.rs"]
mod support;

mod definitions;
mod disk;

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use http_body_util::BodyExt as _;
use kube::config::Kubeconfig;
use rowplane::server::datastore::Datastore;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Executor as _};

use crate::support::client::{Answer, Client, Protocol};
use crate::support::database::Database;
use crate::support::postgres::Schema;
use crate::support::process::{Installation, Process};
use crate::support::proxy::{Proxy, Target};
use crate::support::server::{CONFIGMAPS, Setup, TestServer, config_map, names, rv};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn client_of(installation: &Installation) -> Client {
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    Client::of_certificate(&kubeconfig, Protocol::Any)
}

/// A server whose way to PostgreSQL can be cut.
struct Distant {
    schema: Schema,
    proxy: Proxy,
    installation: Installation,
    _server: Process,
}

impl Distant {
    async fn start() -> Self {
        let schema = Schema::create().await;
        let proxy = Proxy::start(schema.target()).await;
        let through = format!("--datastore={}", schema.url_through(proxy.address().port()));
        let installation = Installation::sqlite().with(&through);
        let server = installation.start().await;
        Self { schema, proxy, installation, _server: server }
    }

    /// Leads to a port that is reserved, and on which nobody listens, as long as the answer lives.
    fn cut(&self) -> Installation {
        let nobody = Installation::sqlite();
        self.proxy.retarget(Target::Tcp(([127, 0, 0, 1], nobody.port()).into()));
        nobody
    }

    fn mend(&self) {
        self.proxy.retarget(self.schema.target());
    }
}

/// Checks that an answer is a 503 that tells when to try again.
#[track_caller]
fn unavailable(answer: &Answer) {
    let failure = answer.failure();
    assert_eq!(
        (&failure["code"], &failure["reason"]),
        (&json!(503), &json!("ServiceUnavailable")),
        "{answer:?}"
    );
    assert_eq!(answer.header("retry-after"), Some("1"), "{answer:?}");
    // The database's own message is only logged; the id identifies the log entry.
    let message = "the datastore does not answer as it should, please try again later";
    assert_eq!(failure["message"], message, "{answer:?}");
    assert!(answer.header("audit-id").is_some(), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_away_and_comes_back() {
    let server = Distant::start().await;
    let client = client_of(&server.installation);
    let mut watch = client.watch(format!("{MAPS}?watch=1")).await;
    let made = client.post(MAPS, &config_map("a", json!({"k": "v"}))).await.expect(201);
    let known = rv(&made);
    assert_eq!(watch.expect("ADDED").await, made);

    let _nobody = server.cut();
    let ready = loop {
        let ready = client.get("/readyz").await;
        if ready.status != 200 {
            break ready;
        }
    };
    assert!(ready.status == 500 && ready.text().contains("[-]datastore failed"), "{ready:?}");
    assert_eq!(client.get("/livez").await.status, 200);

    // From memory: everything that need not be the newest.
    let a = format!("{MAPS}/a");
    for query in ["resourceVersion=0".to_owned(), format!("resourceVersion={known}")] {
        assert_eq!(names(&client.get(format!("{MAPS}?{query}")).await.ok()), ["a"], "{query}");
        assert_eq!(client.get(format!("{a}?{query}")).await.ok(), made, "{query}");
    }
    // Without the database, neither the newest state can be read nor anything written.
    for answer in [
        client.get(MAPS).await,
        client.get(&a).await,
        client.get(format!("{MAPS}?resourceVersion={known}&resourceVersionMatch=Exact")).await,
        client.post(MAPS, &config_map("b", json!({}))).await,
        client.put(&a, &config_map("a", json!({}))).await,
        client.patch(&a, &json!({"data": {"k": "w"}})).await,
        client.delete(&a).await,
        client.delete(MAPS).await,
    ] {
        unavailable(&answer);
    }

    server.mend();
    while client.get("/readyz").await.status != 200 {}
    let written = loop {
        // The database is ready; the lease, without which this server may not write, may take another moment.
        let answer = client.post(MAPS, &config_map("c", json!({}))).await;
        if answer.status != 503 {
            break answer.expect(201);
        }
    };
    assert_eq!(names(&client.get(MAPS).await.ok()), ["a", "c"], "what was refused was not done");
    assert_eq!(client.get(&a).await.ok(), made);
    assert_eq!(watch.expect("ADDED").await, written, "the watch has gone on, and saw nothing else");
}

/// Another program holds the file's lock for writing, as a backup tool may.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_is_held_by_somebody_else() {
    let installation = Installation::sqlite().without_heartbeats();
    let _server = installation.start().await;
    let client = client_of(&installation);
    let made = client.post(MAPS, &config_map("a", json!({}))).await.expect(201);
    let url = format!("sqlite://{}", installation.dir().join("state.db").display());
    let mut other = SqliteConnection::connect(&url).await.expect("open the file");
    other.execute("BEGIN IMMEDIATE").await.expect("the lock");
    let (refused, read) =
        tokio::join!(async { client.post(MAPS, &config_map("b", json!({}))).await }, async {
            client.get(MAPS).await
        },);
    unavailable(&refused);
    let log = std::fs::read_to_string(installation.dir().join("server.log")).expect("a log");
    let id = refused.header("audit-id").expect("an id");
    assert!(log.lines().any(|line| line.contains(id) && line.contains("locked")), "{id}: {log}");
    assert_eq!(read.ok()["items"][0]["metadata"]["uid"], made["metadata"]["uid"]);
    other.execute("ROLLBACK").await.expect("an end");
    client.post(MAPS, &config_map("c", json!({}))).await.expect(201);
    assert_eq!(names(&client.get(MAPS).await.ok()), ["a", "c"]);
}

/// Creates ConfigMaps of half a megabyte, and then changes the last one: lists at the revision before come from SQL.
async fn large_history(server: &TestServer, count: usize) -> u64 {
    for n in 0..count {
        server.create(&format!("n{n:02}"), json!({"n": filler(n)})).await;
    }
    let before = server.revision().await;
    server.set(&format!("n{:02}", count - 1), json!({"n": "new"})).await;
    before
}

/// A text that cannot be compressed, so that it is as long in the database, with the number in its middle as a mark.
fn filler(n: usize) -> String {
    let mut state = n as u64 + 1;
    let letter = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'0' + (state >> 58) as u8)
    };
    let half: String = (0..250_000).map(letter).filter(|letter| !"<\\".contains(*letter)).collect();
    format!("{half}<mark {n:02}>{half}")
}

/// Reads a list at an old revision, and calls `meanwhile` after the first bytes. In every version of HTTP the client
/// must notice that the list is incomplete.
async fn breaks_off(client: &Client, at: u64, meanwhile: impl FnOnce()) {
    let path = format!("{CONFIGMAPS}?resourceVersion={at}&resourceVersionMatch=Exact");
    let answer = loop {
        // Connections to the database that were cut earlier are noticed one by one.
        let answer = client.get(&path).send().await;
        if answer.status() != 503 {
            break answer;
        }
    };
    assert_eq!(answer.status(), 200);
    let mut body = answer.into_body();
    let mut got =
        body.frame().await.expect("a first frame").expect("no error yet").into_data().expect("data").to_vec();
    meanwhile();
    let error = loop {
        match body.frame().await {
            Some(Ok(frame)) => got.extend_from_slice(&frame.into_data().unwrap_or_default()),
            Some(Err(error)) => break error,
            None => panic!("a list of {} bytes that ends as if it were whole", got.len()),
        }
    };
    assert!(serde_json::from_slice::<Value>(&got).is_err(), "{error}, but the list was whole");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_goes_in_the_middle_of_a_list() {
    let schema = Schema::create().await;
    let proxy = Proxy::start(schema.target()).await;
    let detour = Datastore::Postgres(schema.url_through(proxy.address().port()).into());
    let mut setup = Setup::new(Database::Postgres(schema));
    setup.detour = Some(detour);
    let server = setup.start().await;
    let before = large_history(&server, 60).await;
    for protocol in [Protocol::Http1, Protocol::Any] {
        let client = Client::of_certificate(&server.kubeconfig, protocol);
        breaks_off(&client, before, || proxy.cut()).await;
    }
    let path = format!("{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    let again = loop {
        let answer = server.get(&path).await;
        if answer.status == 200 {
            break answer.ok();
        }
        unavailable(&answer);
    };
    assert_eq!(names(&again).len(), 60);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_fails_in_the_middle_of_a_list() {
    let setup = Setup::new(Database::sqlite());
    let server = setup.start().await;
    let before = large_history(&server, 8).await;
    server.stop().await;
    // Only an old version is damaged, so that the server can start.
    damage(&setup.database.file(), "<mark 07>");
    let server = setup.start().await;
    for protocol in [Protocol::Http1, Protocol::Any] {
        breaks_off(&Client::of_certificate(&server.kubeconfig, protocol), before, || {}).await;
    }
    assert_eq!(names(&server.get(CONFIGMAPS).await.ok()).len(), 8, "the newest state is whole");
}

/// Breaks the chain of pages that contains a value, at the page with this text.
fn damage(file: &Path, text: &str) {
    const PAGE: u64 = 8192;
    let mut file = std::fs::File::options().read(true).write(true).open(file).expect("open");
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).expect("read");
    let at = memchr::memmem::find(&bytes, text.as_bytes()).expect("the value") as u64;
    // Such a page starts with the number of the next one.
    file.seek(SeekFrom::Start(at / PAGE * PAGE)).expect("seek");
    file.write_all(&[0xff; 4]).expect("write");
}
