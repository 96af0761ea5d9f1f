//! Clients that continue while their server is killed and restarted: writers, a lister, a watcher.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use http::StatusCode;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::history::{Event, EventKind, Key, Listing, Operation, Outcome, SENTINEL, Version, Write};
use crate::support::rest::{Answer, Broken, Client, revision};

/// `-` sorts before the separator of namespace and name in some encodings of keys.
pub const NAMESPACES: [&str; 2] = ["a", "a-b"];
/// So few that writers conflict.
const NAMES: usize = 12;

/// What the objects of a load are.
pub struct Resource {
    /// The paths of its group and version.
    root: &'static str,
    plural: &'static str,
    api_version: &'static str,
    kind: &'static str,
    /// The member that holds the content.
    content: &'static str,
}

pub const CONFIGMAPS: Resource =
    Resource { root: "/api/v1", plural: "configmaps", api_version: "v1", kind: "ConfigMap", content: "data" };

pub const RECORDS: Resource = Resource {
    root: "/apis/load.ex.io/v1",
    plural: "records",
    api_version: "load.ex.io/v1",
    kind: "Record",
    content: "spec",
};

impl Resource {
    /// All objects of the load.
    pub fn all(&self) -> String {
        format!("{}/{}", self.root, self.plural)
    }

    /// A custom resource is registered by each server that starts, which writes.
    pub fn is_built_in(&self) -> bool {
        self.root == CONFIGMAPS.root
    }

    fn collection(&self, (namespace, _): &Key) -> String {
        format!("{}/namespaces/{namespace}/{}", self.root, self.plural)
    }

    fn item(&self, key: &Key) -> String {
        format!("{}/{}", self.collection(key), key.1)
    }

    fn object(&self, (namespace, name): &Key, token: &str, at: Option<u64>) -> Value {
        let mut metadata = json!({"namespace": namespace, "name": name});
        if let Some(at) = at {
            metadata["resourceVersion"] = at.to_string().into();
        }
        let content = json!({"token": token, "padding": padding(token)});
        json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, self.content: content})
    }

    /// The version of an object, which must be complete.
    fn version(&self, object: &Value) -> Version {
        let token = text(&object[self.content]["token"]);
        assert_eq!(object[self.content]["padding"], padding(&token), "half an object");
        Version { uid: text(&object["metadata"]["uid"]), revision: revision(object), token }
    }

    fn guess_of(&self, object: &Value) -> Guess {
        let Version { uid, revision, .. } = self.version(object);
        Guess::At { uid, revision }
    }
}

pub struct Load {
    shared: Arc<Shared>,
    writers: Vec<JoinHandle<Vec<Write>>>,
    lister: JoinHandle<Vec<Listing>>,
    watcher: JoinHandle<Vec<Event>>,
}

struct Shared {
    client: Client,
    resource: &'static Resource,
    up: watch::Sender<bool>,
    /// How many writes have been answered with a success.
    answers: watch::Sender<usize>,
    /// The newest revision in any answer.
    newest: AtomicU64,
    guesses: Mutex<HashMap<Key, Guess>>,
    stop: AtomicBool,
}

/// A writer's assumption about a key. It may be wrong, since others write, too.
#[derive(Clone)]
enum Guess {
    Absent,
    At {
        uid: String,
        revision: u64,
    },
    /// The key must be read first.
    Unsure,
}

