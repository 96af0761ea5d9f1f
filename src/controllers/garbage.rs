//! Garbage collection by ownerReferences: background, foreground and orphan (upstream's garbage collector).
//!
//! One task per resource reports what changed to one collector, which owns the graph of owners and dependents. The
//! collector acts on the state it reads at that moment; the graph only tells it where to look. Nothing is decided by an
//! object that cannot be read: an owner that cannot is neither alive nor gone, a dependent may be anybody's.

mod collect;
mod graph;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::collect::{Collector, Verdict};
use self::graph::{Graph, Node};
use crate::api::Api;
use crate::api::error::Error;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::long_work;
use crate::revision::Revision;
use crate::storage::ResourceId;

/// As it is called where it says what it cannot read.
const NAME: &str = "garbage-collector";
/// Reports that may wait for the collector; a reporter that waits loses nothing, its events are in the log.
const REPORTS: usize = 1024;
/// An object that could not be dealt with is looked at again after this.
const RETRY: Duration = Duration::from_millis(500);

/// What a reporter saw.
enum Report {
    Change {
        node: Node,
        /// `None` once the object is gone.
        current: Option<Arc<Object>>,
        previous: Option<Arc<Object>>,
    },
    /// All changes of the resource up to here have been reported.
    Reached(ResourceId, Revision),
}

pub async fn run(api: Arc<Api>) -> Result<(), Error> {
    let state = api.cache.any();
    let (sender, mut reports) = mpsc::channel(REPORTS);
    let mut reporters = JoinSet::new();
    for resource in api.resources.stored() {
        reporters.spawn(report(api.clone(), resource.id, state.clone(), sender.clone()));
    }
    drop(sender);
    let mut graph = Graph::default();
    let mut queue = long_work::run(|| load(&api, &state, &mut graph));
    let collector = Collector { api: &api };
    loop {
        let mut retry = Vec::new();
        while let Some(node) = queue.pop() {
            match collector.collect(&graph, &node).await {
                Ok(Verdict::Done) => {}
                Ok(Verdict::Later) => retry.push(node),
                Err(error) => {
                    tracing::debug!(%error, name = node.name(), "not collected yet");
                    retry.push(node);
                }
            }
        }
        let report = tokio::select! {
            // What the graph is not told it would never know.
            Some(ended) = reporters.join_next() => return ended.map_err(|died| Error::Internal(died.to_string()))?,
            Some(report) = reports.recv() => report,
            () = tokio::time::sleep(RETRY), if !retry.is_empty() => {
                queue = retry;
                continue;
            }
            else => return Ok(()),
        };
        queue = retry;
        let mut unknown = take_in(&api, &mut graph, report, &mut queue);
        while let Ok(report) = reports.try_recv() {
            unknown |= take_in(&api, &mut graph, report, &mut queue);
        }
        if unknown {
            queue.extend(graph.all_dependents().cloned());
        }
        queue.sort_unstable();
        queue.dedup();
    }
}

/// Reports everything that has to do with owners, of one resource.
async fn report(
    api: Arc<Api>,
    resource: ResourceId,
    state: Arc<State>,
    reports: mpsc::Sender<Report>,
) -> Result<(), Error> {
    let mut watcher = api.cache.watch(resource, state.revision);
    let mut reached = state.revision;
    drop(state);
    loop {
        let events = watcher.next().await?;
        let caught_up = events.is_empty();
        for event in events {
            let Some(object) = event.current.as_ref().or(event.previous.as_ref()) else { continue };
            let node = Node { resource, key: object.key().into() };
            let (current, previous) = (event.current.clone(), event.previous.clone());
            if reports.send(Report::Change { node, current, previous }).await.is_err() {
                return Ok(());
            }
        }
        // Also of a resource that is written to all the time.
        if watcher.at() > reached {
            reached = watcher.at();
            if reports.send(Report::Reached(resource, reached)).await.is_err() {
                return Ok(());
            }
        }
        if caught_up {
            watcher.changed().await;
        }
    }
}

/// Builds the graph of what is there, and lists what may need collecting.
fn load(api: &Api, state: &State, graph: &mut Graph) -> Vec<Node> {
    let mut queue = Vec::new();
    for resource in api.resources.stored() {
        for object in state.objects(resource.id).range(&Range::of(None)) {
            put(api, graph, Node { resource: resource.id, key: object.key().into() }, object, &mut queue);
        }
        graph.reach(resource.id, state.revision);
    }
    queue
}

/// Returns whether something is gone of which nobody knows who depended on it.
fn take_in(api: &Api, graph: &mut Graph, report: Report, queue: &mut Vec<Node>) -> bool {
    match report {
        Report::Change { node, current: Some(object), .. } => put(api, graph, node, &object, queue),
        Report::Change { node, current: None, previous: Some(gone) } => match graph.remove(&node, &gone) {
            Some(dependents) => queue.extend(dependents),
            None => return true,
        },
        Report::Change { .. } => {}
        Report::Reached(resource, at) => graph.reach(resource, at),
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
