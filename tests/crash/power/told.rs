//! What clients do while a server's files are recorded, what they are told, and whether it is still true after the power has
//! gone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::rest::{Answer, Broken, Client, revision};

pub const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 6;
const NAMES: usize = 3;
const WRITES: usize = 600;

/// A write as its client knows it. Times are lengths of the record.
#[derive(Debug)]
pub struct Attempt {
    name: String,
    /// What the object holds afterwards; `None` if it was deleted.
    token: Option<usize>,
    begun: u64,
    /// When it was answered, and the revision of the answer, if that has one.
    answered: Option<(u64, Option<u64>)>,
}

/// A watch's event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    revision: u64,
    kind: String,
    name: String,
    token: usize,
}

/// What clients were told, and when.
pub struct Told {
    /// When the first server had printed where it is.
    pub ready: u64,
    pub kubeconfig: PathBuf,
    /// Where the watches begin, and when clients were told so.
    start: (u64, u64),
    pub attempts: Vec<Attempt>,
    pub events: Vec<(u64, Event)>,
}

/// The record while it grows.
#[derive(Clone)]
pub struct Clock(Arc<PathBuf>);

impl Clock {
    pub fn of(record: &Path) -> Self {
        Self(Arc::new(record.to_owned()))
    }

    pub fn now(&self) -> u64 {
        std::fs::metadata(&*self.0).expect("the record").len()
    }
}

/// Writers and a watcher.
pub struct Load {
    /// Where the watches begin, and when clients were told so.
    start: (u64, u64),
    writers: Vec<JoinHandle<Vec<Attempt>>>,
    attempts: Vec<Attempt>,
    watcher: JoinHandle<()>,
    events: Arc<Mutex<Vec<(u64, Event)>>>,
}

impl Load {
    pub async fn start(client: &Client, clock: &Clock, seed: u64) -> Self {
        let start = revision(&client.get(MAPS).await.expect("an answer").ok());
        let told = clock.now();
        let events = Arc::new(Mutex::new(Vec::new()));
        let watcher = tokio::spawn(watch(client.clone(), clock.clone(), start, events.clone()));
        let left = Arc::new(AtomicUsize::new(WRITES));
        let writer = |n| {
            let random = StdRng::seed_from_u64(seed.wrapping_add(n as u64));
            tokio::spawn(write(client.clone(), clock.clone(), n, left.clone(), random))
        };
        let writers = (0..WRITERS).map(writer).collect();
        Self { start: (start, told), writers, attempts: Vec::new(), watcher, events }
    }

    /// Returns once everything has been written and answered.
    pub async fn written(&mut self) {
        for writer in self.writers.drain(..) {
            self.attempts.extend(writer.await.expect("a writer"));
        }
    }

    /// What clients were told. The server must have ended, and with it the watch.
    pub async fn told(self, ready: u64, kubeconfig: PathBuf) -> Told {
        let _ = self.watcher.await;
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        Told { ready, kubeconfig, start: self.start, attempts: self.attempts, events }
    }
}

/// Creates, updates and deletes objects that nobody else writes.
async fn write(
    client: Client,
    clock: Clock,
    writer: usize,
    left: Arc<AtomicUsize>,
    mut random: StdRng,
) -> Vec<Attempt> {
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut there = [false; NAMES];
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok() {
        let n = random.random_range(0..NAMES);
        let name = format!("w{writer}-{n}");
        let token = attempts.len();
        let size = if random.random_ratio(1, 4) { 60_000 } else { 500 };
        let text: String =
            (0..random.random_range(0..size)).map(|_| random.random_range('a'..='z')).collect();
        let data = json!({"token": token.to_string(), "text": text});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
        let begun = clock.now();
        let item = format!("{MAPS}/{name}");
        let (token, answer) = match there[n] {
            false => (Some(token), client.post(MAPS, &object).await),
            true if random.random_ratio(1, 5) => (None, client.delete(&item, None).await),
            true => (Some(token), client.put(&item, &object).await),
        };
        let body = answer.expect("an answer").ok();
        there[n] = token.is_some();
        let revision = token.map(|_| revision(&body));
        attempts.push(Attempt { name, token, begun, answered: Some((clock.now(), revision)) });
    }
    attempts
}

/// Watches until the server is gone.
async fn watch(client: Client, clock: Clock, start: u64, events: Arc<Mutex<Vec<(u64, Event)>>>) {
    let mut watch = client.watch(&format!("{MAPS}?watch=1&resourceVersion={start}")).await.expect("a watch");
    while let Ok(Some(event)) = watch.next().await {
        let event = event_of(&event);
        events.lock().unwrap().push((clock.now(), event));
    }
}

