//! Two replicas behind a real HAProxy that are restarted in turn, frozen, or lose their database, under clients of several
//! makes: our own, kube-rs and client-go.

#[path = "../support/mod.rs"]
mod support;

mod clients;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use self::clients::{Counts, MAPS, count_up, follow, follow_with_kube, use_with_kube, write};
use crate::support::client::{Client, Protocol};
use crate::support::haproxy::{Haproxy, Standing};
use crate::support::optional;
use crate::support::postgres::Schema;
use crate::support::process::{Installation, Process};
use crate::support::proxy::{Proxy, Target};

const ROUNDS: usize = 20;

/// Two replicas with one directory, as in docker-compose.yml.
struct Site {
    names: [&'static str; 2],
    installations: [Installation; 2],
    processes: [Option<Process>; 2],
    haproxy: Haproxy,
    kubeconfig: Kubeconfig,
    kubeconfig_path: std::path::PathBuf,
}

impl Site {
    async fn start(datastore: &str) -> Option<Self> {
        let datastore = format!("--datastore={datastore}");
        // The proxy looks twice a second. It has to know that a replica has gone before the next one listens in its place: one
        // that starts answers with 503.
        let settings =
            |installation: Installation| installation.with(&datastore).with("--shutdown-delay-duration=1s");
        let a = Installation::sqlite();
        let (b, a) = (settings(a.beside()), settings(a));
        let haproxy = Haproxy::start([&a, &b]).await?;
        let processes = [Some(a.start().await), Some(b.start().await)];
        let (kubeconfig, kubeconfig_path) = haproxy.kubeconfig(&a);
        let site = Self {
            names: ["ready/a", "ready/b"],
            installations: [a, b],
            processes,
            haproxy,
            kubeconfig,
            kubeconfig_path,
        };
        for name in site.names {
            site.haproxy.until(name, Standing::Up).await;
        }
        Some(site)
    }

    fn client(&self, protocol: Protocol) -> Client {
        Client::of_certificate(&self.kubeconfig, protocol)
    }

    /// Stops a replica and starts it again. Returns once the proxy knows.
    async fn restart(&mut self, at: usize) {
        let process = self.processes[at].take().expect("it runs");
        process.terminate().await;
        assert_eq!(process.end().await.code(), Some(0));
        self.processes[at] = Some(self.installations[at].start().await);
        self.haproxy.until(self.names[at], Standing::Up).await;
    }
}

/// Nobody notices that replicas are restarted, but by ends of watches: no request fails, none is answered with 5xx, and
/// nobody who follows misses an event.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_in_turn_break_nothing() {
    // It takes long to build, and nobody waits for so long.
    let program = optional::program("get-live", "client-go and controller-runtime").await;
    let schema = Schema::create().await;
    let Some(mut site) = Site::start(&schema.url()).await else { return };
    let live = match &program {
        Some(program) => Some(Live::start(program, &site.kubeconfig_path).await),
        None => None,
    };
    let over = CancellationToken::new();
    let counts = Counts::default();
    let mut users = Vec::new();
    let counter = site.client(Protocol::Any);
    counter.post(MAPS, &json!({"metadata": {"name": "counter"}, "data": {"value": "0"}})).await.expect(201);
    for (name, protocol) in [("http1", Protocol::Http1), ("http2", Protocol::Any)] {
        for pause in [None, Some(Duration::from_millis(300))] {
            let name = format!("{name}-{}", users.len());
            users.push(tokio::spawn(write(site.client(protocol), name, pause, over.clone(), counts.clone())));
        }
    }
    let kube = {
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(site.kubeconfig.clone(), &options).await;
        kube::Client::try_from(config.expect("a config")).expect("a client")
    };
    users.push(tokio::spawn(use_with_kube(kube.clone(), over.clone(), counts.clone())));
    let follower = tokio::spawn(follow(site.client(Protocol::Http1)));
    let other = tokio::spawn(follow(site.client(Protocol::Any)));
    let of_kube = tokio::spawn(follow_with_kube(kube));
    let counting = tokio::spawn(count_up(counter.clone(), over.clone()));

    for _ in 0..ROUNDS {
        let before = counts.all();
        for replica in 0..2 {
            site.restart(replica).await;
        }
        let now = counts.all();
        let went_on = |(name, count): (&String, &u64)| *count > *before.get(name).unwrap_or(&0);
        assert!(now.len() == users.len() && now.iter().all(went_on), "{before:?} to {now:?}");
    }
    over.cancel();
    for user in users {
        user.await.expect("no request fails");
    }
    let last = counting.await.expect("no request fails");
    counter.patch(format!("{MAPS}/counter"), &json!({"data": {"value": "end"}})).await.ok();
    for follower in [follower, other, of_kube] {
        assert_eq!(follower.await.expect("no gap"), last);
    }
    if let Some(live) = live {
        live.end().await;
    }
    for process in site.processes.iter().flatten() {
        assert!(!process.log().contains("the grace period is over"), "{}", process.log());
    }
}

