//! Clients that make owners, dependents, Pods and batches, delete them in every way, and take finalizers off later, while
//! everything else fails. [`deletions`](super::deletions) judges what has come of it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::deletions::{
    self, Asked, BATCH, Collection, Deleted, GONE, HOLD, PICK, Place, RESOURCES, TREES, finalizers, is_marked,
};
use super::guarded::success;
use super::history::Violation;
use super::load::{PATIENCE, Shared, is_refusal};
use super::process::pause;
use super::replicas::Replicas;
use super::run::RECOVERY;
use crate::support::rest::{Client, revision};

const GROWERS: usize = 2;
const NAMESPACES: &str = "/api/v1/namespaces";
/// The label by which these clients find what is theirs.
const OURS: &str = "deletions";
/// So long that nothing waits for its end, in seconds: a deletion that is put off is a deletion put off.
const GRACE: u64 = 30 * 24 * 3600;
const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];

pub struct Deleting {
    clients: Vec<JoinHandle<()>>,
    scene: Scene,
}

/// What the clients share.
#[derive(Clone)]
struct Scene {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    asked: Arc<Mutex<Asked>>,
    /// The namespace that goes next.
    going: Arc<Mutex<Option<String>>>,
}

/// Makes the namespace, and an owner that stays.
pub async fn prepare(client: &Client) {
    let namespace = json!({"metadata": {"name": TREES}});
    client.post(NAMESPACES, &namespace).await.expect("an answer").ok();
    client.post(&collection("secrets", TREES), &secret("keeper")).await.expect("an answer").ok();
}

fn collection(plural: &str, namespace: &str) -> String {
    format!("{NAMESPACES}/{namespace}/{plural}")
}

fn item((plural, namespace, name): &Place) -> String {
    format!("{}/{name}", collection(plural, namespace))
}

fn secret(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {OURS: "yes"}}})
}

/// A Pod; one that is on a node has a grace period.
fn pod(name: &str, on_a_node: bool) -> Value {
    let mut spec =
        json!({"containers": [{"name": "app", "image": "i"}], "terminationGracePeriodSeconds": GRACE});
    if on_a_node {
        spec["nodeName"] = "nowhere".into();
    }
    let metadata = json!({"name": name, "labels": {OURS: "yes"}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

impl Deleting {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let (stop, asked, going) = (Arc::default(), Arc::default(), Arc::default());
        let scene = Scene { shared: shared.clone(), stop, asked, going };
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_add(13_000 + n as u64));
        let mut clients: Vec<JoinHandle<()>> =
            (0..GROWERS).map(|n| tokio::spawn(grow(scene.clone(), n, random(n)))).collect();
        clients.push(tokio::spawn(collect(scene.clone(), random(GROWERS))));
        clients.push(tokio::spawn(end_namespaces(scene.clone(), random(GROWERS + 1))));
        clients.push(tokio::spawn(let_go(scene.clone(), random(GROWERS + 2))));
        Self { clients, scene }
    }

    /// Ends the clients, waits until all that is being deleted is gone, and judges what the database has witnessed.
    pub async fn judge(self, replicas: &Replicas, lost: bool) -> (Deleted, Vec<Violation>) {
        self.scene.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.await.expect("a client");
        }
        let began = Instant::now();
        let server = &replicas.servers[0].client;
        while !self.scene.tidy(server, 1.0, &mut StdRng::seed_from_u64(0)).await && began.elapsed() < RECOVERY
        {
            pause().await;
        }
        let rows = replicas.records(&RESOURCES).await;
        deletions::judge(&rows, &self.scene.asked.lock().unwrap(), lost)
    }
}

impl Scene {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    async fn rest(&self, random: &mut StdRng, most: u64) {
        tokio::time::sleep(Duration::from_millis(random.random_range(1..most))).await;
    }

    fn ask(&self, write_down: impl FnOnce(&mut Asked)) {
        write_down(&mut self.asked.lock().unwrap());
    }

    /// What was created, if that was answered. Every attempt has a name of its own: a request that comes late does not
    /// meet another one's object.
    async fn make(&self, random: &mut StdRng, plural: &str, namespace: &str, body: &Value) -> Option<Value> {
        let server = self.shared.any(random);
        success(self.shared.refusals.post(server, &collection(plural, namespace), body)).await
    }

