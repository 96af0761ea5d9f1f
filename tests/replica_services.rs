//! What two servers on one database assign to Services at the same time, and the addresses of servers that they
//! publish.

mod support;

use std::collections::BTreeSet;

use futures_util::future::join_all;
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::postgres::Schema;
use crate::support::process::{Installation, Process};
use crate::support::rest::{Answer, Client};

const SERVICES: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";
const PORTS: usize = 40;

struct Replica {
    process: Process,
    client: Client,
    /// Keeps the server's directory.
    _installation: Installation,
}

impl Replica {
    async fn start(installation: Installation) -> Self {
        let process = installation.start().await;
        Self { process, client: installation.client().await, _installation: installation }
    }
}

async fn create(client: &Client, name: &str, spec: &Value) -> Answer {
    let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec});
    client.post(SERVICES, &object).await.unwrap()
}

fn web() -> Value {
    json!({"type": "NodePort", "ports": [{"port": 80}]})
}

/// Creates as many Services as there are ports, so that no port may be assigned twice or be lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_port_is_given_once() {
    let schema = Schema::create().await;
    let range = format!("--service-node-port-range=30000-{}", 30000 + PORTS - 1);
    let start = || Replica::start(Installation::postgres(&schema).with(&range));
    let (a, b) = tokio::join!(start(), start());
    let clients = [&a.client, &b.client];
    let one = async |n: usize| create(clients[n % 2], &format!("s{n}"), &web()).await.ok();
    let made = join_all((0..PORTS).map(one)).await;
    let distinct = |pick: fn(&Value) -> &Value| {
        made.iter().map(|service| pick(service).to_string()).collect::<BTreeSet<_>>().len()
    };
    assert_eq!(distinct(|service| &service["spec"]["clusterIP"]), PORTS);
    assert_eq!(distinct(|service| &service["spec"]["ports"][0]["nodePort"]), PORTS);
    for client in clients {
        assert_eq!(create(client, "late", &web()).await.status, StatusCode::INTERNAL_SERVER_ERROR);
    }

    // A port released at one server can be assigned by the other.
    let port = &made[3]["spec"]["ports"][0]["nodePort"];
    clients[0].delete(&format!("{SERVICES}/s3"), None).await.unwrap().ok();
    let late = create(clients[1], "late", &web()).await.ok();
    assert_eq!(late["spec"]["ports"][0]["nodePort"], *port);

    // All request the same address, which no server has assigned yet; it is in the range that is not assigned at
    // random.
    let same = json!({"clusterIP": "10.0.0.10", "ports": [{"port": 80}]});
    let racing = (0..PORTS).map(async |n: usize| {
        let answer = create(clients[n % 2], &format!("same{n}"), &same).await;
        let taken = answer.status == StatusCode::UNPROCESSABLE_ENTITY;
        assert!(taken || answer.status == StatusCode::CREATED, "{}", answer.status);
        usize::from(!taken)
    });
    assert_eq!(join_all(racing).await.iter().sum::<usize>(), 1);

    // Every address belongs to a Service, including the one that leads to the servers.
    let services = clients[0].get("/api/v1/services").await.unwrap().ok();
    let held: BTreeSet<&str> = texts(&services, |service| &service["spec"]["clusterIP"]);
    let claimed = clients[1].get(ADDRESSES).await.unwrap().ok();
    assert_eq!(texts(&claimed, |address| &address["metadata"]["name"]), held);
    assert_eq!(held.len(), PORTS + 2);
}

fn texts(list: &Value, pick: fn(&Value) -> &Value) -> BTreeSet<&str> {
    list["items"].as_array().unwrap().iter().map(|item| pick(item).as_str().unwrap()).collect()
}

/// The Service `kubernetes` leads to every running server (52 of `docs/spec/cluster.md`, but for `kill -9`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cluster_52_every_server_is_an_endpoint() {
    let schema = Schema::create().await;
    let start = |address: &'static str| {
        let installation = Installation::postgres(&schema);
        Replica::start(installation.with(&format!("--advertise-address={address}")))
    };
    let a = start("192.0.2.1").await;
    leads_to(&a.client, &["192.0.2.1"]).await;
    let b = start("192.0.2.2").await;
    for client in [&a.client, &b.client] {
        leads_to(client, &["192.0.2.1", "192.0.2.2"]).await;
    }
    // The server that ends was the leader.
    a.process.terminate().await;
    assert_eq!(a.process.end().await.code(), Some(0));
    leads_to(&b.client, &["192.0.2.2"]).await;
}

/// Returns once Endpoints and EndpointSlice have these addresses.
async fn leads_to(client: &Client, addresses: &[&str]) {
    let places = [
        ("/api/v1/namespaces/default/endpoints", of_endpoints as fn(&Value) -> Vec<Value>),
        ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", of_slice),
    ];
    for (path, pick) in places {
        let query = "watch=1&fieldSelector=metadata.name%3Dkubernetes";
        let mut watch = client.watch(&format!("{path}?{query}")).await.unwrap();
        while pick(&watch.event().await["object"]) != addresses {}
    }
}

fn of_endpoints(endpoints: &Value) -> Vec<Value> {
    items(&endpoints["subsets"][0]["addresses"]).iter().map(|address| address["ip"].clone()).collect()
}

fn of_slice(slice: &Value) -> Vec<Value> {
    items(&slice["endpoints"]).iter().flat_map(|endpoint| items(&endpoint["addresses"])).cloned().collect()
}

fn items(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
