//! Several hosts in a URL, one of which is the primary, and another one after a promotion.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use kube::config::Kubeconfig;
use rowplane::revision::Revision;
use rowplane::schema::names::GroupResource;
use rowplane::storage::postgres::{Address, Postgres};
use rowplane::storage::{
    Commits as _, Error, HighWaterMark, Key, OpenError, Reads as _, Registry as _, Upkeep as _,
};
use serde_json::json;
use tokio::net::TcpSocket;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::support::client::{Client, Protocol};
use crate::support::cluster::{Cluster, pause};
use crate::support::object::{committed, create, pass, resource};
use crate::support::process::Installation;
use crate::support::proxy::{Direction, Flow, Proxy, Target};
use crate::support::server::{config_map, rv};

/// Hosts that may be anybody, and nobody at first: each is a proxy.
struct Hosts {
    proxies: Vec<Proxy>,
    /// A port that is reserved, and on which nobody listens.
    nobody: TcpSocket,
}

impl Hosts {
    async fn of(clusters: &[Option<&Cluster>]) -> Self {
        let nobody = TcpSocket::new_v4().expect("a socket");
        nobody.bind("127.0.0.1:0".parse().expect("an address")).expect("a free port");
        let mut proxies = Vec::new();
        for cluster in clusters {
            let target = cluster.map_or(Target::Tcp(nobody.local_addr().expect("bound")), Cluster::target);
            proxies.push(Proxy::start(target).await);
        }
        Self { proxies, nobody }
    }

    fn url(&self, query: &str) -> String {
        let hosts = self.proxies.iter().map(|proxy| format!("127.0.0.1:{}", proxy.address().port()));
        let hosts = hosts.collect::<Vec<_>>().join(",");
        format!("postgres://rowplane@{hosts}/postgres?sslmode=disable&{query}")
    }

    /// Ends the way to a host, as when its machine dies.
    fn lose(&self, host: usize) {
        self.proxies[host].retarget(Target::Tcp(self.nobody.local_addr().expect("bound")));
    }
}

/// Lets a standby take over: the primary's machine dies, and nobody tells the servers.
async fn fail_over(hosts: &Hosts, (place, primary): (usize, &Cluster), standby: &Cluster) {
    // The cluster's backends would live on for a moment, and show commits that no standby has.
    hosts.lose(place);
    primary.kill().await;
    standby.promote().await;
}

/// From now on, what is acknowledged is on the standby, and so is what has been before.
async fn replicate(primary: &Cluster) {
    primary.wait_for_standbys().await;
    let position = primary.text("SELECT pg_current_wal_lsn()::text").await;
    let received = format!("SELECT COUNT(*) FROM pg_stat_replication WHERE flush_lsn >= '{position}'");
    while primary.number(&received).await == 0 {
        pause().await;
    }
}

/// What writers were told.
#[derive(Default)]
struct Told {
    acknowledged: Mutex<Vec<(String, Revision)>>,
    counts: [watch::Sender<u64>; 2],
    next: AtomicU64,
}

impl Told {
    /// Returns when each store has acknowledged more writes.
    async fn more(&self, writes: u64) {
        for count in &self.counts {
            let mut seen = count.subscribe();
            let now = *seen.borrow_and_update();
            seen.wait_for(|count| *count >= now + writes).await.expect("a writer");
        }
    }
}

async fn write_on(store: Arc<Postgres>, place: usize, told: Arc<Told>) {
    let resource = resource_of(&store).await;
    loop {
        let name = format!("n{}", told.next.fetch_add(1, Ordering::Relaxed));
        match store.commit(&[create(&Key::new(resource, "ns", &name), 1)], Revision(0)).await {
            Ok(commit) => {
                let written = (name, committed(commit.outcomes[0]));
                told.acknowledged.lock().expect("never poisoned").push(written);
                told.counts[place].send_modify(|count| *count += 1);
            }
            Err(Error::Unavailable(_) | Error::Unknown(_)) => pause().await,
            Err(error) => panic!("{error}"),
        }
    }
}

async fn resource_of(store: &Postgres) -> rowplane::storage::ResourceId {
    resource(store, "things").await
}