/// client-go, which does the same and judges for itself.
struct Live {
    child: tokio::process::Child,
    log: tempfile::NamedTempFile,
}

impl Live {
    async fn start(program: &Path, kubeconfig: &Path) -> Self {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut command = Command::new(program);
        command.arg("roll").arg(kubeconfig).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(log.reopen().expect("the file"));
        let mut child = command.kill_on_drop(true).spawn().expect("start live");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let line = lines.next_line().await.expect("a pipe");
        assert_eq!(line.as_deref(), Some("following"), "{:?}", std::fs::read_to_string(log.path()));
        Self { child, log }
    }

    async fn end(mut self) {
        self.child.stdin.take().expect("a pipe").write_all(b"end\n").await.expect("tell");
        let status = self.child.wait().await.expect("wait");
        let told = std::fs::read_to_string(self.log.path()).expect("the log");
        assert!(status.success() && told.ends_with(": 0 differences\n"), "{told}");
    }
}

/// While PostgreSQL is away, whoever asks through the address is told so by rowplane, on connections that stand and on new
/// ones, and watches stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_database_is_told() {
    const OUTAGE: Duration = Duration::from_secs(10);
    let schema = Schema::create().await;
    let way = Proxy::start(schema.target()).await;
    let Some(site) = Site::start(&schema.url_through(way.address().port())).await else { return };
    let standing = [site.client(Protocol::Http1), site.client(Protocol::Any)];
    let mut watches = Vec::new();
    for client in &standing {
        watches.push(client.watch(format!("{MAPS}?watch=1")).await);
    }
    standing[1].post(MAPS, &json!({"metadata": {"name": "before"}})).await.expect(201);
    for watch in &mut watches {
        watch.expect_named("ADDED", "before").await;
    }
    let nobody = Installation::sqlite();
    way.retarget(Target::Tcp(([127, 0, 0, 1], nobody.port()).into()));
    let mut answers = JoinSet::new();
    let asking = async {
        let mut ticks = tokio::time::interval(OUTAGE / 100);
        for asked in 0..100 {
            ticks.tick().await;
            let fresh = [site.client(Protocol::Http1), site.client(Protocol::Any)];
            for (n, client) in standing.iter().chain(&fresh).enumerate() {
                let object = json!({"metadata": {"name": format!("during-{asked}-{n}")}});
                answers.spawn(client.post(MAPS, &object).into_future());
            }
        }
    };
    let noticing = async {
        for name in site.names {
            site.haproxy.until(name, Standing::Stopping).await;
        }
    };
    tokio::join!(asking, noticing);
    drop(nobody);
    way.retarget(schema.target());
    // What was on its way when the connections broke is answered now.
    let answers = answers.join_all().await;
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 201).collect();
    for answer in &refused {
        assert_eq!((answer.status, answer.failure()["kind"].as_str()), (503, Some("Status")));
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
    assert!(refused.len() > answers.len() / 2, "{} of {}", refused.len(), answers.len());
    for name in site.names {
        site.haproxy.until(name, Standing::Up).await;
    }
    standing[0].post(MAPS, &json!({"metadata": {"name": "after"}})).await.expect(201);
    for watch in &mut watches {
        while watch.expect("ADDED").await["metadata"]["name"] != "after" {}
    }
}

/// A replica that does not answer loses its connections, and its clients go on at the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_replica_loses_its_clients() {
    let schema = Schema::create().await;
    let Some(site) = Site::start(&schema.url()).await else { return };
    let frozen = site.processes[0].as_ref().expect("it runs").id();
    let mut watches = Vec::new();
    for _ in 0..4 {
        // A connection for each; half of them lead to each replica.
        let response = site.client(Protocol::Any).get(format!("{MAPS}?watch=1")).send().await;
        assert_eq!(response.status(), 200);
        watches.push(response.into_body());
    }
    signal("STOP", frozen).await;
    site.haproxy.until("ready/a", Standing::Down).await;
    let client = site.client(Protocol::Any);
    client.post(MAPS, &json!({"metadata": {"name": "one"}})).await.expect(201);
    let (mut lost, mut told) = (0, 0);
    for mut watch in watches {
        match http_body_util::BodyExt::frame(&mut watch).await {
            Some(Ok(_)) => told += 1,
            _ => lost += 1,
        }
    }
    signal("CONT", frozen).await;
    assert_eq!((lost, told), (2, 2));
}

async fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args(["-s", name, &process.to_string()]).status().await;
    assert!(sent.expect("run kill").success());
}
