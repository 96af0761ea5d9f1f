//! Two primaries at once: a standby is promoted while the old primary goes on, and for a while each has its own servers, or a
//! server has connections to both. What the old primary acknowledges then is lost. But no server shows both histories, no
//! revision is used twice, what the new primary acknowledges stays, and a server that has seen it does not go back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rowplane::storage::SAFETY_GAP;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::cluster::Cluster;
use super::process::pause;
use super::proxy::Proxy;
use super::replicas::Database;
use super::server::Server;
use crate::support::rest::{Client, revision};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const WRITERS: usize = 4;
/// So many answers show that a server works.
const SOME: usize = 20;

/// An object at a revision.
type Sight = (u64, String);

/// What the clients of one server were told.
#[derive(Default)]
struct Seen {
    answers: Mutex<Vec<Sight>>,
    count: AtomicUsize,
    /// Events of watches that went on, or were resumed, until their history was gone.
    streams: Mutex<Vec<Vec<Sight>>>,
    lists: Mutex<Vec<Vec<Sight>>>,
}

struct Side {
    server: Server,
    seen: Arc<Seen>,
    tasks: Vec<JoinHandle<()>>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_primaries_are_never_mixed() {
    let database = Database::postgres().await;
    let stop = Arc::new(AtomicBool::new(false));
    let arguments = vec!["--feature-gates=APIServerIdentity=false".to_owned()];
    let mut sides = Vec::new();
    for name in ["left", "right"] {
        sides.push(Side::start(Server::start(&database, arguments.clone()).await, name, &stop));
    }
    let Database::Postgres(primary) = &database else { unreachable!("it was made above") };
    let (old, [left, right]) = (primary.get(), [&sides[0], &sides[1]]);
    let new = old.standby().await;
    left.answers_more().await;
    right.answers_more().await;
    new.stop_receiving().await;
    left.answers_more().await;
    new.promote().await;
    let survived = new.number("SELECT revision FROM clock").await as u64;

    // Some connections of a server lead to the new primary, and some still to the old one.
    right.moves("right", &new, survived).await;
    left.answers_more().await;
    right.answers_more().await;
    left.moves("left", &new, survived).await;
    left.answers_more().await;

    // The old primary is back in its place, as far as one server can tell.
    right.way().retarget(old.target());
    while !right.server.installation.log().contains("an old primary that is back") {
        pause().await;
    }
    let before = old.number("SELECT revision FROM clock").await;
    left.answers_more().await;
    assert_eq!(old.number("SELECT revision FROM clock").await, before, "somebody writes to the old primary");
    right.way().retarget(new.target());
    right.answers_more().await;

    stop.store(true, Ordering::Relaxed);
    for side in &mut sides {
        for task in side.tasks.drain(..) {
            task.await.expect("a client");
        }
    }
    judge(&sides, survived).await;
}

impl Side {
    fn start(server: Server, name: &'static str, stop: &Arc<AtomicBool>) -> Self {
        let seen = Arc::new(Seen::default());
        let client = &server.client;
        let mut tasks = Vec::new();
        for n in 0..WRITERS {
            let prefix = format!("{name}-{n}");
            tasks.push(tokio::spawn(keep_writing(client.clone(), seen.clone(), stop.clone(), prefix)));
        }
        tasks.push(tokio::spawn(keep_listing(client.clone(), seen.clone(), stop.clone())));
        // Watches may have nothing to tell, so they end with the test.
        tokio::spawn(keep_watching(client.clone(), seen.clone()));
        Self { server, seen, tasks }
    }

    fn way(&self) -> &Proxy {
        self.server.back.as_ref().expect("a way to the database")
    }

    /// Ends half of the present connections again and again, the older ones, until the server has written to this cluster
    /// after this revision. New ones lead there.
    async fn moves(&self, name: &str, cluster: &Cluster, after: u64) {
        let written =
            format!("SELECT COUNT(*) FROM objects WHERE name LIKE '{name}-%' AND resource_version > {after}");
        loop {
            self.way().retarget_some(cluster.target());
            for _ in 0..50 {
                if cluster.number(&written).await >= SOME as i64 {
                    return;
                }
                pause().await;
            }
        }
    }

