//! Clusters of one process over one listener: found by path or host, with users, quotas, revisions and fair shares of their own,
//! and none of them notices what becomes of another.

mod support;

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::config::Kubeconfig;
use rowplane::api::admission::Settings;
use rowplane::auth::authorizer::Mode;
use rowplane::http::router::Place;
use rowplane::server::application::build_on;
use rowplane::server::config::{Config, Controllers, Https};
use rowplane::server::datastore::Datastore;
use rowplane::server::{Builder, Process, Server};
use rowplane::tasks::Failure;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::client::{Answer, Client, Protocol, connect, handshake};
use crate::support::database::Database;
use crate::support::faulty::Faulty;
use crate::support::postgres::{self, Schema};
use crate::support::webhook::held_creates;

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";

/// Two databases of the same sort.
type Databases = [Database; 2];

macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        $(mod $case {
            use crate::support::database::Database;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                super::$case([Database::memory(), Database::memory()]).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$case([Database::sqlite(), Database::sqlite()]).await
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$case([Database::postgres().await, Database::postgres().await]).await
            }
        })*
    };
}

on_every_store!(
    the_users_of_a_cluster_are_nobody_in_another,
    quotas_and_revisions_are_each_clusters_own,
    a_cluster_that_stops_leaves_the_others_alone,
    a_cluster_whose_store_fails_leaves_the_others_alone,
    a_cluster_that_is_flooded_leaves_the_others_alone,
);

/// A cluster of a process, and what its admin needs.
struct Member {
    server: Server,
    kubeconfig: Kubeconfig,
    admin: Client,
    _data: TempDir,
}

/// The settings of a cluster whose token file has a line for `NAME-root`, who may do everything, and one for `alice`.
fn settings(name: &str, database: &Database) -> (Config, TempDir) {
    let data = tempfile::tempdir().expect("a temporary directory");
    let tokens = data.path().join("tokens.csv");
    let lines = format!("{name}-root,root,u-1,\"system:masters\"\nalice-token,alice,u-2,\"developers\"\n");
    std::fs::write(&tokens, lines).expect("write tokens");
    let config = Config {
        datastore: database.datastore(),
        data_dir: Some(data.path().to_owned()),
        https: Some(Https { token_auth_file: Some(tokens), ..Https::default() }),
        controllers: Controllers::Off,
        namespace_contents: false,
        cluster_authentication: false,
        compaction: None,
        admission: Settings::new(&[], &["ServiceAccount"]).expect("a known plugin"),
        ..Config::default()
    };
    (config, data)
}

async fn process() -> Process {
    let started =
        Process::builder().listen(([127, 0, 0, 1], 0).into()).grace(Duration::from_secs(20)).start();
    started.await.unwrap_or_else(|error| panic!("start: {}", error.one_line()))
}

fn prefix(name: &str) -> Place {
    Place::Prefix(format!("/clusters/{name}"))
}

impl Member {
    async fn add(process: &Process, name: &str, place: Place, (config, data): (Config, TempDir)) -> Self {
        let started = process.add(name, place, Server::builder().config(config)).await;
        Self::of(started.unwrap_or_else(|error| panic!("start: {}", error.one_line())), data)
    }

    fn of(server: Server, data: TempDir) -> Self {
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig_yaml().expect("it listens")).expect("YAML");
        let admin = Client::of_certificate(&kubeconfig, Protocol::Any);
        Self { server, kubeconfig, admin, _data: data }
    }

    fn token(&self, token: &str) -> Client {
        Client::of_token(&self.kubeconfig, Some(token))
    }
}

/// The clusters `a` and `b` below `/clusters`.
async fn two(databases: &Databases) -> (Process, Member, Member) {
    let process = process().await;
    let a = Member::add(&process, "a", prefix("a"), settings("a", &databases[0])).await;
    let b = Member::add(&process, "b", prefix("b"), settings("b", &databases[1])).await;
    (process, a, b)
}

/// The same kubeconfig with another URL.
fn at(kubeconfig: &Kubeconfig, url: &str) -> Kubeconfig {
    let mut kubeconfig = kubeconfig.clone();
    kubeconfig.clusters[0].cluster.as_mut().expect("a cluster").server = Some(url.to_owned());
    kubeconfig
}

