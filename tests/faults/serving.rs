//! Clients that make Services, change their types and ports, and delete them, while everything else fails; some want the same
//! addresses and ports. [`services`](super::services) judges what has come of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::guarded::success;
use super::history::Violation;
use super::load::Shared;
use super::replicas::Replicas;
use super::services::{self, NAMESPACE, QUIET, RESOURCES, Served};
use crate::support::rest::Client;

const WRITERS: usize = 3;
const NAMES: usize = 6;
const SERVICES: &str = "/api/v1/namespaces/serving/services";

pub struct Serving {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
}

pub async fn prepare(client: &Client) {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    client.post("/api/v1/namespaces", &namespace).await.expect("an answer").ok();
}

impl Serving {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_add(15_000 + n as u64));
        let client = |n| tokio::spawn(write(shared.clone(), random(n), stop.clone()));
        Self { clients: (0..WRITERS).map(client).collect(), stop }
    }

    /// Ends the clients, lets Services come and go when nothing is wrong, and judges what the database has witnessed.
    pub async fn judge(self, replicas: &Replicas) -> (Served, Vec<Violation>) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client");
        }
        let mut quiet = Vec::new();
        for (number, server) in replicas.servers.iter().enumerate() {
            let name = format!("{QUIET}{number}");
            if come_and_go(&server.client, &name).await.is_some() {
                quiet.push(name);
            }
        }
        services::judge(&replicas.records(&RESOURCES).await, &quiet)
    }
}

/// `None` if something was not answered as it should be.
async fn come_and_go(server: &Client, name: &str) -> Option<()> {
    let path = format!("{SERVICES}/{name}");
    let mut body = service(name, "NodePort");
    body["spec"]["ports"] = json!([{"name": "web", "port": 80}, {"name": "more", "port": 81}]);
    success(server.post(SERVICES, &body)).await?;
    success(server.merge(&path, &json!({"spec": {"ports": [{"port": 82}]}}))).await?;
    success(server.merge(&path, &json!({"spec": {"type": "ClusterIP"}}))).await?;
    success(server.delete(&path, None)).await.map(drop)
}

fn service(name: &str, kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": kind, "ports": [{"name": "web", "port": 80}]}})
}

/// Few enough that others want them, too.
fn wanted_port(random: &mut StdRng) -> u64 {
    random.random_range(30_000..30_006)
}

async fn write(shared: Arc<Shared>, mut random: StdRng, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let name = format!("s{}", random.random_range(0..NAMES));
        let path = format!("{SERVICES}/{name}");
        let server = shared.any(&mut random);
        match random.random_range(0..8) {
            0..3 => {
                let body = any_service(&name, &mut random);
                success(shared.refusals.post(server, SERVICES, &body)).await;
            }
            3..5 => drop(success(server.delete(&path, None)).await),
            5 => replace(&shared, server, &path, &mut random).await,
            _ => drop(success(shared.refusals.merge(server, &path, &change(&mut random))).await),
        }
        tokio::time::sleep(Duration::from_millis(random.random_range(1..40))).await;
    }
}

fn any_service(name: &str, random: &mut StdRng) -> Value {
    let kind = ["ClusterIP", "NodePort", "LoadBalancer"][random.random_range(0..3)];
    let mut body = service(name, kind);
    if kind != "ClusterIP" && random.random_bool(0.5) {
        body["spec"]["ports"][0]["nodePort"] = wanted_port(random).into();
    }
    if kind == "LoadBalancer" && random.random_bool(0.5) {
        body["spec"]["externalTrafficPolicy"] = "Local".into();
    }
    if random.random_bool(0.3) {
        body["spec"]["clusterIP"] = format!("10.0.0.{}", random.random_range(20..26)).into();
    }
    body
}

/// A merge patch of a Service's type or port.
fn change(random: &mut StdRng) -> Value {
    let port = json!({"name": "web", "port": 80, "nodePort": wanted_port(random)});
    match random.random_range(0..4) {
        0 => json!({"spec": {"type": "ClusterIP", "externalTrafficPolicy": null}}),
        1 => json!({"spec": {"type": "NodePort"}}),
        2 => json!({"spec": {"type": "NodePort", "ports": [port]}}),
        _ => json!({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": null,
            "clusterIPs": null, "externalTrafficPolicy": null}}),
    }
}

/// Reads the Service, and writes it with another port.
async fn replace(shared: &Shared, server: &Client, path: &str, random: &mut StdRng) {
    let Some(mut read) = success(server.get(path)).await else { return };
    if read["spec"]["type"] != "ExternalName" {
        read["spec"]["type"] = "NodePort".into();
        read["spec"]["ports"][0]["nodePort"] = wanted_port(random).into();
    }
    success(shared.refusals.put(server, path, &read)).await;
}