/// A server writes rows under a number that the standby has not received. After the promotion it is the resource's number again,
/// for everybody, and no other resource gets it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_resources_outlive_a_failover_that_has_lost_them() {
    let first = Cluster::create().await;
    let second = first.standby().await;
    let hosts = Hosts::of(&[Some(&first), Some(&second)]).await;
    let url = hosts.url("target_session_attrs=read-write&connect_timeout=2");
    let store = Postgres::open(url).await.expect("open");
    store.hold_to(&Arc::new(HighWaterMark::default())).await.expect("the first database it knows");
    resource_of(&store).await;
    replicate(&first).await;
    first.execute("ALTER SYSTEM SET synchronous_standby_names = ''").await;
    first.execute("SELECT pg_reload_conf()").await;
    second.stop_receiving().await;
    let (lost, more) = (GroupResource::new("ex.io", "lost"), GroupResource::new("ex.io", "more"));
    let number = store.resource_ids(std::slice::from_ref(&lost)).await.expect("a number")[0];
    fail_over(&hosts, (0, &first), &second).await;
    while store.clock().await.is_err() {
        pause().await;
    }
    assert_eq!(
        second.number("SELECT id::bigint FROM resources WHERE plural = 'lost'").await,
        i64::from(number.0)
    );
    let other = Postgres::open(hosts.url("target_session_attrs=read-write")).await.expect("open");
    let numbers = other.resource_ids(&[more, lost]).await.expect("numbers");
    assert_eq!(numbers[1], number);
    assert_ne!(numbers[0], number);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_primary_is_found_again_after_every_promotion() {
    let first = Cluster::create().await;
    let second = first.standby().await;
    replicate(&first).await;
    let hosts = Hosts::of(&[Some(&first), Some(&second), None]).await;
    let told = Arc::new(Told::default());
    let mut writers = JoinSet::new();
    let mut stores = Vec::new();
    for place in 0..2 {
        let url = hosts.url("target_session_attrs=read-write&connect_timeout=2");
        let store = Arc::new(Postgres::open(url).await.expect("open"));
        store.hold_to(&Arc::new(HighWaterMark::default())).await.expect("the first database it knows");
        resource_of(&store).await;
        for _ in 0..3 {
            writers.spawn(write_on(store.clone(), place, told.clone()));
        }
        stores.push(store);
    }
    told.more(50).await;
    fail_over(&hosts, (0, &first), &second).await;
    told.more(50).await;

    // Another standby, and the old primary comes back as it was: a primary, and the first in the list.
    let third = second.standby().await;
    replicate(&second).await;
    hosts.proxies[2].retarget(third.target());
    first.start().await;
    let untouched = first.number("SELECT revision FROM clock").await;
    hosts.proxies[0].retarget(first.target());
    told.more(50).await;
    fail_over(&hosts, (1, &second), &third).await;
    told.more(50).await;
    // The connection that listens has found it, too.
    const LISTENING: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'";
    while third.number(LISTENING).await < 2 {
        pause().await;
    }
    writers.shutdown().await;

    assert_eq!(first.number("SELECT revision FROM clock").await, untouched, "the old primary is left alone");
    let rows = third.text("SELECT string_agg(name || ' ' || resource_version, ',') FROM objects").await;
    let rows: HashMap<&str, &str> = rows.split(',').filter_map(|row| row.split_once(' ')).collect();
    let acknowledged = told.acknowledged.lock().expect("never poisoned");
    let lost: Vec<_> = acknowledged
        .iter()
        .filter(|(name, revision)| rows.get(&**name) != Some(&&*revision.to_string()))
        .collect();
    assert!(lost.is_empty(), "{lost:?} of {}", acknowledged.len());
    let revisions: HashSet<_> = acknowledged.iter().map(|(_, revision)| revision).collect();
    assert_eq!(revisions.len(), acknowledged.len(), "a revision was given out twice");
}