fn object(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// A token is worth nothing in another cluster, be it one of the token file or one that the cluster has issued; and so is a
/// client certificate, though one connection may show it to both.
async fn the_users_of_a_cluster_are_nobody_in_another(databases: Databases) {
    let (process, a, b) = two(&databases).await;
    let unauthorized = |answer: Answer| answer.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    for (own, other, name) in [(&a, &b, "a-root"), (&b, &a, "b-root")] {
        own.token(name).get(CONFIGMAPS).await.ok();
        unauthorized(other.token(name).get(CONFIGMAPS).await);
        own.admin.post("/api/v1/namespaces/default/serviceaccounts", &object("robot")).await.expect(201);
        let request = json!({"spec": {"audiences": []}});
        let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
        let issued = own.admin.post(path, &request).await.expect(201);
        let issued = issued["status"]["token"].as_str().expect("a token");
        let review = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let who = own.token(issued).post(review, &json!({})).await.expect(201);
        assert_eq!(who["status"]["userInfo"]["username"], "system:serviceaccount:default:robot");
        unauthorized(other.token(issued).post(review, &json!({})).await);
    }
    // One connection with a certificate of `a`.
    let both = Client::of_certificate(&at(&a.kubeconfig, &process.url().expect("it listens")), Protocol::Any);
    for _ in 0..2 {
        both.get(format!("/clusters/a{CONFIGMAPS}")).await.ok();
        unauthorized(both.get(format!("/clusters/b{CONFIGMAPS}")).await);
    }
}

async fn quotas_and_revisions_are_each_clusters_own(databases: Databases) {
    let (_process, a, b) = two(&databases).await;
    let quota = |most: &str| json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/secrets": most}}});
    for (member, most) in [(&a, "1"), (&b, "2")] {
        member.admin.post("/api/v1/namespaces/default/resourcequotas", &quota(most)).await.expect(201);
    }
    let revision = async |member: &Member| {
        let list = member.admin.get("/api/v1/secrets").await.ok();
        list["metadata"]["resourceVersion"].as_str().expect("a revision").to_owned()
    };
    let before = revision(&b).await;
    a.admin.post(SECRETS, &object("one")).await.expect(201);
    let refused = a.admin.post(SECRETS, &object("two")).await.expect(403);
    assert!(refused["message"].as_str().expect("a text").contains("exceeded quota: q"), "{refused}");
    assert_eq!(revision(&b).await, before, "nothing has been written there");
    b.admin.post(SECRETS, &object("one")).await.expect(201);
    b.admin.post(SECRETS, &object("two")).await.expect(201);
    b.admin.post(SECRETS, &object("three")).await.expect(403);
    b.admin.post(CONFIGMAPS, &object("only-in-b")).await.expect(201);
    assert_eq!(a.admin.get(format!("{CONFIGMAPS}/only-in-b")).await.status, 404);
}

/// Its watches end, and its URLs have no cluster any more; on the same connection, a watch of another cluster goes on.
async fn a_cluster_that_stops_leaves_the_others_alone(databases: Databases) {
    let (process, a, b) = two(&databases).await;
    let url = process.url().expect("it listens");
    // Both are asked on one connection.
    let (of_a, of_b) = (Client::of_token(&at(&a.kubeconfig, &url), Some("a-root")), "Bearer b-root");
    let mut ending = of_a.watch(format!("/clusters/a{CONFIGMAPS}?watch=1")).await;
    let anonymous = Client::of_certificate(&at(&a.kubeconfig, &url), Protocol::Any);
    let mut lasting =
        anonymous.get(format!("/clusters/b{CONFIGMAPS}?watch=1")).header("authorization", of_b).watch().await;
    let own = anonymous.get(format!("/clusters/a{CONFIGMAPS}?watch=1")).watch().await;
    let Member { server, admin, .. } = a;
    admin.post(CONFIGMAPS, &object("last")).await.expect(201);
    ending.expect_named("ADDED", "last").await;
    server.stop().await;
    ending.expect_end().await;
    let mut own = own;
    own.expect_named("ADDED", "last").await;
    own.expect_end().await;
    let none = "no cluster is served at this host and path";
    admin.get(CONFIGMAPS).await.fails(404, "NotFound", none, json!({}));
    b.admin.post(CONFIGMAPS, &object("x")).await.expect(201);
    lasting.expect_named("ADDED", "x").await;
    // The place is free again.
    let again = Member::add(&process, "a", prefix("a"), settings("a", &Database::memory())).await;
    again.admin.get(CONFIGMAPS).await.ok();
}

async fn a_cluster_whose_store_fails_leaves_the_others_alone(databases: Databases) {
    let process = process().await;
    let a = Member::add(&process, "a", prefix("a"), settings("a", &databases[0])).await;
    let store = Faulty::new(databases[1].open().await);
    let (config, data) = settings("b", &databases[1]);
    let (builder, opened) = (Server::builder().config(config), store.clone());
    let build = async move |environment| build_on(opened, environment).await;
    let b = process.add_with("b", prefix("b"), builder, build).await;
    let b = Member::of(b.unwrap_or_else(|error| panic!("start: {}", error.one_line())), data);
    b.admin.post(CONFIGMAPS, &object("x")).await.expect(201);
    store.commits_panic.store(true, SeqCst);
    let lost = b.admin.post(CONFIGMAPS, &object("y")).await;
    assert!(lost.status >= 500, "{lost:?}");
    let failure = b.server.failed().await;
    assert!(
        matches!(&failure, Failure::Panicked { message, .. } if message.contains("on purpose")),
        "{failure}"
    );
    a.admin.post(CONFIGMAPS, &object("x")).await.expect(201);
    b.server.stop_now().await;
    a.admin.get(format!("{CONFIGMAPS}/x")).await.ok();
    assert!(futures_util::FutureExt::now_or_never(a.server.failed()).is_none());
    assert!(futures_util::FutureExt::now_or_never(process.failed()).is_none());
}

/// Seats are each cluster's own: a user who has taken all of his level leaves those of his namesake in another cluster.
async fn a_cluster_that_is_flooded_leaves_the_others_alone(databases: Databases) {
    let process = process().await;
    let open = |name: &str, database: &Database| {
        let (config, data) = settings(name, database);
        (Config { authorization: vec![Mode::AlwaysAllow].into(), ..config }, data)
    };
    let a = Member::add(&process, "a", prefix("a"), open("a", &databases[0])).await;
    let b = Member::add(&process, "b", prefix("b"), open("b", &databases[1])).await;
    for member in [&a, &b] {
        one_seat_for_alice(&member.admin).await;
        let alice = member.token("alice-token");
        while alice.get(CONFIGMAPS).await.header(LEVEL_UID) != Some(&*level_uid(&member.admin).await) {}
    }
    let hook = held_creates(&a.admin).await;
    let held = json!({"metadata": {"name": "held", "labels": {"held": "1"}}});
    let create = a.token("alice-token").post(CONFIGMAPS, &held);
    let create = tokio::spawn(async move { create.await.status });
    hook.arrived(1).await;
    assert_eq!(a.token("alice-token").get(CONFIGMAPS).await.status, 429, "her seat is taken");
    b.token("alice-token").get(CONFIGMAPS).await.ok();
    a.admin.get(CONFIGMAPS).await.ok();
    hook.release();
    assert_eq!(create.await.expect("no panic"), 201);
}

const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const FLOWS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

/// A level without seats, in which a request passes as long as it is alone.
async fn one_seat_for_alice(admin: &Client) {
    let level = json!({"metadata": {"name": "small"}, "spec": {"type": "Limited", "limited": {
        "nominalConcurrencyShares": 0, "lendablePercent": 0, "borrowingLimitPercent": 0,
        "limitResponse": {"type": "Reject"}}}});
    admin.post(LEVELS, &level).await.expect(201);
    let flow = json!({"metadata": {"name": "mine"}, "spec": {
        "matchingPrecedence": 500,
        "priorityLevelConfiguration": {"name": "small"},
        "rules": [{
            "subjects": [{"kind": "User", "user": {"name": "alice"}}],
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"],
                "clusterScope": true}],
        }],
    }});
    admin.post(FLOWS, &flow).await.expect(201);
}

