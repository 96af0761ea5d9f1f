//! Clients that continue while servers, databases and networks fail. What they do is drawn from a seed; what they are
//! told is recorded.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::history::{
    Action, Answer, Call, Filter, Key, Kind, Listing, PatchForm, Time, Token, Version, WatchRun,
};
use super::listing::{list, list_in_pages};
use super::object::{collection, content, item, object, patch, scale, version, with_status};
use super::process::pause;
use super::refusals::Refusals;
use super::watcher::{self, Mischief};
use super::written;
use crate::support::rest::{Answer as Response, Broken, Client, revision};

/// `-` sorts before the separator of namespace and name in some encodings of keys.
pub const NAMESPACES: [&str; 2] = ["a", "a-b"];
pub const COLOURS: [&str; 2] = ["red", "blue"];
/// A uid that no object has.
const FOREIGN: &str = "00000000-0000-4000-8000-000000000000";
/// The objects that end all watches.
pub const SENTINEL: &str = "sentinel";
/// So few that writers conflict.
const NAMES: [(Kind, usize); 5] =
    [(Kind::ConfigMap, 0), (Kind::ConfigMap, 1), (Kind::Deployment, 0), (Kind::Pod, 0), (Kind::Widget, 0)];
/// After this many calls other names are used, so that no object's history becomes too long to be checked.
const CALLS_PER_GENERATION: usize = 400;
/// A client that gets no answer for this long gives up.
pub const PATIENCE: Duration = Duration::from_secs(3);

pub struct Load {
    pub shared: Arc<Shared>,
    clients: Vec<JoinHandle<Done>>,
    watchers: Vec<JoinHandle<WatchRun>>,
}

/// What a client has done.
#[derive(Default)]
pub struct Done {
    pub calls: Vec<Call>,
    pub listings: Vec<Listing>,
}

pub struct Shared {
    /// One for each server.
    pub servers: Vec<Client>,
    pub kinds: &'static [Kind],
    began: Instant,
    calls: watch::Sender<usize>,
    /// The newest revision in any answer.
    pub newest: AtomicU64,
    /// A revision after that of the last sentinel, once all are written: whoever has been told up to here has been told all.
    pub last: AtomicU64,
    guesses: Mutex<HashMap<Key, Guess>>,
    tokens: Mutex<usize>,
    stop: AtomicBool,
    /// What was said to be refused of the writes of all clients but these.
    pub refusals: Refusals,
}

/// A client's assumption about a key. It may be wrong, since others write, too.
#[derive(Clone)]
enum Guess {
    Absent,
    At(Version),
    /// The key must be read first.
    Unsure,
}

impl Load {
    /// `start` is the revision at which no object of the load exists.
    pub fn start(
        servers: Vec<Client>,
        kinds: &'static [Kind],
        seed: u64,
        start: u64,
        clients: usize,
        mischief: Option<Mischief>,
    ) -> Self {
        let shared = Arc::new(Shared {
            servers,
            kinds,
            began: Instant::now(),
            calls: watch::Sender::new(0),
            newest: AtomicU64::new(start),
            last: AtomicU64::new(u64::MAX),
            guesses: Mutex::default(),
            tokens: Mutex::default(),
            stop: AtomicBool::new(false),
            refusals: Refusals::default(),
        });
        let random = |n: usize| StdRng::seed_from_u64(seed.wrapping_mul(1000).wrapping_add(n as u64));
        let filters = (0..8).map(|n| Filter {
            kind: Kind::ConfigMap,
            namespace: (n & 1 == 1).then(|| NAMESPACES[n >> 2].to_owned()),
            colour: (n & 2 == 2).then(|| COLOURS[n >> 2].to_owned()),
            not_named: None,
        });
        let by_field = [Kind::ConfigMap, Kind::Pod].map(|kind| Filter {
            kind,
            not_named: Some(format!("{}0-0", kind.prefix())),
            ..Filter::default()
        });
        let others = kinds.iter().skip(1).flat_map(|&kind| {
            let all = Filter { kind, ..Filter::default() };
            [all.clone(), Filter { colour: Some(COLOURS[0].to_owned()), ..all }]
        });
        let watcher = |(n, filter)| {
            tokio::spawn(watcher::keep_watching(shared.clone(), filter, start, random(500 + n), mischief))
        };
        Self {
            clients: (0..clients).map(|n| tokio::spawn(work(shared.clone(), n + 1, random(n)))).collect(),
            watchers: filters.chain(others).chain(by_field).enumerate().map(watcher).collect(),
            shared,
        }
    }

    /// Returns once this many requests have been made.
    pub async fn reach(&self, calls: usize) {
        self.shared.calls.subscribe().wait_for(|made| *made >= calls).await.expect("the sender is ours");
    }

    /// Ends the clients; watchers continue.
    pub async fn stop(&mut self) -> Done {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut all = Done::default();
        for client in self.clients.drain(..) {
            let done = client.await.expect("a client");
            all.calls.extend(done.calls);
            all.listings.extend(done.listings);
        }
        all
    }

