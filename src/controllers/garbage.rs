//! Garbage collection by ownerReferences: background, foreground and orphan (upstream's garbage collector).
//!
//! One task per resource reports changes to a single collector, which owns the graph of owners and dependents. The
//! graph only tells the collector where to look: it acts on the newest state. Objects of extension servers are collected
//! by sweeps of their own, which ask the collector about dependents here. An object that cannot be read decides
//! nothing: as an owner it is neither alive nor gone, and as a dependent it may have any owner.

mod collect;
mod graph;
mod remote_objects;
mod sweep;
#[cfg(test)]
pub(in crate::controllers) mod tests;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use self::collect::owners::Elsewhere;
use self::collect::remote::{self, Asking};
use self::collect::{CollectResult, Collector, Question};
use self::graph::{Graph, Node};
use crate::api::Api;
use crate::api::catalog::Served;
use crate::api::error::Error;
use crate::api::resource::Resource;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::long_work;
use crate::revision::Revision;
use crate::storage::{self, ResourceId};

/// The collector's name in logs about unreadable objects.
const NAME: &str = "garbage-collector";
/// How many reports may wait for the collector. A waiting reporter loses nothing: its events are in the watch cache's
/// log.
const REPORTS: usize = 1024;
/// How many questions of sweeps may wait for the collector.
const QUESTIONS: usize = 16;
/// The pause before an object that could not be handled is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// A reporter's message to the collector.
enum Report {
    Change {
        node: Node,
        /// `None` if the object is gone.
        current: Option<Arc<Object>>,
        previous: Option<Arc<Object>>,
    },
    /// All changes of the resource up to this revision have been reported.
    Reached(ResourceId, Revision),
    /// The resource is not served any more: its objects count neither as alive nor as gone.
    Removed(ResourceId),
}

/// The reporting tasks, one for each resource in the graph, and the sweeps.
struct Reporters {
    api: Arc<Api>,
    reports: mpsc::Sender<Report>,
    running: JoinSet<Result<(), Error>>,
}

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let mut served = api.catalog.subscribe();
    let loaded_at = api.cache.any().loaded_at;
    let (sender, mut reports) = mpsc::channel(REPORTS);
    let mut reporters = Reporters { api: api.clone(), reports: sender, running: JoinSet::new() };
    let mut graph = Graph::default();
    let elsewhere = Arc::new(Elsewhere::default());
    let (asker, mut questions) = mpsc::channel(QUESTIONS);
    reporters.running.spawn(sweep::run(api.clone(), elsewhere.clone(), asker));
    let mut queue = reporters.follow(&served.borrow_and_update().clone(), &mut graph);
    // Dependents to look at when something else is served: owners of a formerly unknown kind may turn out to be gone.
    let mut undecided: HashSet<Node> = HashSet::new();
    let mut asking = Asking::new();
    let mut again = tokio::time::interval(remote::PERIOD);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let retry = collect_all(&api, &graph, &elsewhere, loaded_at, (queue, &mut undecided)).await;
        elsewhere.remote.ask(&api, &mut asking);
        let report = tokio::select! {
            Some(answered) = asking.join_next() => {
                elsewhere.remote.answered(answered.map_err(|died| Error::Internal(died.to_string()))?);
                queue = retry;
                queue.extend(undecided.drain());
                continue;
            }
            Some(question) = questions.recv() => {
                queue = retry;
                answer(&api, &graph, &elsewhere, question, &mut queue);
                continue;
            }
            // Owners of extension servers end without a word.
            _ = again.tick(), if !undecided.is_empty() => {
                queue = retry;
                queue.extend(undecided.drain());
                continue;
            }
            // Without this reporter, the graph would miss changes.
            Some(ended) = reporters.running.join_next() => {
                ended.map_err(|died| Error::Internal(died.to_string()))??;
                queue = retry;
                continue;
            }
            Some(report) = reports.recv() => report,
            Ok(()) = served.changed() => {
                queue = retry;
                queue.extend(reporters.follow(&served.borrow_and_update().clone(), &mut graph));
                queue.extend(undecided.drain());
                continue;
            }
            () = tokio::time::sleep(RETRY), if !retry.is_empty() => {
                queue = retry;
                continue;
            }
            else => return Ok(()),
        };
        queue = retry;
        let mut removed = matches!(report, Report::Removed(_));
        let mut unknown = take_in(&api, &mut graph, &elsewhere, report, &mut queue);
        while let Ok(report) = reports.try_recv() {
            removed |= matches!(report, Report::Removed(_));
            unknown |= take_in(&api, &mut graph, &elsewhere, report, &mut queue);
        }
        if removed {
            // The resource may have been added again before its reporter noticed the removal.
            queue.extend(reporters.follow(&api.catalog.served(), &mut graph));
        }
        // Owners of a resource that was removed are undecided now.
        if unknown || removed {
            queue.extend(graph.all_dependents().cloned());
        }
        queue.sort_unstable();
        queue.dedup();
    }
}

