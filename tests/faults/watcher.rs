//! A client that watches, and resumes whenever its watch ends.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom as _;
use serde_json::Value;

use super::forms;
use super::history::{EventKind, Filter, Kind, Start, Stream, Told, WatchRun};
use super::load::{NAMESPACES, PATIENCE, SENTINEL, Shared};
use super::object::{collection, key_of, selector, version};
use super::process::pause;
use crate::support::rest::{Watch, revision};

/// Bugs of a client that the checkers must find. Each strikes at the event with this number.
#[derive(Clone, Copy, Debug)]
pub enum Mischief {
    Skip(usize),
    Double(usize),
    ResumeTooLate(usize),
}

/// Watches from `start`, on any server, until it sees a sentinel, or a bookmark by which it should have seen it.
pub async fn keep_watching(
    shared: Arc<Shared>,
    filter: Filter,
    start: u64,
    mut random: StdRng,
    mischief: Option<Mischief>,
) -> WatchRun {
    let mut run = WatchRun { filter, streams: Vec::new() };
    let mut at = Some(start);
    let mut events = 0;
    loop {
        let seconds = random.random_range(3..9);
        let (start, query) = match at {
            Some(revision) => (Start::After(revision), format!("resourceVersion={revision}")),
            None => (Start::State, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan".to_owned()),
        };
        let path = collection(run.filter.kind, run.filter.namespace.as_deref());
        let options = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&{query}");
        let path = format!("{path}?{options}&{}", selector(&run.filter));
        let in_protobuf = run.filter.kind != Kind::Widget && random.random_bool(0.3);
        let opened = forms::watch(shared.any(&mut random), &path, in_protobuf);
        let opened = tokio::time::timeout(PATIENCE, opened).await;
        let Ok(Ok(watch)) = opened else {
            pause().await;
            continue;
        };
        let idle = Duration::from_secs(seconds) + PATIENCE;
        let kind = in_protobuf.then_some(run.filter.kind);
        let stream = Stream { start, told: Vec::new() };
        let mut reader = Reader { watch, in_protobuf: kind, idle, stream, at, sentinel: false };
        while let Some(event) = reader.next().await {
            if matches!(event, Told::Event { .. }) {
                events += 1;
            }
            match mischief {
                Some(Mischief::Skip(n)) if events == n => events += 1,
                Some(Mischief::Double(n)) if events == n => {
                    events += 1;
                    reader.take(event.clone());
                    reader.take(event);
                }
                Some(Mischief::ResumeTooLate(n)) if events == n => {
                    events += 1;
                    reader.at = reader.at.map(|at| at + 20);
                    break;
                }
                _ => reader.take(event),
            }
            if reader.ended() {
                break;
            }
            match random.random_range(0..2000) {
                0 => tokio::time::sleep(Duration::from_millis(random.random_range(1000..8000))).await,
                1..10 => tokio::time::sleep(Duration::from_millis(random.random_range(0..400))).await,
                _ => {}
            }
        }
        at = reader.at;
        let ended = reader.saw_the_end() || at.is_some_and(|at| at >= shared.last.load(Ordering::SeqCst));
        // Seldom is the next event after the last one that of the next revision. Where it was, it must come again.
        if at.is_some() && mischief.is_none() && random.random_bool(0.5) {
            at = before_a_neighbour(&reader.stream, &mut random).or(at);
        }
        run.streams.push(reader.stream);
        if ended {
            return run;
        }
    }
}

/// The revision of an event that was followed by one of the next revision.
fn before_a_neighbour(stream: &Stream, random: &mut StdRng) -> Option<u64> {
    let revisions = stream.told.iter().filter_map(|told| match told {
        Told::Event { object, .. } => Some(object.revision),
        Told::Bookmark { .. } | Told::Expired => None,
    });
    let revisions: Vec<u64> = revisions.collect();
    let pairs = revisions.windows(2).filter(|pair| pair[1] == pair[0] + 1);
    pairs.map(|pair| pair[0]).choose(random)
}

struct Reader {
    watch: Watch,
    /// The kind of its objects, if they come in protobuf.
    in_protobuf: Option<Kind>,
    /// A stream that is silent for longer is given up.
    idle: Duration,
    stream: Stream,
    /// Where to resume; `None` starts with a state.
    at: Option<u64>,
    sentinel: bool,
}

impl Reader {
    /// `None` at the end of the stream, for whatever reason.
    async fn next(&mut self) -> Option<Told> {
        let event = loop {
            let next = async {
                match self.in_protobuf {
                    Some(kind) => forms::next_event(&mut self.watch, kind).await,
                    None => self.watch.next().await,
                }
            };
            let event = tokio::time::timeout(self.idle, next).await.ok()?.ok()??;
            // Others have objects of these kinds, too, elsewhere.
            let namespace = event["object"]["metadata"]["namespace"].as_str();
            if namespace.is_none_or(|namespace| NAMESPACES.contains(&namespace)) {
                break event;
            }
        };
        let object = &event["object"];
        Some(match event["type"].as_str() {
            Some("ADDED") => told(EventKind::Added, object),
            Some("MODIFIED") => told(EventKind::Modified, object),
            Some("DELETED") => told(EventKind::Deleted, object),
            Some("BOOKMARK") => {
                let end_of_state = object["metadata"]["annotations"]["k8s.io/initial-events-end"] == "true";
                Told::Bookmark { revision: revision(object), end_of_state }
            }
            Some("ERROR") if object["code"] == 410 => Told::Expired,
            // If the database is unreachable, a watch may end.
            Some("ERROR") if object["code"].as_u64().is_some_and(|code| code >= 500) => return None,
            _ => panic!("unexpected event: {event}"),
        })
    }

    fn take(&mut self, told: Told) {
        match &told {
            Told::Event { key, object, .. } => {
                // Within a state, revisions are in no order.
                if self.at.is_some() {
                    self.at = Some(object.revision);
                }
                self.sentinel |= key.1.contains(SENTINEL);
            }
            Told::Bookmark { revision, end_of_state } => {
                if *end_of_state || self.at.is_some() {
                    self.at = Some(*revision);
                }
            }
            Told::Expired => self.at = None,
        }
        self.stream.told.push(told);
    }

    fn ended(&self) -> bool {
        self.saw_the_end() || self.stream.told.last() == Some(&Told::Expired)
    }

    fn saw_the_end(&self) -> bool {
        self.sentinel && self.at.is_some()
    }
}

fn told(kind: EventKind, object: &Value) -> Told {
    Told::Event { kind, key: key_of(object), object: version(object) }
}