    /// Everything that watchers were told, up to a sentinel.
    pub async fn watched(self) -> Vec<WatchRun> {
        let mut runs = Vec::new();
        for watcher in self.watchers {
            runs.push(watcher.await.expect("a watcher"));
        }
        runs
    }
}

impl Shared {
    pub fn now(&self) -> Time {
        self.time(Instant::now())
    }

    pub fn time(&self, at: Instant) -> Time {
        at.duration_since(self.began).as_nanos() as Time
    }

    pub fn any(&self, random: &mut StdRng) -> &Client {
        &self.servers[random.random_range(0..self.servers.len())]
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn guess(&self, key: &Key) -> Guess {
        self.guesses.lock().unwrap().get(key).cloned().unwrap_or(Guess::Absent)
    }

    fn set_guess(&self, key: &Key, guess: Guess) {
        self.guesses.lock().unwrap().insert(key.clone(), guess);
    }

    /// The keys of this generation.
    pub fn keys(&self) -> Vec<Key> {
        let generation = *self.calls.borrow() / CALLS_PER_GENERATION;
        let names = NAMES.into_iter().filter(|(kind, _)| self.kinds.contains(kind));
        let names = names.map(|(kind, n)| format!("{}{generation}-{n}", kind.prefix()));
        names.flat_map(|name| NAMESPACES.map(|namespace| (namespace.to_owned(), name.clone()))).collect()
    }

    pub fn token(&self, client: usize, colour: &str) -> Token {
        let mut last = self.tokens.lock().unwrap();
        *last += 1;
        Token::new(client, *last, colour)
    }

    /// Makes one request about one object, once.
    pub async fn call(&self, server: &Client, key: Key, action: Action) -> Call {
        self.calls.send_modify(|calls| *calls += 1);
        let called = self.now();
        let response = tokio::time::timeout(PATIENCE, send(server, &key, &action)).await;
        let returned = self.now();
        let response = response.ok().and_then(Result::ok);
        let answer = response.as_ref().map_or(Answer::Unknown, |response| answer(&key, &action, response));
        let guess = match (&action, &answer) {
            (_, Answer::Found(version)) => Guess::At(version.clone()),
            (_, Answer::Missing) | (Action::Delete { .. }, Answer::Written { .. }) => Guess::Absent,
            // The answer is a Scale.
            (Action::Scale { at: Some(at), .. }, Answer::Written { revision: Some(revision) }) => {
                Guess::At(Version { revision: *revision, ..at.clone() })
            }
            (Action::Scale { .. }, _) => Guess::Unsure,
            (_, Answer::Written { .. }) => {
                response.map_or(Guess::Unsure, |response| Guess::At(version(&response.body)))
            }
            _ => Guess::Unsure,
        };
        if let Answer::Written { revision: Some(revision) } = answer {
            self.newest.fetch_max(revision, Ordering::SeqCst);
        }
        self.set_guess(&key, guess);
        Call { key, action, answer, called, returned }
    }
}

async fn work(shared: Arc<Shared>, number: usize, mut random: StdRng) -> Done {
    let mut done = Done::default();
    while !shared.stopped() {
        let before = done.calls.len() + done.listings.len();
        match random.random_range(0..100) {
            0..12 => list(&shared, &mut random, &mut done).await,
            12..20 => list_in_pages(&shared, &mut random, &mut done).await,
            20..35 => {
                let key = pick(&mut random, shared.keys());
                done.calls.push(shared.call(shared.any(&mut random), key, Action::Read).await);
            }
            _ => {
                let key = pick(&mut random, shared.keys());
                let action = pick_action(&shared, number, &key, &mut random);
                done.calls.push(shared.call(shared.any(&mut random), key, action).await);
            }
        }
        let failed =
            done.calls.last().is_some_and(|call| matches!(call.answer, Answer::Unknown | Answer::Refused));
        if failed || done.calls.len() + done.listings.len() == before {
            pause().await;
        }
    }
    done
}

fn pick<T>(random: &mut StdRng, mut from: Vec<T>) -> T {
    from.swap_remove(random.random_range(0..from.len()))
}

fn pick_action(shared: &Shared, client: usize, key: &Key, random: &mut StdRng) -> Action {
    let token = shared.token(client, COLOURS[random.random_range(0..2)]);
    let guess = shared.guess(key);
    if let (Guess::At(version), 0..6) = (&guess, random.random_range(0..12))
        && let Some(action) = pick_subresource(shared, client, key, version, random)
    {
        return action;
    }
    match (guess, random.random_range(0..26)) {
        (_, 20..22) => Action::Apply { token },
        (Guess::At(version), 22..25) => {
            Action::Patch { token, at: Some(version), form: pick_form(key, random) }
        }
        (_, 22..26) => Action::Patch { token, at: None, form: pick_form(key, random) },
        // Custom objects are not updated without a version.
        (Guess::Absent | Guess::Unsure, 14..16) if Kind::of(key) == Kind::Widget => Action::Read,
        (Guess::At(version), 14..16) if Kind::of(key) == Kind::Widget => {
            Action::Update { token, at: Some(version) }
        }
        (Guess::Unsure, 0..12) => Action::Read,
        // These are refused at times.
        (_, 12) => Action::Create { token },
        (_, 13) => Action::Delete { at: None },
        (_, 14..16) => Action::Update { token, at: None },
        (Guess::At(version), 0..10) => Action::Update { token, at: Some(version) },
        // Another object of this name.
        (Guess::At(version), 16) => {
            Action::Delete { at: Some(Version { uid: FOREIGN.to_owned(), revision: 0, ..version }) }
        }
        (Guess::At(version), _) => Action::Delete { at: Some(version) },
        (Guess::Absent | Guess::Unsure, _) => Action::Create { token },
    }
}

fn pick_form(key: &Key, random: &mut StdRng) -> PatchForm {
    // What is defined has no strategic merge.
    let forms = if Kind::of(key) == Kind::Widget { 2 } else { 3 };
    [PatchForm::Json, PatchForm::Merge, PatchForm::Strategic][random.random_range(0..forms)]
}

/// For kinds with subresources.
fn pick_subresource(
    shared: &Shared,
    client: usize,
    key: &Key,
    version: &Version,
    random: &mut StdRng,
) -> Option<Action> {
    // A write of the status does not change labels.
    let token = shared.token(client, version.token.colour());
    let at = random.random_bool(0.7).then(|| version.clone());
    match (Kind::of(key), random.random_bool(0.5)) {
        (Kind::ConfigMap, _) => None,
        // A status of a custom object is written without its metadata, so nobody could tell which one it was.
        (Kind::Deployment, true) | (Kind::Widget, _) => {
            Some(Action::Scale { replicas: token.number() + 1, at })
        }
        // At this version, whose colour is known.
        (Kind::Deployment | Kind::Pod, _) => Some(Action::Status { token, at: Some(version.clone()) }),
    }
}

async fn send(server: &Client, key: &Key, action: &Action) -> Result<Response, Broken> {
    match action {
        Action::Create { token } => {
            let path = collection(Kind::of(key), Some(&key.0));
            written::send(server, Method::POST, &path, token, &object(key, token, None)).await
        }
        Action::Update { token, at } => {
            let object = object(key, token, at.as_ref());
            written::send(server, Method::PUT, &item(key), token, &object).await
        }
        Action::Patch { token, at, form } => {
            let media_type = match form {
                PatchForm::Json => "application/json-patch+json",
                PatchForm::Merge => "application/merge-patch+json",
                PatchForm::Strategic => "application/strategic-merge-patch+json",
            };
            server.patch(&item(key), media_type, &patch(key, token, at.as_ref(), *form)).await
        }
        Action::Apply { token } => {
            let path = format!("{}?fieldManager=faults&force=true", item(key));
            server.apply(&path, &content(key, token)).await
        }
        Action::Status { token, at } => {
            server.put(&format!("{}/status", item(key)), &with_status(key, token, at.as_ref())).await
        }
        Action::Scale { replicas, at } => {
            server.put(&format!("{}/scale", item(key)), &scale(key, *replicas, at.as_ref())).await
        }
        Action::Delete { at } => {
            let mut options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
            if let Some(at) = at {
                options["preconditions"] = json!({"uid": at.uid});
                if at.uid != FOREIGN {
                    options["preconditions"]["resourceVersion"] = json!(at.revision.to_string());
                }
            }
            server.delete(&item(key), Some(&options)).await
        }
        Action::Read => server.get(&item(key)).await,
        Action::Restore { .. } => unreachable!("nobody asks for it"),
    }
}

fn answer(key: &Key, action: &Action, response: &Response) -> Answer {
    let Response { status, body } = response;
    match (*status, action) {
        (StatusCode::OK, Action::Read) => Answer::Found(version(body)),
        (StatusCode::OK, Action::Delete { .. }) => Answer::Written { revision: None },
        (StatusCode::OK | StatusCode::CREATED, _) => Answer::Written { revision: Some(revision(body)) },
        (StatusCode::NOT_FOUND, _) => Answer::Missing,
        (StatusCode::CONFLICT, Action::Create { .. }) => Answer::Exists,
        (StatusCode::CONFLICT, _) => Answer::Conflict,
        (StatusCode::UNPROCESSABLE_ENTITY, Action::Patch { at: Some(_), form: PatchForm::Json, .. }) => {
            Answer::Conflict
        }
        (status, Action::Read) if is_trouble(status) => Answer::Unknown,
        // A webhook may fail to convert the answer when the write is done, and the status is that of its failure.
        (StatusCode::SERVICE_UNAVAILABLE, _) if Kind::of(key) == Kind::Widget => Answer::Unknown,
        (status, _) if is_trouble(status) && is_refusal(status) => Answer::Refused,
        (status, _) if is_trouble(status) => Answer::Unknown,
        (status, _) => panic!("{action:?} was answered with {status}: {body}"),
    }
}

/// Whether this answer to a write promises that nothing was written. (A server that does not know says 504.)
pub fn is_refusal(status: StatusCode) -> bool {
    status.is_client_error() || status == StatusCode::SERVICE_UNAVAILABLE
}

/// Whether a server may answer this while something is broken.
pub fn is_trouble(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}
