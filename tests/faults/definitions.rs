//! Clients that define resources, use them, change their definitions and delete them, while everything else fails. In the
//! end nothing that was answered is missing, and nothing is left of what is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use http::StatusCode;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::history::{Promise, Violation};
use super::load::{PATIENCE, Shared, is_refusal, is_trouble};
use super::process::pause;
use super::replicas::Replicas;
use super::run::RECOVERY;
use crate::support::rest::{Answer as Response, Broken, Client};

pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const GROUP: &str = "churn.example.com";
/// A kind that only one definition can have at a time.
const SHARED: &str = "Shared";
const CLIENTS: usize = 2;
const OBJECTS: usize = 3;

/// The resource of the load's custom objects: clients write and read v2, which a webhook makes of what is stored.
pub fn widgets(webhook: &Value) -> Value {
    let count = json!({"type": "integer"});
    let conditions =
        json!({"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let spec = json!({"type": "object", "properties": {"replicas": count, "size": {"type": "integer", "default": 1}}});
    let status = json!({"type": "object", "properties": {"replicas": count, "conditions": conditions}});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    let mut widgets = definition("faults.example.com", ("widgets", "Widget"), schema);
    let mut newer = widgets["spec"]["versions"][0].clone();
    (newer["name"], newer["storage"]) = ("v2".into(), false.into());
    widgets["spec"]["versions"].as_array_mut().expect("versions").push(newer);
    widgets["spec"]["conversion"] = json!({"strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": webhook}});
    widgets
}

fn definition(group: &str, (plural, kind): (&str, &str), schema: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Done,
    Refused,
    Unknown,
}

/// A definition of the churn, and what its client was told.
#[derive(Debug)]
struct Life {
    plural: String,
    created: Outcome,
    objects: Vec<(String, Outcome)>,
    deleted: Option<Outcome>,
}

pub struct Churn {
    stop: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Life>>>,
    changes: JoinHandle<usize>,
}

impl Churn {
    pub fn start(shared: &Arc<Shared>, seed: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_add(7000 + n as u64));
        let client = |n| tokio::spawn(live(shared.clone(), n, random(n), stop.clone()));
        Self {
            clients: (0..CLIENTS).map(client).collect(),
            changes: tokio::spawn(change_widgets(shared.clone(), random(CLIENTS), stop.clone())),
            stop,
        }
    }

    /// Ends the churn, and compares what its clients were told with what is there. Where a failover may have `lost` answered
    /// writes, only what is there has to fit together.
    pub async fn judge(self, replicas: &Replicas, lost: bool) -> (usize, Vec<Violation>) {
        self.stop.store(true, Ordering::Relaxed);
        let mut lives = Vec::new();
        for client in self.clients {
            lives.extend(client.await.expect("a client"));
        }
        let changes = self.changes.await.expect("a client");
        let mut violations = until_settled(replicas).await;
        let server = &replicas.servers[0].client;
        let there = definitions(server).await;
        for life in lives.iter().filter(|_| !lost) {
            violations.extend(life.judge(server, &there).await);
        }
        (lives.len() + changes, violations)
    }
}

/// Waits until what controllers do about definitions is done. What is wrong for too long is a violation.
async fn until_settled(replicas: &Replicas) -> Vec<Violation> {
    let began = Instant::now();
    loop {
        let there = definitions(&replicas.servers[0].client).await;
        let mut wrong = unsettled(&there);
        for server in &replicas.servers {
            wrong.extend(wrongly_served(&server.client, &there).await);
        }
        wrong.extend(unfit_rows(replicas, &there).await);
        if wrong.is_empty() || began.elapsed() > RECOVERY {
            return wrong.into_iter().map(|story| Violation::new(Promise::Durable, story)).collect();
        }
        pause().await;
    }
}

