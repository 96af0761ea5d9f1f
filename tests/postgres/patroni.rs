//! Patroni promotes: its leader's machine dies again and again, under load.
//!
//! By hand, since it takes minutes and needs Debian's packages `patroni` and `python3-pysyncobj`:
//! `./test --test postgres patroni -- --ignored --nocapture`

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::cluster::pause;
use crate::support::postgres_programs::{as_user, give, tools};
use crate::support::process::Installation;
use crate::support::rest::{Client, revision};

const MEMBERS: usize = 3;
const KILLS: usize = 10;
const CLIENTS: usize = 8;
/// Writes that each server has to answer between two deaths.
const BETWEEN: u64 = 100;
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A member of the cluster: PostgreSQL, the Patroni that minds it, and its part of Patroni's own store.
struct Member {
    number: usize,
    directory: TempDir,
    /// Reserved ports: of PostgreSQL, of Patroni's API, of its store.
    ports: [TcpSocket; 3],
    patroni: Option<Child>,
}

impl Member {
    fn new(number: usize) -> Self {
        let port = || {
            let socket = TcpSocket::new_v4().expect("a socket");
            socket.set_reuseaddr(true).expect("SO_REUSEADDR");
            socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
            socket
        };
        let directory = tempfile::tempdir().expect("a directory");
        give(directory.path());
        Self { number, directory, ports: [port(), port(), port()], patroni: None }
    }

    fn port(&self, which: usize) -> u16 {
        self.ports[which].local_addr().expect("bound").port()
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Patroni's configuration, in JSON, which is YAML.
    fn configuration(&self, partners: &[u16]) -> Value {
        let path = |name: &str| self.directory.path().join(name).display().to_string();
        let local = |port: u16| format!("127.0.0.1:{port}");
        let partners: Vec<String> = partners.iter().map(|port| local(*port)).collect();
        json!({
            "scope": "rowplane",
            "name": format!("member-{}", self.number),
            "restapi": {"listen": local(self.port(1)), "connect_address": local(self.port(1))},
            "raft": {"data_dir": path("raft"), "self_addr": local(self.port(2)), "partner_addrs": partners},
            "bootstrap": {
                "dcs": {
                    "ttl": 20, "loop_wait": 2, "retry_timeout": 5, "maximum_lag_on_failover": 1_048_576,
                    // Nothing is acknowledged that is on one member only.
                    "synchronous_mode": true, "synchronous_mode_strict": true,
                    "postgresql": {
                        "use_pg_rewind": true,
                        "parameters": {"max_connections": 200, "shared_buffers": "32MB", "fsync": "off"},
                    },
                },
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, "data-checksums"],
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust",
                           "host replication all 127.0.0.1/32 trust"],
            },
            "postgresql": {
                "listen": local(self.port(0)), "connect_address": local(self.port(0)),
                "data_dir": path("data"), "bin_dir": tools().display().to_string(), "pgpass": path("pgpass"),
                "authentication": {
                    "superuser": {"username": "rowplane", "password": "x"},
                    "replication": {"username": "replicator", "password": "x"},
                    "rewind": {"username": "rowplane", "password": "x"},
                },
                "parameters": {"unix_socket_directories": path("")},
            },
        })
    }

    fn start(&mut self, partners: &[u16]) {
        let file = self.directory.path().join("patroni.json");
        let text = self.configuration(partners).to_string();
        std::fs::write(&file, text).expect("write");
        let log = self.directory.path().join("log");
        let log = std::fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut command = as_user(Path::new("/usr/bin/patroni"));
        command.arg(&file).env("HOME", self.directory.path()).kill_on_drop(true);
        command.stdout(log.try_clone().expect("the log")).stderr(log);
        self.patroni = Some(command.spawn().expect("start Patroni"));
    }

    /// The processes of PostgreSQL: the postmaster and its children.
    fn postgres(&self) -> Vec<u32> {
        let file = std::fs::read_to_string(self.data().join("postmaster.pid")).unwrap_or_default();
        let Some(postmaster) = file.lines().next().and_then(|line| line.parse::<u32>().ok()) else {
            return Vec::new();
        };
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let parent = |id: &u32| -> Option<u32> {
            let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
        };
        let children = ids.filter(|id| parent(id) == Some(postmaster));
        std::iter::once(postmaster).chain(children).collect()
    }

    /// Ends everything at once, as a machine that dies does: nobody sees that another one is gone, and acts upon it.
    async fn die(&mut self) {
        let mut patroni = self.patroni.take().expect("it runs");
        let own = patroni.id().expect("it runs");
        kill("STOP", &[own]).await;
        let mut stopped = HashSet::new();
        // While the postmaster is stopped there are no more children.
        loop {
            let found: Vec<u32> = self.postgres().into_iter().filter(|id| stopped.insert(*id)).collect();
            if found.is_empty() {
                break;
            }
            kill("STOP", &found).await;
        }
        kill("KILL", &stopped.into_iter().chain([own]).collect::<Vec<_>>()).await;
        patroni.wait().await.expect("wait for Patroni");
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let url = format!("postgres://rowplane@127.0.0.1:{}/postgres?sslmode=disable", self.port(0));
        PgConnection::connect(&url).await
    }

    async fn number(&self, query: &str) -> Option<i64> {
        let mut connection = self.connect().await.ok()?;
        sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await.ok()
    }
}