async fn level_uid(admin: &Client) -> String {
    let level = admin.get(format!("{LEVELS}/small")).await.ok();
    level["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

/// By the authority of HTTP/2 and by the header of HTTP/1.1; and the listener's certificate has the name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_is_found_by_its_host() {
    let process = process().await;
    let rest = Member::add(&process, "rest", Place::Rest, settings("rest", &Database::memory())).await;
    let place = Place::Host("b.example".to_owned());
    let b = Member::add(&process, "b", place.clone(), settings("b", &Database::memory())).await;
    let url = process.url().expect("it listens");
    let port = process.address().expect("it listens").port();
    assert_eq!(b.server.url(), Some(format!("https://b.example:{port}")));
    b.server.service();
    let direct = at(&b.kubeconfig, &url);
    let named = Client::of_certificate(&direct, Protocol::Http1);
    let host = format!("B.example:{port}");
    named.post(CONFIGMAPS, &object("x")).header("host", &host).await.expect(201);
    named.get(CONFIGMAPS).await.fails(401, "Unauthorized", "Unauthorized", Value::Null);
    assert_eq!(rest.admin.get(format!("{CONFIGMAPS}/x")).await.status, 404);

    handshake(&direct, "b.example", &rustls::version::TLS13, b"").await.expect("a certificate with the name");
    let stream = connect(&direct, "h2").await.expect("a connection");
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .expect("HTTP/2");
    tokio::spawn(connection);
    let request =
        http::Request::get(format!("https://{host}{CONFIGMAPS}/x")).body(Empty::<bytes::Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.into_body().collect().await.expect("a body");

    let taken = process.add("c", place, Server::builder()).await.err().expect("taken");
    assert_eq!(taken.one_line(), "another cluster is served at b.example");
    named.get(CONFIGMAPS).header("host", &host).await.ok();
}

/// Others verify its tokens by the keys that they find there. A client that is told another path would ask another cluster, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_in_answers_have_the_path_of_the_cluster() {
    let (_process, a, _b) = two(&[Database::memory(), Database::memory()]).await;
    let pods = "/api/v1/namespaces/default/pods";
    let containers = json!([{"name": "c", "image": "i"}]);
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": containers}});
    a.admin.post(pods, &pod).await.expect(201);
    let status = json!({"status": {"podIP": "192.0.2.7", "podIPs": [{"ip": "192.0.2.7"}]}});
    a.admin.patch(format!("{pods}/p/status"), &status).await.ok();
    let redirected = a.admin.get(format!("{pods}/p/proxy?x=1")).await;
    assert_eq!(redirected.status, 301, "{redirected:?}");
    assert_eq!(redirected.header("location"), Some(&*format!("/clusters/a{pods}/p/proxy/?x=1")));
    let configuration = a.admin.get("/.well-known/openid-configuration").await.ok();
    let url = configuration["jwks_uri"].as_str().expect("a URL");
    assert!(url.ends_with("/clusters/a/openid/v1/jwks"), "{url}");
    a.admin.get("/openid/v1/jwks").await.ok();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_are_given_once_and_can_be_labels() {
    let process = process().await;
    let builder = || Server::builder().config(settings("a", &Database::memory()).0);
    let _a = Member::add(&process, "a", prefix("a"), settings("a", &Database::memory())).await;
    let refused = async |name: &str, place| {
        process.add(name, place, builder()).await.err().expect("refused").one_line()
    };
    assert_eq!(refused("a", prefix("b")).await, "the process has a cluster \"a\" already");
    assert!(refused("", prefix("b")).await.starts_with("\"\" cannot be the name of a cluster: "));
    assert!(refused("a/b", prefix("b")).await.starts_with("\"a/b\" cannot be the name of a cluster: "));
    assert!(
        refused("b", Place::Prefix("/b/".to_owned()))
            .await
            .starts_with("\"/b/\" cannot be the path of a cluster")
    );
}

/// A cluster's own have its name, and none of the process; those of the whole process are described once. A server by itself has
/// no such label.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metrics_name_the_cluster() {
    let (process, a, b) = two(&[Database::memory(), Database::memory()]).await;
    a.admin.post(CONFIGMAPS, &object("x")).await.expect(201);
    let created = |text: &str, name: &str| {
        let labels = format!("apiserver_request_total{{cluster=\"{name}\",");
        let mut lines = text.lines().filter(|line| line.starts_with(&labels));
        lines.any(|line| line.contains("resource=\"configmaps\"") && line.contains("verb=\"POST\""))
    };
    let text = a.admin.get("/metrics").await.text();
    assert!(created(&text, "a"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        assert!(line.contains("{cluster=\"a\""), "{line}");
    }
    assert!(!created(&b.admin.get("/metrics").await.text(), "b"));
    let all = process.render_metrics();
    assert!(created(&all, "a") && !created(&all, "b"));
    let described = all.lines().filter(|line| line.starts_with("# TYPE ")).collect::<Vec<_>>();
    let once: std::collections::BTreeSet<_> = described.iter().collect();
    assert_eq!(once.len(), described.len());
    assert!(all.lines().any(|line| line.starts_with("process_cpu_seconds_total ")));
    let alone: Builder = Server::builder().memory();
    let alone = alone.start().await.unwrap_or_else(|error| panic!("start: {}", error.one_line()));
    assert!(!alone.metrics().render().contains("cluster=\""));
}

/// On PostgreSQL each has a schema of its own, which is made for it, and all of them have one pool and one connection that listens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_share_the_connections_to_a_database() {
    let schema = Schema::create().await;
    let grant = format!("GRANT CREATE ON DATABASE postgres TO {}", schema.name());
    postgres::execute(&postgres::cluster(), &grant).await;
    let process = process().await;
    let mut members = Vec::new();
    for name in ["a", "b", "c"] {
        let (config, data) = settings(name, &Database::memory());
        let config = Config {
            datastore: Datastore::parse(&schema.url()).expect("a URL"),
            schema: Some(format!("{}_{name}", schema.name())),
            ..config
        };
        members.push(Member::add(&process, name, prefix(name), (config, data)).await);
    }
    for (n, member) in members.iter().enumerate() {
        for object_n in 0..=n {
            member.admin.post(CONFIGMAPS, &object(&format!("x-{object_n}"))).await.expect(201);
        }
    }
    for (n, member) in members.iter().enumerate() {
        let list = member.admin.get(CONFIGMAPS).await.ok();
        assert_eq!(list["items"].as_array().expect("items").len(), n + 1);
    }
    let mut connection = postgres::connect(&postgres::cluster()).await;
    let count = "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE '%LISTEN %' AND usename = '";
    let query = sqlx::AssertSqlSafe(format!("{count}{}'", schema.name()));
    let listening: i64 = sqlx::query_scalar(query).fetch_one(&mut connection).await.expect("a number");
    assert_eq!(listening, 1);
    let [a, b, c] = <[Member; 3]>::try_from(members).ok().expect("three");
    a.server.stop().await;
    b.admin.post(CONFIGMAPS, &object("later")).await.expect(201);
    c.admin.post(CONFIGMAPS, &object("later")).await.expect(201);
    let nowhere = Server::builder().memory().schema("s").start().await.err().expect("refused").one_line();
    assert!(nowhere.contains("it has no schemas, such as \"s\""), "{nowhere}");
}

/// Watches end without a cut when the listener of their process does; a request in process is answered still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_ends_the_watches_of_its_clusters() {
    let process = process().await;
    let member = Member::add(&process, "a", prefix("a"), settings("a", &Database::memory())).await;
    let mut watch = member.admin.watch(format!("{CONFIGMAPS}?watch=1")).await;
    member.admin.post(CONFIGMAPS, &object("last")).await.expect(201);
    watch.expect_named("ADDED", "last").await;
    tokio::join!(process.stop(), watch.expect_end());
    let client = kube::Client::new(member.server.service(), "default");
    assert_eq!(client.apiserver_version().await.expect("a version").minor, "37");
}

