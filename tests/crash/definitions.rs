//! Definitions come, are used and go while their server is killed: what was answered stays, and an unanswered one is there
//! with all that belongs to it, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::support::postgres::Schema;
use crate::support::process::Installation;
use crate::support::rest::{Answer, Broken, Client};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// Clients, each with definitions of its own.
const USERS: usize = 4;

/// What the load writes.
pub fn records() -> Value {
    definition("load.ex.io", "records", "Record")
}

fn definition(group: &str, plural: &str, kind: &str) -> Value {
    let content = json!({"token": {"type": "string"}, "padding": {"type": "string"}});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": content}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]}})
}

/// How far the life of a definition came, as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Its creation got no answer.
    Asked,
    Defined,
    /// An object of it is there.
    Used,
    /// Its deletion got no answer.
    AskedToGo,
    Deleted,
}

#[derive(Clone, Debug)]
struct Life {
    plural: String,
    reached: Step,
}

impl Life {
    fn path(&self) -> String {
        format!("{DEFINITIONS}/{}.kill.ex.io", self.plural)
    }

    fn objects(&self) -> String {
        format!("/apis/kill.ex.io/v1/namespaces/default/{}", self.plural)
    }

    /// A step was answered.
    fn reach(&mut self, step: Step, steps: &watch::Sender<usize>) {
        self.reached = step;
        steps.send_modify(|steps| *steps += 1);
    }

    fn object(&self, name: &str) -> Value {
        json!({"apiVersion": "kill.ex.io/v1", "kind": format!("K{}", self.plural), "metadata": {"name": name},
            "spec": {"token": self.plural}})
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite() {
    run(Installation::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres() {
    let schema = Schema::create().await;
    run(Installation::postgres(&schema)).await;
}

async fn run(installation: Installation) {
    let seed = crate::number("ROWPLANE_TEST_SEED").unwrap_or_else(rand::random);
    println!("ROWPLANE_TEST_SEED={seed}");
    let mut random = StdRng::seed_from_u64(seed);
    let installation = installation.without_heartbeats();
    let mut server = installation.start().await;
    let client = installation.client().await;
    let mut lives = Vec::new();
    for _ in 0..crate::number("ROWPLANE_TEST_ROUNDS").unwrap_or(3) {
        let (users, steps) = users(&client, lives.len(), random.random());
        let enough = random.random_range(5..40);
        let mut answered = steps.subscribe();
        answered.wait_for(|answered| *answered >= enough).await.expect("the sender is ours");
        server.kill().await;
        for user in users {
            lives.extend(user.await.expect("a user"));
        }
        server = installation.start().await;
        for life in &mut lives {
            check(&client, life).await;
        }
    }
    println!("{} definitions: {:?}", lives.len(), lives.iter().map(|life| life.reached).collect::<Vec<_>>());
    server.terminate().await;
    assert_eq!(server.end().await.code(), Some(0));
}

type Users = Vec<JoinHandle<Vec<Life>>>;

/// Clients that define, use and delete until the server is gone, and how many of their steps have been answered.
fn users(client: &Client, first: usize, seed: u64) -> (Users, watch::Sender<usize>) {
    let steps = watch::Sender::new(0);
    let number = Arc::new(AtomicUsize::new(first));
    let users = (0..USERS).map(|user| {
        let random = StdRng::seed_from_u64(seed.wrapping_add(user as u64));
        tokio::spawn(user_of(client.clone(), number.clone(), steps.clone(), random))
    });
    (users.collect(), steps)
}

async fn user_of(
    client: Client,
    number: Arc<AtomicUsize>,
    steps: watch::Sender<usize>,
    mut random: StdRng,
) -> Vec<Life> {
    let mut lives = Vec::new();
    loop {
        let plural = format!("k{}s", number.fetch_add(1, Ordering::Relaxed));
        let mut life = Life { plural, reached: Step::Asked };
        let lived = live(&client, &mut life, &steps, random.random_bool(0.5)).await;
        lives.push(life);
        if lived.is_none() {
            return lives;
        }
    }
}

/// `None` once the server does not answer.
async fn live(client: &Client, life: &mut Life, steps: &watch::Sender<usize>, ends: bool) -> Option<()> {
    let own = definition("kill.ex.io", &life.plural, &format!("K{}", life.plural));
    let created = done(client.post(DEFINITIONS, &own).await, StatusCode::CREATED)?;
    assert!(is_established(&created), "{created}");
    life.reach(Step::Defined, steps);
    done(client.post(&life.objects(), &life.object("first")).await, StatusCode::CREATED)?;
    life.reach(Step::Used, steps);
    if ends {
        life.reached = Step::AskedToGo;
        done(client.delete(&life.path(), None).await, StatusCode::OK)?;
        life.reach(Step::Deleted, steps);
    }
    Some(())
}

/// The body of a success; `None` without an answer. Nothing else is an answer here.
fn done(answer: Result<Answer, Broken>, status: StatusCode) -> Option<Value> {
    let answer = answer.ok()?;
    if answer.status.is_server_error() {
        return None;
    }
    assert_eq!(answer.status, status, "{}", answer.body);
    Some(answer.body)
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions
        .into_iter()
        .any(|condition| condition["type"] == "Established" && condition["status"] == "True")
}

/// Whether the server has what was answered, and nothing by halves. Later rounds know what this one finds.
async fn check(client: &Client, life: &mut Life) {
    let stored = client.get(&life.path()).await.expect("an answer");
    let is_going = stored.body["metadata"]["deletionTimestamp"].is_string();
    if stored.status == StatusCode::NOT_FOUND || is_going {
        assert!(matches!(life.reached, Step::Asked | Step::AskedToGo | Step::Deleted), "lost: {life:?}");
        gone(client, life).await;
        life.reached = Step::Deleted;
        return;
    }
    assert_eq!(stored.status, StatusCode::OK, "{}", stored.body);
    assert_ne!(life.reached, Step::Deleted, "{life:?} is back");
    assert!(is_established(&stored.body), "{}", stored.body);
    let objects = client.get(&life.objects()).await.expect("an answer").ok();
    let items = objects["items"].as_array().expect("items");
    match life.reached {
        Step::Used | Step::AskedToGo => assert_eq!(items.len(), 1, "{life:?}: {objects}"),
        _ => assert!(items.len() <= 1, "{life:?}: {objects}"),
    }
    assert!(items.iter().all(|item| item["spec"]["token"] == life.plural.as_str()), "{objects}");
    // It can be used: its object is created now, unless that happened before.
    let used = client.post(&life.objects(), &life.object("first")).await.expect("an answer");
    let wanted = if items.is_empty() { StatusCode::CREATED } else { StatusCode::CONFLICT };
    assert_eq!(used.status, wanted, "{}", used.body);
    life.reached = Step::Used;
}

/// Waits for the end of a definition that is being deleted: its objects go with it.
async fn gone(client: &Client, life: &Life) {
    while client.get(&life.path()).await.expect("an answer").status != StatusCode::NOT_FOUND {}
    let objects = client.get(&life.objects()).await.expect("an answer");
    assert_eq!(objects.status, StatusCode::NOT_FOUND, "{life:?}: {}", objects.body);
}
