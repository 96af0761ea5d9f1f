//! Forks as the endpoints of branches make and use them.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tracing::Span;

use super::cut;
use crate::api::Api;
use crate::api::resource::Resource;
use crate::api::verbs::snapshot::Snapshot;
use crate::cache::{Range, State};
use crate::codec::object::Object;
use crate::http::branches::{Changed, Fork, Forks, SecretValues};
use crate::http::router::Resident;
use crate::http::server::Responder;
use crate::revision::Revision;
use crate::server::Server;
use crate::server::parent::Parent;

/// The resources whose objects others need to exist.
const NEEDED: [&str; 2] = ["namespaces", "customresourcedefinitions"];

/// A server that is a branch of another one.
struct Branch {
    /// Only to be stopped: a server cannot be shared between threads.
    server: Mutex<Server>,
    fork: Option<Parent>,
    responder: Arc<dyn Responder>,
    /// The state that it was made from.
    base: State,
    most_bytes: u64,
}

impl Forks for Parent {
    fn fork(
        &self,
        snapshot: Snapshot,
        secrets: SecretValues,
    ) -> BoxFuture<'static, Result<Box<dyn Fork>, String>> {
        let parent = self.clone();
        async move {
            let most_bytes = parent.limits().most_bytes;
            let forked = parent.fork_of(snapshot, secrets).await;
            let (server, base) = forked.map_err(|error| error.one_line())?;
            let (routes, under_way) = (server.routes.clone(), server.under_way.clone());
            let responder = Arc::new(Resident { routes, under_way, span: Span::none() });
            let (fork, server) = (server.parent.clone(), Mutex::new(server));
            Ok(Box::new(Branch { server, fork, responder, base, most_bytes }) as Box<dyn Fork>)
        }
        .boxed()
    }
}

impl Branch {
    /// `None` once the server has stopped.
    fn api(&self) -> Option<Arc<Api>> {
        self.fork.as_ref()?.api()
    }
}

impl Fork for Branch {
    fn responder(&self) -> Arc<dyn Responder> {
        self.responder.clone()
    }

    fn revisions(&self) -> (Revision, Revision) {
        let base = self.base.revision;
        (base, self.api().map_or(base, |api| api.cache.revision()))
    }

    fn bytes(&self) -> BoxFuture<'_, (u64, u64)> {
        async {
            let Some(api) = self.api() else { return (0, self.most_bytes) };
            let size = api.cache.backend().size().await.ok().flatten();
            (size.unwrap_or_default(), self.most_bytes)
        }
        .boxed()
    }

    fn cut(&self) -> Vec<&'static str> {
        cut::RULES.to_vec()
    }

    fn changes(&self) -> Vec<Changed> {
        let Some(api) = self.api() else { return Vec::new() };
        let (newest, served) = (api.cache.any(), api.catalog.served());
        let is_changed = |resource: &&Arc<Resource>| {
            newest.changed(resource.id).is_some_and(|changed| changed > self.base.revision)
                || !self.base.holds(resource.id)
        };
        let mut changes: Vec<Changed> = served
            .stored()
            .filter(is_changed)
            .flat_map(|resource| differences(&self.base, &newest, resource))
            .collect();
        // What others need comes first, and goes last. Besides, changes are in the order of their writes; deletions, of which no
        // version tells the time, follow.
        changes.sort_by_key(|change| {
            let is_needed = NEEDED.contains(&&*change.resource.definition.plural);
            let is_gone = change.after.is_none();
            (is_gone, is_needed == is_gone, change.after.as_ref().map(|after| after.revision()))
        });
        changes
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        let server = self.server.into_inner().unwrap_or_else(PoisonError::into_inner);
        server.stop_now().boxed()
    }
}

/// The objects of a resource that are not the same in two states.
fn differences(base: &State, newest: &State, resource: &Arc<Resource>) -> Vec<Changed> {
    let all = Range::of(None);
    let (before, after) = (base.objects(resource.id), newest.objects(resource.id));
    let (mut before, mut after) = (before.range(&all).peekable(), after.range(&all).peekable());
    let mut changes = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return changes,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(after)) => before.key().cmp(after.key()),
        };
        let before: Option<&Arc<Object>> = before.next_if(|_| order.is_le());
        let after: Option<&Arc<Object>> = after.next_if(|_| order.is_ge());
        let revision = |object: Option<&Arc<Object>>| object.map(|object| object.revision());
        if revision(before) != revision(after) {
            let (before, after) = (before.cloned(), after.cloned());
            changes.push(Changed { resource: resource.clone(), before, after });
        }
    }
}