impl Drop for Member {
    /// Patroni leaves PostgreSQL running when it is killed.
    fn drop(&mut self) {
        if let Some(patroni) = &mut self.patroni {
            let _ = patroni.start_kill();
        }
        let ids: Vec<String> = self.postgres().iter().map(u32::to_string).collect();
        if !ids.is_empty() {
            let _ = std::process::Command::new("kill").arg("-KILL").args(ids).status();
        }
    }
}

async fn kill(signal: &str, processes: &[u32]) {
    let ids = processes.iter().map(u32::to_string);
    // Some may have ended by themselves.
    let _ = Command::new("kill").args(["-s", signal]).args(ids).stderr(Stdio::null()).status().await;
}

/// The member that can be written to, once both others follow it and commits wait for one of them.
async fn whole(members: &[Member]) -> usize {
    const FOLLOWED: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE \
         (SELECT COUNT(*) + 100 * COUNT(*) FILTER (WHERE sync_state IN ('sync', 'quorum')) \
          FROM pg_stat_replication WHERE state = 'streaming' AND application_name LIKE 'member%') END";
    loop {
        for (place, member) in members.iter().enumerate() {
            if member
                .number(FOLLOWED)
                .await
                .is_some_and(|found| found > 100 && found % 100 == MEMBERS as i64 - 1)
            {
                return place;
            }
        }
        pause().await;
    }
}

#[derive(Default)]
struct Told {
    acknowledged: Mutex<Vec<(String, u64)>>,
    counts: [watch::Sender<u64>; 2],
    next: AtomicU64,
    unanswered: AtomicU64,
}