    /// Deletes the object, and asks again if the outcome is not known.
    async fn delete(&self, random: &mut StdRng, object: &Value, policy: &str) {
        let place = place(object);
        self.ask(|asked| _ = asked.deletions.insert(place.clone()));
        let options =
            json!({"propagationPolicy": policy, "preconditions": {"uid": object["metadata"]["uid"]}});
        let (path, mut is_refused) = (item(&place), true);
        for _ in 0..5 {
            let request = self.shared.any(random).delete(&path, Some(&options));
            match tokio::time::timeout(PATIENCE, request).await {
                Ok(Ok(answer)) if answer.status.is_success() => return,
                Ok(Ok(answer)) if is_refusal(answer.status) => {}
                _ => is_refused = false,
            }
            pause().await;
        }
        if is_refused {
            self.ask(|asked| _ = asked.deletions.remove(&place));
        }
    }

    /// Ends the grace periods of some Pods, as a kubelet does, and takes off some finalizers; says whether nothing is left
    /// to be done.
    async fn tidy(&self, server: &Client, share: f64, random: &mut StdRng) -> bool {
        let mut objects = Vec::new();
        for plural in ["secrets", "pods"] {
            let path = format!("/api/v1/{plural}?labelSelector={OURS}");
            let Some(list) = success(server.get(&path)).await else { return false };
            let kind = if plural == "pods" { "Pod" } else { "Secret" };
            objects.extend(list["items"].as_array().expect("items").iter().cloned().map(|mut object| {
                object["kind"] = kind.into();
                object
            }));
        }
        let Some(namespaces) = success(server.get(NAMESPACES)).await else { return false };
        let uids: BTreeSet<&str> =
            objects.iter().filter_map(|object| object["metadata"]["uid"].as_str()).collect();
        let has_lost_an_owner = |object: &Value| {
            let mut owners = object["metadata"]["ownerReferences"].as_array().into_iter().flatten();
            owners.any(|owner| !uids.contains(owner["uid"].as_str().expect("a uid")))
        };
        let is_done = !objects.iter().any(|object| is_marked(object) || has_lost_an_owner(object))
            && !namespaces["items"].as_array().expect("items").iter().any(is_marked);
        for object in objects.iter().filter(|object| is_marked(object)) {
            if random.random_bool(share) {
                self.let_go(server, object).await;
            }
        }
        is_done
    }

    /// Takes off the clients' finalizer, or else ends the grace period, of this version.
    async fn let_go(&self, server: &Client, object: &Value) {
        let (place, at) = (place(object), revision(object));
        let version = at.to_string();
        if finalizers(object).contains(&HOLD) {
            self.ask(|asked| _ = asked.released.insert((place.clone(), at)));
            let mut kept = finalizers(object);
            kept.retain(|name| *name != HOLD);
            let metadata = json!({"resourceVersion": version, "finalizers": kept});
            let body = json!({"metadata": metadata});
            success(self.shared.refusals.merge(server, &item(&place), &body)).await;
        } else if place.0 == "pods" {
            self.ask(|asked| _ = asked.killed.insert((place.clone(), at)));
            let preconditions = json!({"uid": object["metadata"]["uid"], "resourceVersion": version});
            let options = json!({"gracePeriodSeconds": 0, "preconditions": preconditions});
            success(server.delete(&item(&place), Some(&options))).await;
        }
    }
}

fn place(object: &Value) -> Place {
    let text = |field: &str| object["metadata"][field].as_str().expect("text").to_owned();
    let plural = if object["kind"] == "Pod" { "pods" } else { "secrets" };
    (plural.to_owned(), text("namespace"), text("name"))
}

/// Makes trees of owners and dependents, and deletes their roots.
async fn grow(scene: Scene, client: usize, mut random: StdRng) {
    for number in 0.. {
        scene.rest(&mut random, 100).await;
        if scene.is_over() {
            return;
        }
        let mut root = secret(&format!("t{client}x{number}"));
        hold(&mut root, &mut random);
        let Some(root) = scene.make(&mut random, "secrets", TREES, &root).await else { continue };
        let keeper = success(scene.shared.any(&mut random).get(&item(&at("keeper")))).await;
        let mut children: Vec<Value> = Vec::new();
        for n in 0..random.random_range(1..6) {
            let name = format!("t{client}x{number}-{n}");
            let is_pod = random.random_bool(0.3);
            let on_a_node = random.random_bool(0.5);
            let mut child = if is_pod { pod(&name, on_a_node) } else { secret(&name) };
            let parent = children.last().filter(|_| random.random_bool(0.3)).unwrap_or(&root);
            let second = keeper.as_ref().filter(|_| random.random_bool(0.2));
            let owners = [Some(parent), second].into_iter().flatten();
            let owners: Vec<Value> = owners.map(|owner| owned_by(owner, &mut random)).collect();
            child["metadata"]["ownerReferences"] = owners.into();
            hold(&mut child, &mut random);
            let plural = if is_pod { "pods" } else { "secrets" };
            children.extend(scene.make(&mut random, plural, TREES, &child).await);
        }
        let policy = POLICIES[random.random_range(0..3)];
        scene.delete(&mut random, &root, policy).await;
        if let Some(child) = children.first().filter(|_| random.random_bool(0.5)) {
            meddle(&scene, &mut random, child).await;
        }
    }
}

