//! Garbage collection by ownerReferences: background, foreground and orphan (upstream's garbage collector).
//!
//! One task per resource reports what changed to one collector, which owns the graph of owners and dependents. The
//! collector acts on the state it reads at that moment; the graph only tells it where to look.

mod collect;
mod graph;

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
use crate::storage::ResourceId;

/// Reports that may wait for the collector; a reporter that waits loses nothing, its events are in the log.
const REPORTS: usize = 1024;
/// An object that could not be dealt with is looked at again after this.
const RETRY: Duration = Duration::from_millis(500);

/// What a reporter saw.
struct Report {
    node: Node,
    /// `None` once the object is gone.
    current: Option<Arc<Object>>,
    previous: Option<Arc<Object>>,
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
        take_in(&mut graph, report, &mut queue);
        while let Ok(report) = reports.try_recv() {
            take_in(&mut graph, report, &mut queue);
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
    drop(state);
    loop {
        for event in watcher.next().await? {
            let Some(object) = event.current.as_ref().or(event.previous.as_ref()) else { continue };
            let node = Node { resource, key: object.key().into() };
            let report = Report { node, current: event.current.clone(), previous: event.previous.clone() };
            if reports.send(report).await.is_err() {
                return Ok(());
            }
        }
        watcher.changed().await;
    }
}

/// Builds the graph of what is there, and lists what may need collecting.
fn load(api: &Api, state: &State, graph: &mut Graph) -> Vec<Node> {
    let mut queue = Vec::new();
    for resource in api.resources.stored() {
        for object in state.objects(resource.id).range(&Range::of(None)) {
            let node = Node { resource: resource.id, key: object.key().into() };
            if graph.put(&node, object) {
                queue.push(node);
            }
        }
    }
    queue
}

fn take_in(graph: &mut Graph, report: Report, queue: &mut Vec<Node>) {
    let Report { node, current, previous } = report;
    match current {
        Some(object) => {
            if graph.put(&node, &object) {
                queue.push(node);
            }
        }
        None => {
            if let Some(gone) = previous {
                queue.extend(graph.remove(&node, &gone));
            }
        }
    }
}