async fn write_on(client: Client, server: usize, told: Arc<Told>) {
    loop {
        let name = format!("n{}", told.next.fetch_add(1, Ordering::Relaxed));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let mut sure = true;
        let written = loop {
            match client.post(MAPS, &object).await {
                Ok(answer) if answer.status == 201 => break revision(&answer.body),
                // By an attempt whose answer said that nobody knows.
                Ok(answer) if answer.status == 409 && !sure => {
                    match client.get(&format!("{MAPS}/{name}")).await {
                        Ok(answer) if answer.status == 200 => break revision(&answer.body),
                        _ => {}
                    }
                }
                Ok(answer) => {
                    assert!(answer.status.is_server_error(), "{}: {}", answer.status, answer.body);
                    sure = false;
                }
                Err(_) => sure = false,
            }
            told.unanswered.fetch_add(1, Ordering::Relaxed);
            pause().await;
        };
        told.acknowledged.lock().expect("never poisoned").push((name, written));
        told.counts[server].send_modify(|count| *count += 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes, and needs Patroni"]
async fn patroni_promotes_and_no_acknowledged_write_is_lost() {
    let mut members: Vec<Member> = (0..MEMBERS).map(Member::new).collect();
    let stores: Vec<u16> = members.iter().map(|member| member.port(2)).collect();
    let partners = |own: usize| -> Vec<u16> {
        stores.iter().enumerate().filter(|(place, _)| *place != own).map(|(_, port)| *port).collect()
    };
    for (place, member) in members.iter_mut().enumerate() {
        member.start(&partners(place));
    }
    let mut leader = whole(&members).await;

    let hosts: Vec<String> = members.iter().map(|member| format!("127.0.0.1:{}", member.port(0))).collect();
    let url = format!(
        "postgres://rowplane@{}/postgres?sslmode=disable&target_session_attrs=read-write",
        hosts.join(",")
    );
    let installation = Installation::sqlite().with(&format!("--datastore={url}"));
    let beside = installation.beside().with(&format!("--datastore={url}"));
    let servers = [installation.start().await, beside.start().await];
    let told = Arc::new(Told::default());
    let mut writers = JoinSet::new();
    for client in 0..CLIENTS {
        let server = [&installation, &beside][client % 2];
        let address = format!("https://127.0.0.1:{}", server.port());
        let client_of = Client::at(&installation.kubeconfig(), &address).await;
        writers.spawn(write_on(client_of, client % 2, told.clone()));
    }
    let more = async || {
        for count in &told.counts {
            let mut seen = count.subscribe();
            let now = *seen.borrow_and_update();
            let come = seen.wait_for(|count| *count >= now + BETWEEN);
            tokio::time::timeout(Duration::from_secs(300), come)
                .await
                .expect("writes go on")
                .expect("a writer");
        }
    };
    more().await;
    for death in 1..=KILLS {
        let died = Instant::now();
        members[leader].die().await;
        let before = told.counts.each_ref().map(|count| *count.borrow());
        for (count, before) in told.counts.iter().zip(before) {
            let mut seen = count.subscribe();
            let come = seen.wait_for(|count| *count > before + CLIENTS as u64);
            tokio::time::timeout(Duration::from_secs(300), come)
                .await
                .expect("writes go on")
                .expect("a writer");
        }
        let paused = died.elapsed();
        more().await;
        members[leader].start(&partners(leader));
        let old = leader;
        leader = whole(&members).await;
        println!(
            "death {death} of member {old}: both servers write again after {:.1} s, the leader is member {leader}, whole after {:.1} s, \
             {} writes acknowledged",
            paused.as_secs_f64(),
            died.elapsed().as_secs_f64(),
            told.acknowledged.lock().expect("never poisoned").len(),
        );
    }
    writers.shutdown().await;

    let acknowledged = std::mem::take(&mut *told.acknowledged.lock().expect("never poisoned"));
    let mut connection = members[leader].connect().await.expect("the leader");
    let rows: Vec<(String, i64)> =
        sqlx::query_as("SELECT name, resource_version FROM objects WHERE namespace = 'default'")
            .fetch_all(&mut connection)
            .await
            .expect("rows");
    let rows: HashMap<String, i64> = rows.into_iter().collect();
    let lost: Vec<_> =
        acknowledged.iter().filter(|(name, revision)| rows.get(name) != Some(&(*revision as i64))).collect();
    let revisions: HashSet<_> = acknowledged.iter().map(|(_, revision)| revision).collect();
    println!(
        "{} writes acknowledged, {} attempts not; {} lost, {} revisions twice",
        acknowledged.len(),
        told.unanswered.load(Ordering::Relaxed),
        lost.len(),
        acknowledged.len() - revisions.len()
    );
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(revisions.len(), acknowledged.len(), "a revision was given out twice");
    for server in servers {
        server.terminate().await;
        assert!(server.end().await.success());
    }
}