fn event_of(event: &Value) -> Event {
    let object = &event["object"];
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    Event {
        revision: revision(object),
        kind: text(&event["type"]),
        name: text(&object["metadata"]["name"]),
        token: token(object),
    }
}

fn token(object: &Value) -> usize {
    object["data"]["token"].as_str().and_then(|token| token.parse().ok()).expect("a token")
}

fn success(answer: Result<Answer, Broken>) -> Result<Value, String> {
    let Answer { status, body } = answer.map_err(|broken| broken.0)?;
    if status.is_success() { Ok(body) } else { Err(format!("{status}: {body}")) }
}

impl Told {
    /// What is not as clients were told before the cut.
    pub async fn look(&self, client: &Client, at: u64) -> Result<Vec<String>, String> {
        let list = success(client.get(MAPS).await)?;
        let mut wrong = self.compare(&list, at);
        // Earlier, nobody knows a revision, and the one where the watches will begin may yet be to come.
        if at >= self.start.1 {
            wrong.extend(self.go_on(client, revision(&list), at).await?);
        }
        Ok(wrong)
    }

    /// The objects that are not as an answered write has left them, or one that was sent.
    fn compare(&self, list: &Value, at: u64) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut there: BTreeMap<&str, &Value> = BTreeMap::new();
        for object in list["items"].as_array().expect("items") {
            there.insert(object["metadata"]["name"].as_str().expect("a name"), object);
        }
        let mut names: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
        for attempt in &self.attempts {
            names.entry(&attempt.name).or_default().push(attempt);
        }
        for (name, attempts) in &names {
            let answered =
                attempts.iter().rposition(|attempt| attempt.answered.is_some_and(|(when, _)| when <= at));
            let begun = attempts.iter().rposition(|attempt| attempt.begun <= at);
            let found = there.remove(name);
            let possible = match (answered, begun) {
                (Some(first), Some(last)) => &attempts[first..=last],
                (None, Some(last)) => &attempts[..=last],
                (_, None) => &[],
            };
            let is = |attempt: &&Attempt| {
                let revision_of = |object| Some(revision(object));
                let told = attempt.answered.and_then(|(_, revision)| revision);
                attempt.token == found.map(token) && (found.is_none() || told == found.and_then(revision_of))
            };
            let may_be_absent = answered.is_none() && found.is_none();
            if !may_be_absent && !possible.iter().any(is) {
                let found = found.map(|object| (token(object), revision(object)));
                wrong.push(format!("{name}: {found:?} is none of {possible:?}"));
            }
        }
        wrong.extend(there.keys().map(|name| format!("{name}: nobody has made it")));
        wrong
    }

    /// Writes and watches. Says what is not newer than all that clients have seen, or not what they were shown.
    async fn go_on(&self, client: &Client, now: u64, at: u64) -> Result<Vec<String>, String> {
        let mut wrong = Vec::new();
        let (start, _) = self.start;
        let shown: Vec<&Event> =
            self.events.iter().filter(|(when, _)| *when <= at).map(|(_, event)| event).collect();
        let newest = shown.last().map_or(start, |event| event.revision);
        let answers = self.attempts.iter().filter_map(|attempt| attempt.answered);
        let answers = answers.filter(|(when, _)| *when <= at).filter_map(|(_, revision)| revision);
        let newest = answers.max().unwrap_or_default().max(newest);
        if now < newest {
            wrong.push(format!("the list is at {now}, and clients have seen {newest}"));
        }
        let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new"}, "data": {"token": "0"}});
        let made = revision(&success(client.post(MAPS, &new).await)?);
        if made <= newest {
            wrong.push(format!("revision {made} is used again, after {newest}"));
        }
        // What happened before a watch began needs no waiting for; the time only ends a test that has failed.
        let path = format!("{MAPS}?watch=1&resourceVersion={start}&timeoutSeconds=300");
        let mut watch = client.watch(&path).await.map_err(|broken| broken.0)?;
        let mut again = Vec::new();
        loop {
            let Ok(Some(event)) = watch.next().await else {
                wrong.push(format!("the watch from {start} ends after {again:?}, without {made}"));
                return Ok(wrong);
            };
            if event["type"] == "ERROR" {
                wrong.push(format!("the watch from {start}: {event}"));
                return Ok(wrong);
            }
            let event = event_of(&event);
            if event.name == "new" {
                break;
            }
            again.push(event);
        }
        for (index, event) in shown.iter().enumerate() {
            if again.get(index) != Some(*event) {
                wrong.push(format!("shown before: {event:?}, now: {:?}", again.get(index)));
                break;
            }
        }
        Ok(wrong)
    }
}