impl Load {
    pub fn start(client: &Client, resource: &'static Resource, seed: u64, start: u64, writers: u64) -> Self {
        let shared = Arc::new(Shared {
            client: client.clone(),
            resource,
            up: watch::Sender::new(true),
            answers: watch::Sender::new(0),
            newest: AtomicU64::new(start),
            guesses: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        let random = |n| StdRng::seed_from_u64(seed.wrapping_add(n));
        Self {
            writers: (1..=writers).map(|n| tokio::spawn(write(shared.clone(), n, random(n)))).collect(),
            lister: tokio::spawn(keep_listing(shared.clone(), random(writers + 1))),
            watcher: tokio::spawn(keep_watching(shared.clone(), start)),
            shared,
        }
    }

    /// Returns once this many more writes have been answered with a success.
    pub async fn more_answers(&self, more: usize) {
        let mut answers = self.shared.answers.subscribe();
        let enough = *answers.borrow() + more;
        answers.wait_for(|answers| *answers >= enough).await.expect("the sender is ours");
    }

    pub fn server_is_down(&self) {
        self.shared.up.send_replace(false);
    }

    pub fn server_is_up(&self) {
        self.shared.up.send_replace(true);
    }

    /// Ends writers and lister. Returns what they did.
    pub async fn stop_writing(&mut self) -> (Vec<Write>, Vec<Listing>) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut writes = Vec::new();
        for writer in self.writers.drain(..) {
            writes.extend(writer.await.expect("a writer"));
        }
        (writes, (&mut self.lister).await.expect("the lister"))
    }

    /// All events up to the sentinel's.
    pub async fn watched(self) -> Vec<Event> {
        self.watcher.await.expect("the watcher")
    }
}

impl Shared {
    async fn server(&self) {
        self.up.subscribe().wait_for(|up| *up).await.expect("the sender is ours");
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn newest(&self) -> u64 {
        self.newest.load(Ordering::SeqCst)
    }

    fn guess(&self, key: &Key) -> Guess {
        self.guesses.lock().unwrap().get(key).cloned().unwrap_or(Guess::Absent)
    }

    fn set_guess(&self, key: &Key, guess: Guess) {
        self.guesses.lock().unwrap().insert(key.clone(), guess);
    }
}

async fn write(shared: Arc<Shared>, writer: u64, mut random: StdRng) -> Vec<Write> {
    let mut writes = Vec::new();
    while !shared.stopped() {
        shared.server().await;
        let key = pick_key(&mut random);
        match shared.guess(&key) {
            Guess::Unsure => {
                if let Some(guess) = read(&shared, &key).await {
                    shared.set_guess(&key, guess);
                }
            }
            guess => {
                let token = format!("{writer}-{}", writes.len());
                let operation = pick_operation(&mut random, guess, token);
                writes.push(send(&shared, key, operation).await);
            }
        }
    }
    writes
}

fn pick_key(random: &mut StdRng) -> Key {
    let namespace = NAMESPACES[random.random_range(0..NAMESPACES.len())];
    (namespace.to_owned(), format!("c-{}", random.random_range(0..NAMES)))
}

fn pick_operation(random: &mut StdRng, guess: Guess, token: String) -> Operation {
    match guess {
        Guess::At { uid, revision } => match random.random_range(0..10) {
            0..7 => Operation::Update { token, at: revision },
            7..9 => Operation::Delete { uid, at: revision },
            // Probably refused.
            _ => Operation::Create { token },
        },
        Guess::Absent | Guess::Unsure => Operation::Create { token },
    }
}

async fn send(shared: &Shared, key: Key, operation: Operation) -> Write {
    let (client, resource, floor) = (&shared.client, shared.resource, shared.newest());
    let item = resource.item(&key);
    let answer = match &operation {
        Operation::Create { token } => {
            client.post(&resource.collection(&key), &resource.object(&key, token, None)).await
        }
        Operation::Update { token, at } => client.put(&item, &resource.object(&key, token, Some(*at))).await,
        Operation::Delete { uid, at } => {
            let preconditions = json!({"uid": uid, "resourceVersion": at.to_string()});
            let options =
                json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions});
            client.delete(&item, Some(&options)).await
        }
    };
    let outcome = outcome(&operation, &answer);
    shared.set_guess(&key, guess_from(resource, &operation, &answer, &outcome));
    if let Outcome::Done { revision } = outcome {
        shared.newest.fetch_max(revision.unwrap_or(0), Ordering::SeqCst);
        shared.answers.send_modify(|answers| *answers += 1);
    }
    Write { key, operation, floor, outcome }
}

fn outcome(operation: &Operation, answer: &Result<Answer, Broken>) -> Outcome {
    let Ok(Answer { status, body }) = answer else { return Outcome::Unknown };
    match *status {
        StatusCode::OK | StatusCode::CREATED => match operation {
            Operation::Delete { .. } => Outcome::Done { revision: None },
            _ => Outcome::Done { revision: Some(revision(body)) },
        },
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => Outcome::Refused,
        status if status.is_server_error() => Outcome::Unknown,
        status => panic!("{operation:?} was answered with {status}: {body}"),
    }
}

fn guess_from(
    resource: &Resource,
    operation: &Operation,
    answer: &Result<Answer, Broken>,
    outcome: &Outcome,
) -> Guess {
    match (operation, answer, outcome) {
        (Operation::Delete { .. }, _, Outcome::Done { .. }) => Guess::Absent,
        (_, Ok(answer), Outcome::Done { .. }) => resource.guess_of(&answer.body),
        _ => Guess::Unsure,
    }
}

