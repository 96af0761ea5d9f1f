//! Clients that create and delete what quotas count and policies judge, and clients that change quotas and policies and end
//! namespaces, while everything else fails. [`guards`](super::guards) judges what has come of it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::guards::{self, COUNTED, ENDING, Judged, NAMESPACE, PARITY};
use super::history::Violation;
use super::load::{PATIENCE, Shared};
use super::process::pause;
use super::replicas::Replicas;
use crate::support::rest::{Answer, Broken, Client, revision};

const WRITERS: usize = 3;
/// More than any quota allows.
const NAMES: usize = 10;
const NAMESPACES: &str = "/api/v1/namespaces";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";
const PARITIES: [&str; 2] = ["even", "odd"];

pub struct Guarded {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<()>>,
    /// The revisions from which on quotas are right, by their uids.
    answered: Arc<Mutex<BTreeMap<String, u64>>>,
}

/// What the clients share.
#[derive(Clone)]
struct Scene {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    answered: Arc<Mutex<BTreeMap<String, u64>>>,
    /// The namespace that ends next.
    ending: Arc<Mutex<String>>,
}

/// Makes the namespace, the policy and its binding.
pub async fn prepare(client: &Client) {
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    client.post(NAMESPACES, &namespace).await.expect("an answer").ok();
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["secrets"]}]);
    let selector = json!({"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}});
    let mut policy = demanding(PARITIES[0]);
    policy["metadata"]["name"] = PARITY.into();
    policy["spec"]["matchConstraints"] = json!({"resourceRules": rules, "namespaceSelector": selector});
    client.post(POLICIES, &policy).await.expect("an answer").ok();
    client.post(BINDINGS, &binding()).await.expect("an answer").ok();
}

/// What makes the policy demand objects of this parity.
fn demanding(parity: &str) -> Value {
    let expression = format!("object.metadata.labels.{PARITY} == '{parity}'");
    json!({"metadata": {"labels": {PARITY: parity}}, "spec": {"validations": [{"expression": expression}]}})
}

fn binding() -> Value {
    json!({"metadata": {"name": PARITY}, "spec": {"policyName": PARITY, "validationActions": ["Deny"]}})
}

impl Guarded {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let scene = Scene {
            shared: shared.clone(),
            stop: Arc::default(),
            answered: Arc::default(),
            ending: Arc::new(Mutex::new(NAMESPACE.to_owned())),
        };
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_add(11_000 + n as u64));
        let mut clients: Vec<JoinHandle<()>> =
            (0..WRITERS).map(|n| tokio::spawn(write(scene.clone(), random(n)))).collect();
        clients.push(tokio::spawn(change_quota(scene.clone(), random(WRITERS))));
        clients.push(tokio::spawn(change_policy(scene.clone(), random(WRITERS + 1))));
        clients.push(tokio::spawn(end_namespaces(scene.clone(), random(WRITERS + 2))));
        Self { stop: scene.stop, clients, answered: scene.answered }
    }

    /// Ends the clients, and judges what the database has witnessed.
    pub async fn judge(self, replicas: &Replicas) -> (Judged, Vec<Violation>) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client");
        }
        let rows = replicas.records(&guards::RESOURCES).await;
        let mut answered = self.answered.lock().unwrap().clone();
        // What was lacking may have been added in what a failover has lost. It is added again, but nobody says when.
        answered.retain(|uid, revision| rows.iter().any(|row| row.uid == *uid && row.revision == *revision));
        guards::judge(&rows, &answered)
    }
}

impl Scene {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    async fn rest(&self, random: &mut StdRng, most: u64) {
        tokio::time::sleep(Duration::from_millis(random.random_range(1..most))).await;
    }

    fn any(&self, random: &mut StdRng) -> &Client {
        self.shared.any(random)
    }
}

/// The body of a success.
pub async fn success(request: impl Future<Output = Result<Answer, Broken>>) -> Option<Value> {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(Answer { status, body })) if status.is_success() => Some(body),
        _ => None,
    }
}

fn secrets(namespace: &str) -> String {
    format!("{NAMESPACES}/{namespace}/secrets")
}

/// Creates and deletes objects, in the guarded namespace and in the one that ends next.
async fn write(scene: Scene, mut random: StdRng) {
    while !scene.is_over() {
        let (name, parity) =
            (format!("s{}", random.random_range(0..NAMES)), PARITIES[random.random_range(0..2)]);
        let body = json!({"metadata": {"name": name, "labels": {PARITY: parity}}});
        let guarded = secrets(NAMESPACE);
        let server = scene.any(&mut random);
        match random.random_range(0..8) {
            0..4 => drop(success(scene.shared.refusals.post(server, &guarded, &body)).await),
            4..6 => drop(success(server.delete(&format!("{guarded}/{name}"), None)).await),
            _ => {
                let body = json!({"metadata": {"generateName": "s"}});
                let namespace = scene.ending.lock().unwrap().clone();
                if namespace != NAMESPACE {
                    success(scene.shared.refusals.post(server, &secrets(&namespace), &body)).await;
                }
            }
        }
        scene.rest(&mut random, 15).await;
    }
}

/// Makes the quota, changes what it allows, and takes it away.
async fn change_quota(scene: Scene, mut random: StdRng) {
    let all = format!("{NAMESPACES}/{NAMESPACE}/resourcequotas");
    let one = format!("{all}/q");
    while !scene.is_over() {
        let spec = json!({"spec": {"hard": {COUNTED: random.random_range(2..7).to_string()}}});
        let server = scene.any(&mut random);
        match random.random_range(0..8) {
            0 => drop(success(server.delete(&one, None)).await),
            1..4 => drop(success(scene.shared.refusals.merge(server, &one, &spec)).await),
            _ => {
                let mut body = spec;
                body["metadata"] = json!({"name": "q"});
                if let Some(made) = success(scene.shared.refusals.post(server, &all, &body)).await {
                    let uid = made["metadata"]["uid"].as_str().expect("a uid").to_owned();
                    // What it lacked was added before the answer.
                    scene.answered.lock().unwrap().insert(uid, revision(&made));
                }
            }
        }
        scene.rest(&mut random, 150).await;
    }
}

/// Lets the policy demand another parity, and its binding come and go.
async fn change_policy(scene: Scene, mut random: StdRng) {
    let (policy, bound) = (format!("{POLICIES}/{PARITY}"), format!("{BINDINGS}/{PARITY}"));
    while !scene.is_over() {
        let demand = demanding(PARITIES[random.random_range(0..2)]);
        let server = scene.any(&mut random);
        match random.random_range(0..8) {
            0 => drop(success(server.delete(&bound, None)).await),
            1..3 => drop(success(scene.shared.refusals.post(server, BINDINGS, &binding())).await),
            _ => drop(success(scene.shared.refusals.merge(server, &policy, &demand)).await),
        }
        scene.rest(&mut random, 60).await;
    }
}

/// Makes namespaces, and deletes them while others write there.
async fn end_namespaces(scene: Scene, mut random: StdRng) {
    for number in 0.. {
        if scene.is_over() {
            return;
        }
        let name = format!("{ENDING}{number}");
        let body = json!({"metadata": {"name": name}});
        if success(scene.shared.refusals.post(scene.any(&mut random), NAMESPACES, &body)).await.is_none() {
            pause().await;
            continue;
        }
        scene.ending.lock().unwrap().clone_from(&name);
        scene.rest(&mut random, 200).await;
        let path = format!("{NAMESPACES}/{name}");
        success(scene.any(&mut random).delete(&path, None)).await;
        scene.rest(&mut random, 200).await;
    }
}