/// Without a port, requests come in process only, and what the process shares is shared all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_needs_no_port() {
    let process = Process::builder().start().await.unwrap_or_else(|error| panic!("{}", error.one_line()));
    let mut servers = Vec::new();
    for name in ["a", "b"] {
        let added = process.add(name, prefix(name), Server::builder().memory()).await;
        servers.push(added.unwrap_or_else(|error| panic!("{}", error.one_line())));
    }
    assert!(servers.iter().all(|server| server.url().is_none() && server.kubeconfig().is_none()));
    for server in &servers {
        let client = kube::Client::new(server.service(), "default");
        assert_eq!(client.apiserver_version().await.expect("a version").minor, "37");
    }
}

/// The text of a log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a lock").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lines of the log name the cluster of their server; those of a server by itself name none.
#[tokio::test]
async fn the_log_names_the_cluster() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
    // For all tests of this program: whether a place logs is decided once for all threads.
    tracing::subscriber::set_global_default(log).expect("the only one");
    let process = process().await;
    let a = Member::add(&process, "a", prefix("a"), settings("a", &Database::memory())).await;
    let alone = Server::builder().listen(([127, 0, 0, 1], 0).into()).without_controllers().start().await;
    let alone = alone.unwrap_or_else(|error| panic!("start: {}", error.one_line()));
    let text = || String::from_utf8(lines.0.lock().expect("a lock").clone()).expect("UTF-8");
    let said = |what: &str| {
        let text = text();
        let mut lines = text.lines().filter(|line| line.contains(what)).map(str::to_owned);
        lines.next().unwrap_or_else(|| panic!("{what}: {text}"))
    };
    let (own, other) = (a.server.url().expect("a URL"), alone.url().expect("a URL"));
    assert!(said(&format!("ready url=\"{own}\"")).contains("cluster{name=\"a\"}"));
    assert!(!said(&format!("ready url=\"{other}\"")).contains("cluster{"));
}