/// Whole servers with clients, and sockets as hosts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_go_on_after_a_promotion() {
    const MAPS: &str = "/api/v1/namespaces/default/configmaps";
    let primary = Cluster::create().await;
    let standby = primary.standby().await;
    replicate(&primary).await;
    let place = |cluster: &Cluster| match cluster.target() {
        Target::Unix(path) => path.parent().expect("a directory").display().to_string().replace('/', "%2F"),
        Target::Tcp(address) => address.to_string(),
    };
    let url = format!("postgres://rowplane@{},{}/postgres", place(&primary), place(&standby));
    let installation = Installation::sqlite().with(&format!("--datastore={url}"));
    let beside = installation.beside().with(&format!("--datastore={url}"));
    let servers = [installation.start().await, beside.start().await];
    let clients = [&installation, &beside].map(|installation| {
        let mut kubeconfig = Kubeconfig::read_from(installation.kubeconfig()).expect("a kubeconfig");
        for cluster in kubeconfig.clusters.iter_mut().filter_map(|cluster| cluster.cluster.as_mut()) {
            cluster.server = Some(format!("https://127.0.0.1:{}", installation.port()));
        }
        Client::of_certificate(&kubeconfig, Protocol::Any)
    });
    // Writes until it succeeds.
    let write = async |client: &Client, name: &str| loop {
        let answer = client.post(MAPS, &config_map(name, json!({}))).await;
        match answer.status {
            201 => return rv(&answer.expect(201)),
            // By an attempt of which nobody knew what became of it.
            409 => {
                let found = client.get(format!("{MAPS}/{name}")).await;
                if found.status == 200 {
                    return rv(&found.ok());
                }
            }
            status => assert!(status >= 500, "{answer:?}"),
        }
        pause().await;
    };
    let mut before = 0;
    for (client, name) in clients.iter().zip(["a", "b"]) {
        before = write(client, name).await;
    }
    primary.kill().await;
    standby.promote().await;
    for (client, name) in clients.iter().zip(["c", "d"]) {
        let revision = write(client, name).await;
        assert!(revision > before, "{revision} after {before}");
        before = revision;
    }
    for client in &clients {
        for name in ["a", "b", "c", "d"] {
            client.get(format!("{MAPS}/{name}")).await.ok();
        }
    }
    for server in servers {
        server.terminate().await;
        assert!(server.end().await.success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosts_that_do_not_serve_are_passed_over() {
    let primary = Cluster::create().await;
    let standby = primary.standby().await;
    // The first is silent, nobody is at the second, and the third is a standby.
    let hosts = Hosts::of(&[Some(&primary), None, Some(&standby), Some(&primary)]).await;
    hosts.proxies[0].set_flow(Direction::Down, Flow::Held);
    for query in ["connect_timeout=2", "target_session_attrs=primary", "target_session_attrs=read-write"] {
        let store = Postgres::open(hosts.url(query)).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        let resource = resource_of(&store).await;
        let name = query.replace(['=', '_'], "-");
        pass(&store, create(&Key::new(resource, "ns", &name), 1)).await;
        store.close().await;
    }
    let known = primary.number("SELECT revision FROM clock").await;
    while standby.number("SELECT revision FROM clock").await < known {
        pause().await;
    }

    // A reader may ask for a standby, and a server may not.
    let ways = |query: &str| Address::from(hosts.url(query));
    for query in ["target_session_attrs=standby", "target_session_attrs=prefer-standby"] {
        let found =
            Postgres::inventory(&ways(query)).await.unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(found.revision.0 as i64, known, "{query}");
        match Postgres::open(ways(query)).await.err() {
            Some(OpenError::Url { reason, .. }) => {
                assert!(reason.contains("say read-write or primary"), "{reason}")
            }
            other => panic!("{query}: {other:?}"),
        }
    }

    // All hosts tell why they do not serve.
    primary.execute("ALTER SYSTEM SET default_transaction_read_only = on").await;
    primary.execute("SELECT pg_reload_conf()").await;
    while primary.text("SHOW default_transaction_read_only").await != "on" {
        pause().await;
    }
    let error = Postgres::open(ways("target_session_attrs=read-write")).await.err().expect("no host");
    let text = error.to_string();
    for reason in ["no answer within 2 s", "is a standby", "target_session_attrs=read-write asks for"] {
        assert!(text.contains(reason), "{reason}: {text}");
    }
    Postgres::open(ways("target_session_attrs=primary")).await.expect("a primary all the same").close().await;
}