/// Answers a question of a sweep, and has the dependents looked at that it is about.
fn answer(api: &Api, graph: &Graph, elsewhere: &Elsewhere, question: Question, queue: &mut Vec<Node>) {
    elsewhere.remote.forget(&question.uid);
    queue.extend(graph.dependents(&question.uid).cloned());
    let collector = Collector { api, elsewhere, decided_at: api.cache.any().revision };
    let local = collector.local_dependents(graph, &question);
    // A sweep that has ended does not wait any more.
    let _ = question.answer.send(local);
}

/// Collects these objects. Returns those that are to be tried again, and notes those that are undecided.
async fn collect_all(
    api: &Api,
    graph: &Graph,
    elsewhere: &Elsewhere,
    loaded_at: Revision,
    (mut queue, undecided): (Vec<Node>, &mut HashSet<Node>),
) -> Vec<Node> {
    let mut retry = Vec::new();
    while let Some(node) = queue.pop() {
        undecided.remove(&node);
        let state = api.cache.any();
        if state.loaded_at != loaded_at {
            // The graph does not know what has happened. The reporters notice it, too, and then it is built anew.
            retry.push(node);
            continue;
        }
        let collector = Collector { api, elsewhere, decided_at: state.revision };
        match collector.collect(graph, &node).await {
            Ok(CollectResult::Done) => {}
            Ok(CollectResult::Undecided) => {
                undecided.insert(node);
            }
            Ok(CollectResult::Later) => retry.push(node),
            Err(error) => {
                tracing::debug!(%error, name = node.name(), "not collected yet");
                retry.push(node);
            }
        }
    }
    retry
}

impl Reporters {
    /// Adds newly served resources to the graph and starts their reporters. Returns objects that may have to be
    /// collected.
    fn follow(&mut self, served: &Served, graph: &mut Graph) -> Vec<Node> {
        if served.stored().all(|resource| graph.holds(resource.id)) {
            return Vec::new();
        }
        let state = self.api.cache.any();
        let new = |resource: &&Arc<Resource>| state.holds(resource.id) && !graph.holds(resource.id);
        let new: Vec<Arc<Resource>> = served.stored().filter(new).cloned().collect();
        let queue = long_work::run(|| load(&self.api, &state, &new, graph));
        for resource in new {
            self.running.spawn(report(self.api.clone(), resource.id, state.clone(), self.reports.clone()));
        }
        queue
    }
}

/// Reports all changes of one resource since a state that involve owners, until the resource is removed. Fails once objects
/// have been [read again](State::rereads), which no change tells: the graph is then built anew.
async fn report(
    api: Arc<Api>,
    resource: ResourceId,
    start: Arc<State>,
    reports: mpsc::Sender<Report>,
) -> Result<(), Error> {
    let (mut reached, rereads) = (start.revision, start.rereads);
    drop(start);
    let mut watcher = api.cache.watch(resource, reached);
    loop {
        let events = match watcher.next().await {
            Ok(events) => events,
            Err(storage::Error::Removed) => {
                let _ = reports.send(Report::Removed(resource)).await;
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let caught_up = events.is_empty();
        for event in events {
            let Some(object) = event.current.as_ref().or(event.previous.as_ref()) else { continue };
            let node = Node { resource, key: object.key().into() };
            let (current, previous) = (event.current.clone(), event.previous.clone());
            if reports.send(Report::Change { node, current, previous }).await.is_err() {
                return Ok(());
            }
        }
        // Also reported for a resource that is written to constantly.
        if watcher.at() > reached {
            reached = watcher.at();
            if reports.send(Report::Reached(resource, reached)).await.is_err() {
                return Ok(());
            }
        }
        if caught_up {
            watcher.changed().await;
        }
        if api.cache.any().rereads > rereads {
            return Err(Error::Internal("objects were read again; the graph is built anew".to_owned()));
        }
    }
}

/// Adds the present objects of these resources to the graph, and lists those that may have to be collected.
fn load(api: &Api, state: &State, resources: &[Arc<Resource>], graph: &mut Graph) -> Vec<Node> {
    let mut queue = Vec::new();
    for resource in resources {
        for object in state.objects(resource.id).range(&Range::of(None)) {
            put(api, graph, Node { resource: resource.id, key: object.key().into() }, object, &mut queue);
        }
        graph.reach(resource.id, state.revision);
    }
    queue
}

/// Returns whether an object is gone whose dependents are unknown.
fn take_in(
    api: &Api,
    graph: &mut Graph,
    elsewhere: &Elsewhere,
    report: Report,
    queue: &mut Vec<Node>,
) -> bool {
    match report {
        Report::Change { node, current: Some(object), .. } => put(api, graph, node, &object, queue),
        Report::Change { node, current: None, previous: Some(gone) } => {
            elsewhere.owner_is_gone(&gone);
            match graph.remove(&node, &gone) {
                Some(dependents) => queue.extend(dependents),
                None => return true,
            }
        }
        Report::Change { .. } => {}
        Report::Reached(resource, at) => graph.reach(resource, at),
        Report::Removed(resource) => graph.forget(resource),
    }
    false
}

fn put(api: &Api, graph: &mut Graph, node: Node, object: &Object, queue: &mut Vec<Node>) {
    match graph.put(&node, object) {
        Ok(true) => queue.push(node),
        Ok(false) => {}
        Err(error) => api.unreadable.tell(NAME, object, error),
    }
}
