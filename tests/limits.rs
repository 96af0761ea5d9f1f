//! The limits of a server: each is exceeded; clients get the right answer, and the server works afterwards.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use kube::config::Kubeconfig;
use rowplane::auth::authorizer::Mode;
use rowplane::http::door::cors::Cors;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::client::TlsStream;

use crate::support::client::{Answer, Client, Protocol, connect, connect_as_nobody};
use crate::support::database::Database;
use crate::support::process::Installation;
use crate::support::server::{ALICE, CONFIGMAPS, ROOT, Setup, TestServer, config_map};

/// More than clients and kernels buffer together, and more rows than are read ahead.
const HUGE: usize = 400;

/// Creates ConfigMaps of 60 kB each.
async fn fill(server: &TestServer, count: usize) {
    let data = json!({"n": "x".repeat(60_000)});
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(50) {
        join_all(some.iter().map(|n| {
            let data = data.clone();
            async move { server.create(&format!("n{n:02}"), data).await }
        }))
        .await;
    }
}

/// Sends the head of a create, and a part of its body, which should have `length` bytes.
async fn begin_create(kubeconfig: &Kubeconfig, length: usize) -> TlsStream<TcpStream> {
    begin(connect(kubeconfig, "http/1.1").await.expect("a connection"), "", length, "{").await
}

/// Sends the head of alice's create, and the beginning of its body, which should have `length` bytes.
async fn begin_as_alice(server: &TestServer, length: usize, sent: &str) -> TlsStream<TcpStream> {
    let stream = connect_as_nobody(&server.kubeconfig, "http/1.1").await.expect("a connection");
    begin(stream, "authorization: Bearer alice-token\r\n", length, sent).await
}

async fn begin(
    mut stream: TlsStream<TcpStream>,
    headers: &str,
    length: usize,
    sent: &str,
) -> TlsStream<TcpStream> {
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\ncontent-type: application/json\r\n\
         {headers}content-length: {length}\r\n\r\n{sent}"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    stream
}

/// The status line of the answer.
async fn status_line(stream: TlsStream<TcpStream>) -> String {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).await.expect("an answer");
    line
}

#[track_caller]
fn is_refused_as_upstream_does(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.text(), "Too many requests, please try again later.\n");
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
}

async fn well(server: &TestServer) {
    server.post(CONFIGMAPS, &config_map("afterwards", json!({}))).await.expect(201);
    server.delete(format!("{CONFIGMAPS}/afterwards")).await.ok();
}