/// Definitions that are being deleted, and a kind that nobody has though somebody wants it.
fn unsettled(there: &[Value]) -> Vec<String> {
    let ending = there.iter().filter(|definition| definition["metadata"]["deletionTimestamp"].is_string());
    let mut wrong: Vec<String> =
        ending.map(|definition| format!("a definition does not end: {definition}")).collect();
    let wants = there.iter().filter(|definition| definition["spec"]["names"]["kind"] == SHARED).count();
    let has =
        there.iter().filter(|definition| definition["status"]["acceptedNames"]["kind"] == SHARED).count();
    if has != wants.min(1) {
        wrong.push(format!("{has} of {wants} definitions have the kind that they share"));
    }
    wrong
}

impl Life {
    async fn judge(&self, server: &Client, there: &[Value]) -> Vec<Violation> {
        let name = format!("{}.{GROUP}", self.plural);
        let is_there = there.iter().any(|definition| definition["metadata"]["name"] == *name);
        let durable = |story: &str| vec![Violation::new(Promise::Durable, format!("{story}: {self:?}"))];
        match (self.created, self.deleted) {
            (Outcome::Done, None | Some(Outcome::Refused)) if !is_there => {
                return durable("a definition is lost");
            }
            (_, Some(Outcome::Done)) if is_there => return durable("a deleted definition is there"),
            (Outcome::Refused, _) if is_there => return durable("a refused definition is there"),
            _ => {}
        }
        if !is_there {
            return Vec::new();
        }
        let mut violations = Vec::new();
        for (object, outcome) in self.objects.iter().filter(|(_, outcome)| *outcome != Outcome::Unknown) {
            let found =
                server.get(&format!("{}/{object}", collection(&self.plural))).await.expect("an answer");
            match (found.status, outcome) {
                (StatusCode::OK, Outcome::Refused) => {
                    violations.extend(durable("a refused custom object is there"));
                }
                // Objects that were being deleted with their definition, when it was lost that it was deleted.
                (StatusCode::OK, _) | (_, Outcome::Refused) => {}
                _ if self.deleted.is_none() => violations.extend(durable("a custom object is lost")),
                _ => {}
            }
        }
        violations
    }
}

/// Defines resources, each used for a moment. Some share a kind, which one of them has at a time.
async fn live(shared: Arc<Shared>, client: usize, mut random: StdRng, stop: Arc<AtomicBool>) -> Vec<Life> {
    let mut lives = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let plural = format!("things{client}x{}", lives.len());
        let kind = match random.random_bool(0.4) {
            true => SHARED.to_owned(),
            false => format!("Thing{client}x{}", lives.len()),
        };
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let body = definition(GROUP, (&plural, &kind), schema);
        let created = outcome(shared.any(&mut random).post(DEFINITIONS, &body)).await;
        let mut life = Life { plural, created, objects: Vec::new(), deleted: None };
        let item = format!("{DEFINITIONS}/{}.{GROUP}", life.plural);
        for n in 0..OBJECTS {
            let metadata = json!({"name": format!("o{n}")});
            let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": metadata, "spec": {"n": n}});
            let server = shared.any(&mut random);
            let created = outcome(server.post(&collection(&life.plural), &object)).await;
            life.objects.push((format!("o{n}"), created));
        }
        if random.random_bool(0.5) {
            let change = json!({"metadata": {"annotations": {"round": "1"}}, "spec": {"names": {"categories": ["all"]}}});
            outcome(shared.any(&mut random).merge(&item, &change)).await;
        }
        if random.random_bool(0.7) {
            life.deleted = Some(outcome(shared.any(&mut random).delete(&item, None)).await);
        }
        lives.push(life);
        pause().await;
    }
    lives
}

/// Changes the definition of the load's custom objects, at times in a way that ends their watches.
async fn change_widgets(shared: Arc<Shared>, mut random: StdRng, stop: Arc<AtomicBool>) -> usize {
    let item = format!("{DEFINITIONS}/widgets.faults.example.com");
    let mut changes = 0;
    while !stop.load(Ordering::Relaxed) {
        changes += 1;
        let change = match random.random_bool(0.5) {
            true => json!({"metadata": {"annotations": {"change": changes.to_string()}}}),
            false => json!({"spec": {"names": {"categories": [format!("round{changes}")]}}}),
        };
        outcome(shared.any(&mut random).merge(&item, &change)).await;
        tokio::time::sleep(std::time::Duration::from_millis(random.random_range(50..800))).await;
    }
    changes
}