fn at(name: &str) -> Place {
    ("secrets".to_owned(), TREES.to_owned(), name.to_owned())
}

fn owned_by(owner: &Value, random: &mut StdRng) -> Value {
    let mut reference = json!({
        "apiVersion": "v1",
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    });
    if random.random_bool(0.7) {
        reference["blockOwnerDeletion"] = true.into();
    }
    reference
}

fn hold(object: &mut Value, random: &mut StdRng) {
    if random.random_bool(0.25) {
        object["metadata"]["finalizers"] = json!([HOLD]);
    }
}

/// Writes an object as it was read, but for what only the server may write: that has to stay.
async fn meddle(scene: &Scene, random: &mut StdRng, object: &Value) {
    let path = item(&place(object));
    let Some(mut read) = success(scene.shared.any(random).get(&path)).await else { return };
    let metadata = read["metadata"].as_object_mut().expect("metadata");
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        metadata.remove(field);
    }
    metadata["labels"]["meddled"] = "yes".into();
    success(scene.shared.refusals.put(scene.shared.any(random), &path, &read)).await;
}

/// Makes batches, and deletes what a selector picks of them.
async fn collect(scene: Scene, mut random: StdRng) {
    for number in 0.. {
        scene.rest(&mut random, 300).await;
        if scene.is_over() {
            return;
        }
        let going = scene.going.lock().unwrap().clone();
        let namespace = going.filter(|_| random.random_bool(0.5)).unwrap_or_else(|| TREES.to_owned());
        let plural = if random.random_bool(0.3) { "pods" } else { "secrets" };
        let batch = format!("b{number}");
        for n in 0..random.random_range(2..8) {
            let name = format!("{batch}-{n}");
            let on_a_node = random.random_bool(0.5);
            let mut object = if plural == "pods" { pod(&name, on_a_node) } else { secret(&name) };
            object["metadata"]["labels"][BATCH] = batch.clone().into();
            object["metadata"]["labels"][PICK] = (if random.random_bool(0.6) { "yes" } else { "no" }).into();
            hold(&mut object, &mut random);
            scene.make(&mut random, plural, &namespace, &object).await;
        }
        let path = format!("{}?labelSelector={BATCH}={batch},{PICK}=yes", collection(plural, &namespace));
        let asked = Collection { plural: plural.to_owned(), namespace, batch, answered: None };
        scene.ask(|all| all.collections.push(asked.clone()));
        if let Some(list) = success(scene.shared.any(&mut random).delete(&path, None)).await {
            let answered = Some(revision(&list));
            scene.ask(|all| all.collections.push(Collection { answered, ..asked }));
        }
    }
}

/// Makes namespaces, and deletes them with what is in them.
async fn end_namespaces(scene: Scene, mut random: StdRng) {
    for number in 0.. {
        if scene.is_over() {
            return;
        }
        let name = format!("{GONE}{number}");
        let body = json!({"metadata": {"name": name}});
        let server = scene.shared.any(&mut random);
        if success(scene.shared.refusals.post(server, NAMESPACES, &body)).await.is_none() {
            pause().await;
            continue;
        }
        scene.going.lock().unwrap().replace(name.clone());
        scene.rest(&mut random, 500).await;
        let place = ("namespaces".to_owned(), String::new(), name.clone());
        scene.ask(|asked| _ = asked.deletions.insert(place));
        success(scene.shared.any(&mut random).delete(&format!("{NAMESPACES}/{name}"), None)).await;
        scene.rest(&mut random, 500).await;
    }
}

/// Takes off finalizers and ends grace periods, some time after they have begun to matter.
async fn let_go(scene: Scene, mut random: StdRng) {
    while !scene.is_over() {
        scene.rest(&mut random, 400).await;
        let server = scene.shared.any(&mut random).clone();
        scene.tidy(&server, 0.5, &mut random).await;
    }
}