/// Repeats a request until it has another status.
async fn once_not(status: u16, ask: impl AsyncFn() -> Answer) -> Answer {
    loop {
        let answer = ask().await;
        if answer.status != status {
            return answer;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_in_flight() {
    let mut setup = Setup::new(Database::sqlite());
    let server = setup.start().await;
    fill(&server, HUGE).await;
    server.stop().await;
    (setup.limits.in_flight.reading, setup.limits.in_flight.mutating) = (1, 1);
    // Whom Priority and Fairness has let in is not counted again.
    setup.limits.priority_and_fairness = false;
    setup.authorization = vec![Mode::AlwaysAllow].into();
    let server = setup.start_empty().await;
    let alice = server.token("alice-token");

    // A list that its client does not read counts as running until its end.
    let unread = alice.get(CONFIGMAPS).send().await;
    for path in [CONFIGMAPS, &format!("{CONFIGMAPS}/n00"), "/apis", "/metrics", "/openapi/v2"] {
        is_refused_as_upstream_does(&alice.get(path).await);
    }
    // The limit does not affect writes, watches, and health checks.
    let short = config_map("n00", json!({"n": "short"}));
    alice.put(format!("{CONFIGMAPS}/n00"), &short).await.ok();
    let mut watch = alice.watch(format!("{CONFIGMAPS}?watch=1&resourceVersion=0")).await;
    watch.expect("ADDED").await;
    assert_eq!(server.anonymous().get("/readyz").await.status, 200);
    drop(unread);
    let metrics = once_not(429, || async { alice.get("/metrics").await }).await;
    let terminated = "apiserver_request_terminations_total{verb=\"LIST\",group=\"\",version=\"v1\",resource=\"configmaps\"";
    assert!(metrics.status == 200 && metrics.text().contains(terminated), "{metrics:?}");

    let slow = begin_create(&server.kubeconfig, 1000).await;
    // A concurrent write could otherwise be the one that is accepted.
    let one = r#"apiserver_current_inflight_requests{request_kind="mutating"} 1"#;
    while !server.get("/metrics").await.text().contains(one) {}
    let refused = alice.post(CONFIGMAPS, &json!({"metadata": {"generateName": "g-"}})).await;
    is_refused_as_upstream_does(&refused);
    is_refused_as_upstream_does(&alice.delete(format!("{CONFIGMAPS}/n00")).await);
    alice.get(format!("{CONFIGMAPS}/n00")).await.ok();
    drop(slow);
    once_not(429, || async { alice.delete(format!("{CONFIGMAPS}/n00")).await }).await.ok();
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_of_bodies() {
    let mut setup = Setup::new(Database::sqlite());
    setup.replace("tokens.csv", &format!("{ALICE}{ROOT}bob-token,bob,u-3\n"));
    setup.authorization = vec![Mode::AlwaysAllow].into();
    // The bodies of one user have an eighth of it, but for one that completes it.
    setup.limits.max_request_body_bytes_inflight = 400 << 10;
    // Requests wait for a quarter of this time.
    setup.limits.request_timeout = Duration::from_secs(40);
    let server = setup.start().await;
    let (alice, bob) = (server.token("alice-token"), server.token("bob-token"));
    let large = |name: &str| config_map(name, json!({"n": "x".repeat(40 << 10)}));
    let sent = format!("{{\"a\": \"{}", "x".repeat(40 << 10));

    // What has only been announced takes nothing.
    let mut announced = Vec::new();
    for _ in 0..20 {
        announced.push(begin_as_alice(&server, 3 << 20, "{").await);
    }
    alice.post(CONFIGMAPS, &large("one")).await.expect(201);
    let unfinished =
        [begin_as_alice(&server, 80 << 10, &sent).await, begin_as_alice(&server, 80 << 10, &sent).await];
    let mut count = 0;
    let refused = loop {
        let answer = alice.post(CONFIGMAPS, &large(&format!("many{count}"))).await;
        if answer.status != 201 {
            break answer;
        }
        count += 1;
    };
    let message = "too many bytes of request bodies, please try again later";
    refused.fails(429, "TooManyRequests", message, json!({"retryAfterSeconds": 1}));
    assert_eq!(server.get(format!("{CONFIGMAPS}/many{count}")).await.status, 404);
    // A small body that is there takes no room, and others have their own shares.
    alice.get(format!("{CONFIGMAPS}/one")).await.ok();
    bob.post(CONFIGMAPS, &large("bobs")).await.expect(201);
    server.post(CONFIGMAPS, &large("masters")).await.expect(201);
    // Waiting requests are served once there is room.
    let (waited, ()) =
        tokio::join!(async { alice.post(CONFIGMAPS, &large("two")).await }, async { drop(unfinished) });
    waited.expect(201);
    drop(announced);
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_never_ends() {
    let mut setup = Setup::new(Database::sqlite());
    setup.limits.request_timeout = Duration::from_secs(1);
    let server = setup.start().await;
    let mut slow = begin_create(&server.kubeconfig, 1000).await;
    slow.write_all(b"\"").await.expect("sent");
    assert_eq!(status_line(slow).await, "HTTP/1.1 504 Gateway Timeout\r\n");
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"], json!([]));
    well(&server).await;
}

/// A request that its head disqualifies is refused before its body arrives.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_impersonator_is_refused_before_the_body() {
    let server = Setup::new(Database::sqlite()).start().await;
    let mut stream = connect(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let head = format!(
        "POST {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\nIMPERSONATE-USER: jane\r\ncontent-length: 1000\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    assert_eq!(status_line(stream).await, "HTTP/1.1 403 Forbidden\r\n");
}

/// Also for a list from SQL, whose snapshot would keep the log from being moved into the file.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_stops_within_a_huge_list() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.response_progress = Duration::from_millis(500);
    let server = setup.start().await;
    fill(&server, HUGE).await;
    let before = server.revision().await;
    server.set("n00", json!({"n": "new"})).await;
    let exact = format!("{CONFIGMAPS}?resourceVersion={before}&resourceVersionMatch=Exact");
    let watch = format!("{CONFIGMAPS}?watch=1&resourceVersion=0");
    for (n, path) in [CONFIGMAPS, &watch].into_iter().enumerate() {
        let unread = server.get(path).send().await;
        assert_eq!(unread.status(), StatusCode::OK);
        while aborts(&server).await == n {
            tokio::task::yield_now().await;
        }
        // The list is aborted, not shortened: the client gets a part of it and an error.
        assert!(unread.into_body().collect().await.is_err(), "{path}");
    }
    let unread = server.get(&exact).send().await;
    assert_eq!(unread.status(), StatusCode::OK);
    // After its reader's patience, nobody reads the log, and it can be moved.
    let fold = "PRAGMA wal_checkpoint(TRUNCATE)";
    while setup.database.number(fold).await != 0 {
        tokio::task::yield_now().await;
    }
    assert!(unread.into_body().collect().await.is_err());
    well(&server).await;
}

/// The number of aborted responses.
async fn aborts(server: &TestServer) -> usize {
    let metrics = server.get("/metrics").await.text();
    let aborts = metrics.lines().filter(|line| line.starts_with("apiserver_request_aborts_total{"));
    aborts.map(|line| line.rsplit(' ').next().expect("a number").parse::<usize>().expect("a number")).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_has_the_time_of_its_request() {
    let mut setup = Setup::new(Database::sqlite());
    setup.limits.request_timeout = Duration::from_secs(30);
    let server = setup.start().await;
    fill(&server, HUGE).await;
    let unread = server.get(format!("{CONFIGMAPS}?timeout=1s")).send().await;
    assert_eq!(unread.status(), StatusCode::OK);
    while aborts(&server).await == 0 {
        tokio::task::yield_now().await;
    }
    assert!(unread.into_body().collect().await.is_err());
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn too_many_connections_with_a_credential() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.connections = 1;
    let server = setup.start().await;
    let message = "too many connections, please try again later";
    let refused = server.token("root-token").get(CONFIGMAPS).await;
    refused.fails(429, "TooManyRequests", message, json!({"retryAfterSeconds": 1}));
    // Health checks need no credential.
    assert_eq!(server.anonymous().get("/readyz").await.status, 200);
    well(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_idle_connections() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.unauthenticated_connections = 100;
    let server = setup.start().await;
    let mut idle = Vec::new();
    for _ in 0..1000 {
        idle.push(connect_as_nobody(&server.kubeconfig, "h2").await.expect("a connection"));
    }
    for pushed_out in &mut idle[..900] {
        let _ = pushed_out.read_to_end(&mut Vec::new()).await;
    }
    assert_eq!(server.anonymous().get("/readyz").await.status, 200);
    server.token("root-token").get(CONFIGMAPS).await.ok();
    well(&server).await;
}

/// In a process of its own, so that its metrics are not shared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_questions_without_a_credential() {
    let installation = Installation::sqlite().without_heartbeats();
    let _server = installation.start().await;
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    let admin = Client::of_certificate(&kubeconfig, crate::support::client::Protocol::Any);
    let questions = async || {
        let metrics = admin.get("/metrics").await.text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("rowplane_clock_questions_total "));
        line.map_or(0, |number| number.parse::<u64>().expect("a number"))
    };
    let (before, started) = (questions().await, Instant::now());
    let stream = connect_as_nobody(&kubeconfig, "h2").await.expect("a connection");
    let (sender, connection) =
        http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let asked = (0..1000).map(|_| {
        let mut sender = sender.clone();
        async move {
            let request = Request::get("https://kubernetes/readyz").body(Body::empty()).expect("a request");
            sender.send_request(request).await.map(|response| response.status().as_u16())
        }
    });
    let answers = join_all(asked).await;
    let told =
        |status: u16| answers.iter().filter(|answer| matches!(answer, Ok(told) if *told == status)).count();
    // The other clients were told to use another connection. Who goes on sending on this one may lose its answers with it.
    assert!(told(200) > 0 || answers.iter().any(Result::is_err), "{answers:?}");
    assert!(answers.iter().flatten().all(|status| [200, 429].contains(status)), "{answers:?}");
    drop(sender);
    let _ = connection.await.expect("no panic");
    let periods = started.elapsed().as_secs() + 1;
    let asked = questions().await - before;
    assert!(asked <= periods + 1, "{asked} questions in {periods} s");
    admin.get("/api/v1/namespaces").await.ok();
}

/// An anonymous HTTP/2 request is the last one of its connection, as in upstream's mitigation of floods.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http2_without_a_credential_is_left_after_one_request() {
    let mut setup = Setup::new(Database::sqlite());
    setup.cors = Some(Arc::new(Cors::new(["//example\\.com(:|$)"]).expect("an expression")));
    let server = setup.start().await;
    // The last two are answered before anybody looks for a credential.
    for (method, path, status) in [
        ("GET", "/version", 200),
        ("GET", CONFIGMAPS, 403),
        ("GET", "/api/v1/watch", 500),
        ("OPTIONS", "/version", 204),
    ] {
        let stream = connect_as_nobody(&server.kubeconfig, "h2").await.expect("a connection");
        let (mut sender, connection) =
            http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
        let connection = tokio::spawn(connection);
        let request = Request::builder().method(method).uri(format!("https://kubernetes{path}"));
        let request = request.header("origin", "https://example.com").body(Body::empty());
        let response = sender.send_request(request.expect("a request")).await.expect("an answer");
        assert_eq!(response.status(), status);
        // The connection ends although the sender still exists.
        connection.await.expect("no panic").expect("a proper end");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn goaway_chance_sends_clients_away() {
    let mut setup = Setup::new(Database::sqlite());
    setup.limits.goaway_chance = 1.0;
    let server = setup.start().await;
    let stream = connect(&server.kubeconfig, "h2").await.expect("a connection");
    let (mut sender, connection) =
        http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let watch = format!("https://kubernetes{CONFIGMAPS}?watch=1");
    let request = Request::get(watch).body(Body::empty()).expect("a request");
    let mut watch = sender.send_request(request).await.expect("an answer").into_body();
    let version = || Request::get("https://kubernetes/version").body(Body::empty()).expect("a request");
    while sender.send_request(version()).await.is_ok() {}
    // Running requests go on.
    server.create("seen", json!({})).await;
    let event = watch.frame().await.expect("an event").expect("no error").into_data().expect("data");
    let event: Value = serde_json::from_slice(&event).expect("JSON");
    assert_eq!(event["object"]["metadata"]["name"], "seen");
    drop(watch);
    connection.await.expect("no panic").expect("a proper end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_112_more_streams_than_a_connection_may_have() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.streams = 2;
    let server = setup.start().await;
    // The client waits for free streams, and nothing is lost.
    let server = &server;
    let answers = join_all((0..50).map(async |n| server.create(&format!("s{n}"), json!({})).await));
    assert_eq!(answers.await.len(), 50);
    assert_eq!(server.get(CONFIGMAPS).await.ok()["items"].as_array().map(Vec::len), Some(50));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn auth_112_a_head_that_is_too_long() {
    let server = Setup::new(Database::memory()).start().await;
    let mut stream = connect(&server.kubeconfig, "http/1.1").await.expect("a connection");
    let long = "x".repeat((1 << 20) + (1 << 20) / 10);
    let head = format!("GET {CONFIGMAPS} HTTP/1.1\r\nhost: kubernetes\r\nx-long: {long}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.expect("sent");
    stream.flush().await.expect("sent");
    let mut text = String::new();
    BufReader::new(stream).read_to_string(&mut text).await.expect("an answer");
    assert!(text.starts_with("HTTP/1.1 431 ") && text.ends_with("limited to 1 MiB"), "{text}");
    well(&server).await;
}

/// Long indented answers are printed on another thread, with the same result.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_answers_for_people() {
    let server = Setup::new(Database::sqlite()).start().await;
    fill(&server, 10).await;
    for path in [CONFIGMAPS.to_owned(), format!("{CONFIGMAPS}/n00")] {
        let plain = server.get(&path).await.ok();
        let indented = server.get(format!("{path}?pretty=1")).await;
        assert!(indented.text().contains("\n  "), "indented");
        assert_eq!(indented.ok(), plain);
        let yaml = server.get(&path).accept("application/yaml").await;
        let read: Value = serde_saphyr::from_str(&yaml.text()).expect("YAML");
        assert_eq!(read, plain);
    }
}

/// This many connections would exhaust the usual soft limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_number_of_open_files_is_raised() {
    let data = tempfile::tempdir().expect("a temporary directory");
    let mut command = tokio::process::Command::new("sh");
    command.args(["-c", "ulimit -Sn 300; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_rowplane")]);
    command.arg("--data-dir").arg(data.path()).arg("--secure-port=0");
    command.stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut server = command.spawn().expect("a server");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a banner").expect("a line").starts_with("export") {}
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.id().expect("a process")));
    let limits = limits.expect("its limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    assert!(numbers[0] == numbers[1] && numbers[0] != "300", "{line}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_flags_that_make_no_sense_are_refused() {
    for (argument, why) in [
        ("--goaway-chance=0.5", "cannot be less than 0 or greater than 0.02"),
        ("--response-progress-timeout=0s", "must be greater than zero"),
    ] {
        let (code, said) = Installation::sqlite().with(argument).refused().await;
        assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
    }
}

/// A client that never sends the rest of its request is served until the grace period ends, and the log tells what that cut.
#[tokio::test]
async fn what_the_grace_period_cuts_is_told() {
    let installation = Installation::sqlite().with("--shutdown-grace-period=3s");
    let server = installation.start().await;
    let kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
    let mut begun = begin_create(&kubeconfig, 100).await;
    let in_flight = "apiserver_current_inflight_requests{request_kind=\"mutating\"} 1\n";
    let client = Client::of_certificate(&kubeconfig, Protocol::Any);
    while !client.get("/metrics").await.text().contains(in_flight) {}
    server.terminate().await;
    let cut = begun.read_to_end(&mut Vec::new()).await;
    assert!(!matches!(cut, Ok(length) if length > 0), "no answer: {cut:?}");
    let log = server.log_file().to_owned();
    assert!(server.end().await.success());
    let log = std::fs::read_to_string(log).expect("a log");
    let told = "the grace period is over, which cuts what has not ended connections=1 requests=1";
    assert!(log.contains(told), "{log}");
}

/// A connection of alice's that reads no body.
struct Unread {
    sender: http2::SendRequest<Body>,
    connection: JoinHandle<()>,
}

impl Unread {
    async fn new(server: &TestServer) -> Self {
        let stream = connect_as_nobody(&server.kubeconfig, "h2").await.expect("a connection");
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(0);
        let (sender, connection) = builder.handshake::<_, Body>(TokioIo::new(stream)).await.expect("HTTP/2");
        let connection = tokio::spawn(async move { drop(connection.await) });
        Self { sender, connection }
    }

    /// The head of an answer; `None` if the connection has ended.
    async fn ask(&mut self, path: &str) -> Option<http::Response<hyper::body::Incoming>> {
        let request = Request::get(format!("https://kubernetes{path}"));
        let request = request.header("authorization", "Bearer alice-token").body(Body::empty());
        self.sender.send_request(request.expect("a request")).await.ok()
    }
}

/// How often a limit was reached.
async fn reached(server: &TestServer, limit: &str) -> usize {
    let metrics = server.get("/metrics").await.text();
    let start = format!("rowplane_limit_reached_total{{limit=\"{limit}\"}} ");
    let count = metrics.lines().find_map(|line| line.strip_prefix(&start));
    count.map_or(0, |count| count.parse().expect("a number"))
}

/// A server with an object of 600 kB, which everybody may read.
async fn with_large_object(setup: &mut Setup) -> TestServer {
    setup.authorization = vec![Mode::AlwaysAllow].into();
    let server = setup.start().await;
    server.create("large", json!({"n": "x".repeat(600_000)})).await;
    server
}

/// Whoever reads nothing of many answers loses his connection, and nobody else's ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.unsent_bytes = 4 << 20;
    let server = with_large_object(&mut setup).await;
    let (path, slow) = (format!("{CONFIGMAPS}/large"), server.get(CONFIGMAPS).send().await);
    let (mut unread, mut modest) = (Unread::new(&server).await, Unread::new(&server).await);
    let held = modest.ask(&path).await.expect("an answer");
    let mut answers = Vec::new();
    while let Some(answer) = unread.ask(&path).await {
        answers.push(answer);
        // Seven of them are more than the limit.
        assert!(answers.len() <= 7, "they are held");
    }
    unread.connection.await.expect("no panic");
    assert_eq!(reached(&server, "unsent-responses").await, 1);
    assert!(modest.ask("/version").await.is_some());
    drop(held);
    assert!(slow.into_body().collect().await.is_ok());
    well(&server).await;
}

/// Also if the reader opens a window of some bytes, after which the server is done with the answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_which_the_first_byte_is_read() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.unsent_bytes = 1 << 20;
    setup.authorization = vec![Mode::AlwaysAllow].into();
    let server = setup.start().await;
    server.create("middle", json!({"n": "x".repeat(60_000)})).await;
    let stream = connect_as_nobody(&server.kubeconfig, "h2").await.expect("a connection");
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1);
    let (sender, connection) = builder.handshake::<_, Body>(TokioIo::new(stream)).await.expect("HTTP/2");
    let connection = tokio::spawn(async move { drop(connection.await) });
    let mut unread = Unread { sender, connection };
    let mut answers = Vec::new();
    while let Some(answer) = unread.ask(&format!("{CONFIGMAPS}/middle")).await {
        answers.push(answer);
        assert!(answers.len() <= (1 << 20) / 60_000 + 1, "they are held");
    }
    assert_eq!(reached(&server, "unsent-responses").await, 1);
    well(&server).await;
}

/// The largest are broken off, and the connection goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_nobody_reads_on_one_connection() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.unsent_bytes_of_connection = 2 << 20;
    let server = with_large_object(&mut setup).await;
    let mut unread = Unread::new(&server).await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(unread.ask(&format!("{CONFIGMAPS}/large")).await.expect("an answer"));
    }
    while reached(&server, "unsent-responses-of-connection").await < 3 {
        tokio::task::yield_now().await;
    }
    assert!(unread.ask("/version").await.is_some());
    assert_eq!(reached(&server, "unsent-responses-of-connection").await, 3);
    well(&server).await;
}

/// A document is unpacked once for all who wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_that_nobody_reads_are_one() {
    let mut setup = Setup::new(Database::sqlite());
    setup.connections.unsent_bytes = 1 << 20;
    setup.authorization = vec![Mode::AlwaysAllow].into();
    let server = setup.start().await;
    let mut unread = Unread::new(&server).await;
    let mut answers = Vec::new();
    for _ in 0..10 {
        answers.push(unread.ask("/openapi/v2").await.expect("an answer"));
    }
    assert_eq!(reached(&server, "unsent-responses").await, 0);
    well(&server).await;
}