async fn outcome(request: impl Future<Output = Result<Response, Broken>>) -> Outcome {
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(response)) if response.status.is_success() => Outcome::Done,
        Ok(Ok(response)) if is_trouble(response.status) && !is_refusal(response.status) => Outcome::Unknown,
        Ok(Ok(_)) => Outcome::Refused,
        Ok(Err(_)) | Err(_) => Outcome::Unknown,
    }
}

fn collection(plural: &str) -> String {
    format!("/apis/{GROUP}/v1/namespaces/default/{plural}")
}

async fn definitions(server: &Client) -> Vec<Value> {
    let list = server.get(DEFINITIONS).await.expect("an answer").ok();
    list["items"].as_array().expect("items").clone()
}

/// A server serves the definitions that are established, and nothing else of the group.
async fn wrongly_served(server: &Client, there: &[Value]) -> Option<String> {
    let found = server.get(&format!("/apis/{GROUP}/v1")).await.expect("an answer");
    let resources = found.body["resources"].as_array().into_iter().flatten();
    let served: BTreeSet<&str> = resources
        .filter_map(|resource| resource["name"].as_str())
        .filter(|name| !name.contains('/'))
        .collect();
    let established = there.iter().filter(|definition| definition["spec"]["group"] == GROUP);
    let established: BTreeSet<&str> = established
        .filter(|definition| {
            let conditions = definition["status"]["conditions"].as_array().expect("conditions");
            conditions.iter().any(|found| found["type"] == "Established" && found["status"] == "True")
        })
        .filter_map(|definition| definition["spec"]["names"]["plural"].as_str())
        .collect();
    (served != established).then(|| format!("a server serves {served:?} instead of {established:?}"))
}

/// Names are kept for the definitions that have them, and no object is left whose definition is gone.
async fn unfit_rows(replicas: &Replicas, there: &[Value]) -> Vec<String> {
    const LIVE: &str = "FROM objects o JOIN resources r ON r.id = o.resource WHERE NOT o.deleted AND o.resource_version = \
         (SELECT MAX(p.resource_version) FROM objects p \
          WHERE p.resource = o.resource AND p.namespace = o.namespace AND p.name = o.name)";
    let mut wrong = Vec::new();
    let kept = format!("SELECT o.namespace || ' ' || o.name {LIVE} AND r.plural = 'customresourcenames'");
    let kept: BTreeSet<String> = replicas.texts(&kept).await.into_iter().collect();
    let expected: BTreeSet<String> = there.iter().flat_map(names).collect();
    if kept != expected {
        wrong.push(format!("the names {kept:?} are kept instead of {expected:?}"));
    }
    let left = format!("SELECT DISTINCT r.plural || '.' || r.api_group {LIVE} AND r.api_group = '{GROUP}'");
    for resource in replicas.texts(&left).await {
        if !there.iter().any(|definition| definition["metadata"]["name"] == *resource) {
            wrong.push(format!("objects of {resource} are left, which nothing defines"));
        }
    }
    wrong
}

/// The rows that keep a definition's names: those of its group.
fn names(definition: &Value) -> Vec<String> {
    let group = definition["spec"]["group"].as_str().expect("a group");
    let names = &definition["status"]["acceptedNames"];
    let short = names["shortNames"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let resources = ["plural", "singular"].into_iter().filter_map(|name| names[name].as_str()).chain(short);
    let kinds = ["kind", "listKind"].into_iter().filter_map(|name| names[name].as_str());
    let rows = resources.map(str::to_owned).chain(kinds.map(|kind| format!("kind/{kind}")));
    rows.filter(|name| !name.is_empty() && name != "kind/").map(|name| format!("{group} {name}")).collect()
}