/// `None` while the server is unreachable.
async fn read(shared: &Shared, key: &Key) -> Option<Guess> {
    let answer = shared.client.get(&shared.resource.item(key)).await.ok()?;
    match answer.status {
        StatusCode::OK => Some(shared.resource.guess_of(&answer.body)),
        StatusCode::NOT_FOUND => Some(Guess::Absent),
        status if status.is_server_error() => None,
        status => panic!("GET was answered with {status}: {}", answer.body),
    }
}

/// Creates the last object, however often that fails.
pub async fn write_sentinel(client: &Client, resource: &Resource) {
    let key = (NAMESPACES[0].to_owned(), SENTINEL.to_owned());
    loop {
        let answer = client.post(&resource.collection(&key), &resource.object(&key, SENTINEL, None)).await;
        // A conflict can only be with an earlier attempt that got no answer.
        if matches!(answer, Ok(Answer { status: StatusCode::CREATED | StatusCode::CONFLICT, .. })) {
            return;
        }
    }
}

/// Lists repeatedly, completely or in pages. A page that fails is requested again with the same token.
async fn keep_listing(shared: Arc<Shared>, mut random: StdRng) -> Vec<Listing> {
    let mut listings = Vec::new();
    while !shared.stopped() {
        shared.server().await;
        let floor = shared.newest();
        let listing = match random.random_bool(0.5) {
            true => list(&shared.client, shared.resource, "").await.ok(),
            false => list_in_pages(&shared, random.random_range(1..8)).await,
        };
        listings.extend(listing.map(|listing| Listing { floor, ..listing }));
    }
    listings
}

/// `None` if the load ended before the list did.
async fn list_in_pages(shared: &Shared, limit: u32) -> Option<Listing> {
    let mut listing: Option<Listing> = None;
    let mut next = String::new();
    loop {
        shared.server().await;
        let page = format!("{}?limit={limit}&continue={next}", shared.resource.all());
        let page = shared.client.get(&page).await;
        match page.map(only_success) {
            Ok(Some(page)) => {
                page["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
                let page = listing_of(shared.resource, &page);
                let whole = listing.get_or_insert(Listing { items: Vec::new(), ..page });
                assert_eq!(page.revision, whole.revision, "pages of one list");
                whole.items.extend(page.items);
                if next.is_empty() {
                    return listing;
                }
            }
            _ if shared.stopped() => return None,
            _ => {}
        }
    }
}

pub async fn list(client: &Client, resource: &Resource, query: &str) -> Result<Listing, Broken> {
    let answer = client.get(&format!("{}{query}", resource.all())).await?;
    let page = only_success(answer).ok_or_else(|| Broken("a server error".to_owned()))?;
    Ok(listing_of(resource, &page))
}

/// `None` for errors that a disturbed server may have.
fn only_success(answer: Answer) -> Option<Value> {
    if answer.status.is_server_error() { None } else { Some(answer.ok()) }
}

fn listing_of(resource: &Resource, list: &Value) -> Listing {
    let items = list["items"].as_array().expect("a list has items").iter();
    let items = items.map(|item| (key_of(item), resource.version(item)));
    Listing { floor: 0, revision: revision(list), items: items.collect() }
}

/// Watches from `start`, resumes from the last revision that it got, and ends with the sentinel.
async fn keep_watching(shared: Arc<Shared>, start: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut at = start;
    loop {
        shared.server().await;
        let all = shared.resource.all();
        let path = format!("{all}?watch=1&allowWatchBookmarks=true&resourceVersion={at}");
        let Ok(mut watch) = shared.client.watch(&path).await else { continue };
        while let Ok(Some(event)) = watch.next().await {
            let object = &event["object"];
            let kind = match event["type"].as_str() {
                Some("ADDED") => EventKind::Added,
                Some("MODIFIED") => EventKind::Modified,
                Some("DELETED") => EventKind::Deleted,
                Some("BOOKMARK") => {
                    at = revision(object);
                    continue;
                }
                // If the database is unreachable, a watch may end; but nothing is compacted here.
                Some("ERROR") if object["code"] != 410 => break,
                _ => panic!("unexpected event: {event}"),
            };
            let event = Event { kind, key: key_of(object), object: shared.resource.version(object) };
            at = event.object.revision;
            let last = event.object.token == SENTINEL;
            events.push(event);
            if last {
                return events;
            }
        }
    }
}

/// Up to a few database pages of text; half of it would be as wrong as none.
fn padding(token: &str) -> String {
    let length = token.bytes().fold(0, |sum, byte| (sum * 31 + usize::from(byte)) % 20_011);
    token.chars().cycle().take(length).collect()
}

fn key_of(object: &Value) -> Key {
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