    /// Returns once some more writes have been answered.
    async fn answers_more(&self) {
        let enough = self.seen.count.load(Ordering::Relaxed) + SOME;
        while self.seen.count.load(Ordering::Relaxed) < enough {
            pause().await;
        }
    }
}

async fn keep_writing(client: Client, seen: Arc<Seen>, stop: Arc<AtomicBool>, prefix: String) {
    let mut n = 0;
    while !stop.load(Ordering::Relaxed) {
        let name = format!("{prefix}-{n}");
        n += 1;
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        match client.post(CONFIGMAPS, &object).await {
            Ok(answer) if answer.status == 201 => {
                seen.answers.lock().unwrap().push((revision(&answer.body), name));
                seen.count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) if !answer.status.is_server_error() => panic!("{}: {}", answer.status, answer.body),
            _ => pause().await,
        }
    }
}

async fn keep_listing(client: Client, seen: Arc<Seen>, stop: Arc<AtomicBool>) {
    let mut fresh = false;
    while !stop.load(Ordering::Relaxed) {
        fresh = !fresh;
        let query = if fresh { "" } else { "?resourceVersion=0" };
        match client.get(&format!("{CONFIGMAPS}{query}")).await {
            Ok(answer) if answer.status == 200 => seen.lists.lock().unwrap().push(sights(&answer.body)),
            _ => {}
        }
        pause().await;
    }
}

/// Watches, resumes where it was, and begins anew when history is gone.
async fn keep_watching(client: Client, seen: Arc<Seen>) {
    let mut at = None;
    loop {
        let from = at.map_or(String::new(), |at: u64| format!("&resourceVersion={at}"));
        if at.is_none() {
            seen.streams.lock().unwrap().push(Vec::new());
        }
        let watch = client.watch(&format!("{CONFIGMAPS}?watch=1{from}")).await;
        let Ok(mut watch) = watch else {
            pause().await;
            continue;
        };
        while let Ok(Some(event)) = watch.next().await {
            if event["type"] == "ERROR" {
                if event["object"]["code"] == 410 {
                    at = None;
                }
                break;
            }
            // The state with which a watch without a revision begins is not in the order of revisions.
            let sight = sight(&event["object"]);
            at = at.max(Some(sight.0));
            seen.streams.lock().unwrap().last_mut().expect("a stream").push(sight);
        }
    }
}

fn sight(object: &Value) -> Sight {
    (revision(object), object["metadata"]["name"].as_str().expect("a name").to_owned())
}

fn sights(list: &Value) -> Vec<Sight> {
    list["items"].as_array().expect("items").iter().map(sight).collect()
}

async fn judge(sides: &[Side], survived: u64) {
    let mut told = Vec::new();
    for Side { seen, server, .. } in sides {
        let answers = seen.answers.lock().unwrap().clone();
        let streams = seen.streams.lock().unwrap().clone();
        let lists = seen.lists.lock().unwrap().clone();
        told.push(Told { answers, streams, lists, last: last_list(&server.client).await });
    }
    let all: usize = told.iter().map(|told| told.answers.len()).sum();
    let lost = told.iter().flat_map(|told| &told.answers).filter(|(at, _)| is_lost(*at, survived)).count();
    println!("{all} answered writes, {lost} of them lost");
    assert!(lost > 0 && lost < all);
    assert_eq!(problems(&told, survived), Vec::<String>::new());
}

/// What the clients of one server were told, and its state at the end.
#[derive(Clone, Default)]
struct Told {
    answers: Vec<Sight>,
    streams: Vec<Vec<Sight>>,
    lists: Vec<Vec<Sight>>,
    last: Vec<Sight>,
}

/// Whether only the old primary's history has a revision: the new one's goes on behind a gap.
fn is_lost(revision: u64, survived: u64) -> bool {
    revision > survived && revision <= survived + SAFETY_GAP
}

fn problems(sides: &[Told], survived: u64) -> Vec<String> {
    let mut problems = Vec::new();
    let mut names: BTreeMap<u64, &str> = BTreeMap::new();
    for side in sides {
        for sights in side.streams.iter().chain(&side.lists) {
            let of_old = sights.iter().find(|(revision, _)| is_lost(*revision, survived));
            let of_new = sights.iter().find(|(revision, _)| *revision > survived + SAFETY_GAP);
            if let (Some(old), Some(new)) = (of_old, of_new) {
                problems.push(format!("one watch or list shows {old:?} and {new:?}"));
            }
        }
        for (revision, name) in [&side.answers].into_iter().chain(&side.streams).chain(&side.lists).flatten()
        {
            let first = *names.entry(*revision).or_insert(name);
            if first != name {
                problems.push(format!("revision {revision} is used twice, for {first} and {name}"));
            }
        }
        let last: BTreeMap<_, _> = side.last.iter().cloned().collect();
        if let Some(old) = side.last.iter().find(|(revision, _)| is_lost(*revision, survived)) {
            problems.push(format!("a server still shows {old:?}"));
        }
        let answers = sides.iter().flat_map(|side| &side.answers);
        let kept = answers.filter(|(revision, _)| !is_lost(*revision, survived));
        for (revision, name) in kept {
            if last.get(revision) != Some(name) {
                problems.push(format!("{name} at {revision} is lost"));
            }
        }
    }
    problems
}

/// Whoever judges so finds each of these.
#[test]
fn planted_mixtures_are_found() {
    let sight = |revision, name: &str| (revision, name.to_owned());
    let (before, old, new) = (sight(9, "a"), sight(11, "b"), sight(SAFETY_GAP + 12, "c"));
    let left = Told {
        answers: vec![before.clone(), old.clone()],
        streams: vec![vec![before.clone(), old.clone()], vec![new.clone()]],
        lists: vec![vec![before.clone(), old.clone()], vec![before.clone(), new.clone()]],
        last: vec![before.clone(), new.clone()],
    };
    let right = Told { answers: vec![new.clone()], last: left.last.clone(), ..Told::default() };
    let found = |plant: fn(&mut Told, &mut Told)| {
        let (mut left, mut right) = (left.clone(), right.clone());
        plant(&mut left, &mut right);
        problems(&[left, right], 10)
    };
    assert_eq!(found(|_, _| {}), Vec::<String>::new());
    for (plant, problem) in [
        ((|left, _| left.streams[0].push(left.last[1].clone())) as fn(&mut Told, &mut Told), "shows"),
        (|left, _| left.lists[1].push(left.answers[1].clone()), "shows"),
        (|left, right| right.answers.push((left.answers[1].0, "d".to_owned())), "is used twice"),
        (|left, right| right.last.push(left.answers[1].clone()), "still shows"),
        (|left, _| drop(left.last.pop()), "is lost"),
    ] {
        let problems = found(plant);
        assert!(problems.iter().any(|found| found.contains(problem)), "{problem}: {problems:?}");
    }
}

async fn last_list(client: &Client) -> Vec<Sight> {
    loop {
        match client.get(CONFIGMAPS).await {
            Ok(answer) if answer.status == 200 => return sights(&answer.body),
            _ => pause().await,
        }
    }
}
