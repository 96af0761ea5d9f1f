//! The next step for an object of an extension server: as a dependent, and as an owner that waits for its dependents.

use std::collections::HashSet;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use tokio::sync::{mpsc, oneshot};

use super::listing::Listed;
use crate::api::Api;
use crate::api::followers::api_services::Remote;
use crate::api::options::delete::{DeleteOptions, Preconditions};
use crate::controllers::garbage::collect::decision::{OwnDependents, Owner, Owners, Step, decide};
use crate::controllers::garbage::collect::owners::{Dependent, Elsewhere};
use crate::controllers::garbage::collect::{Collector, LocalDependents, Question};
use crate::controllers::garbage::graph::{FOREGROUND, ORPHAN, OwnerReference};
use crate::controllers::garbage::remote_objects::{Objects, RemoteObject, Since};
use crate::kinds::behavior::deletion::{Dependents, Propagation};
use crate::relay::call::{Answered, Call, Content};
use crate::revision::Revision;
use crate::tree::{Map, Value, json};
use crate::user::User;

/// The time of a request.
const TIME: Duration = Duration::from_secs(5);
/// Bytes of an answer that are read.
const LIMIT: usize = 4 << 20;
/// Metadata alone, from servers that can.
const GET: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";

/// Whether an object was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Changed,
    Nothing,
}

/// The extension server did not answer.
pub struct Unanswered(pub String);

/// The collector of one extension server's objects.
pub struct RemoteCollector<'a> {
    pub api: &'a Api,
    pub elsewhere: &'a Elsewhere,
    pub questions: &'a mpsc::Sender<Question>,
    pub remote: &'a Remote,
    pub user: &'a User,
    pub objects: &'a Objects,
    /// The owners that this server has itself.
    pub listed: &'a Listed,
    /// A state of this cluster since the listing.
    pub decided_at: Revision,
    /// Group versions whose servers did not answer a question about an owner.
    pub silent: HashSet<String>,
}

impl RemoteCollector<'_> {
    pub async fn collect(&mut self, object: &RemoteObject) -> Result<Done, Unanswered> {
        let facts = &object.facts;
        if facts.is_deleting() {
            for finalizer in [ORPHAN, FOREGROUND] {
                if facts.has_finalizer(finalizer) {
                    return self.finish_owner(object, finalizer).await;
                }
            }
            return Ok(Done::Nothing);
        }
        let owners = self.owners(object).await;
        let mut own = OwnDependents::default();
        if !owners.waiting.is_empty() {
            let Some(local) = self.ask(object).await else {
                self.elsewhere.objects.want();
                return Ok(Done::Nothing);
            };
            own = self.with_remote_dependents(object, local.own);
        }
        match decide(&owners, facts, || own) {
            Step::Keep | Step::Undecided => Ok(Done::Nothing),
            Step::Release(uids) => {
                let stays = |owner: &Value| owner["uid"].as_str().is_none_or(|uid| !uids.contains(&uid));
                self.rewrite(object, "ownerReferences", |all| all.retain(stays)).await
            }
            Step::Unblock => {
                let unblock = |owner: &mut Value| {
                    if let Some(blocks) = owner.get_mut("blockOwnerDeletion") {
                        *blocks = false.into();
                    }
                };
                self.rewrite(object, "ownerReferences", |all| all.iter_mut().for_each(unblock)).await
            }
            Step::Delete(policy) => self.delete(object, policy).await,
        }
    }

    async fn owners<'o>(&mut self, object: &'o RemoteObject) -> Owners<'o> {
        let mut owners = Owners::default();
        let dependent = Dependent {
            is_namespaced: object.resource.is_namespaced,
            namespace: &object.namespace,
            is_remote: true,
        };
        for owner in &object.facts.owner_references {
            let state = self.owner(dependent, owner).await;
            owners.add(owner, state);
        }
        owners
    }

    async fn owner(&mut self, dependent: Dependent<'_>, owner: &OwnerReference) -> Owner {
        if let Some(listed) = self.listed.state(&owner.uid, dependent.namespace, &owner.name) {
            return listed;
        }
        let collector = Collector { api: self.api, elsewhere: self.elsewhere, decided_at: self.decided_at };
        let Some(asked) = collector.remote_owner(dependent.namespace, owner) else {
            return collector.owner(dependent, owner);
        };
        if self.silent.contains(&owner.api_version) {
            return Owner::Unknown;
        }
        let state = self.elsewhere.remote.find_out(self.api, asked).await;
        if state == Owner::Unknown {
            self.silent.insert(owner.api_version.clone());
        }
        state
    }

    /// Takes the finalizer off an owner for whose dependents everything is done.
    async fn finish_owner(&self, object: &RemoteObject, finalizer: &str) -> Result<Done, Unanswered> {
        let objects = &self.elsewhere.objects;
        let uid = &object.facts.uid;
        let services = self.api.extensions.newest(&self.api.cache);
        let is_known = match self.objects.waiting_since(uid) {
            Some(since) => objects.covers(&services, Since::Instant(since)),
            None => false,
        };
        // Also asked if it is not known yet: the question has local dependents looked at.
        let local = self.ask(object).await;
        let is_free = local.is_some_and(|local| match finalizer {
            ORPHAN => !local.own.exist && !local.may_be_hidden && !objects.has_dependents(uid),
            _ => !local.block && !objects.has_blocking_dependents(uid),
        });
        if !is_known || !is_free {
            objects.want();
            return Ok(Done::Nothing);
        }
        self.rewrite(object, "finalizers", |all| all.retain(|one| one != finalizer)).await
    }

    /// The dependents that an object has in this cluster; `None` if they are not known.
    async fn ask(&self, object: &RemoteObject) -> Option<LocalDependents> {
        let (answer, answered) = oneshot::channel();
        let question = Question {
            uid: object.facts.uid.clone(),
            namespace: object.namespace.clone(),
            at: self.decided_at,
            answer,
        };
        self.questions.send(question).await.ok()?;
        answered.await.ok()?
    }

    fn with_remote_dependents(&self, object: &RemoteObject, local: OwnDependents) -> OwnDependents {
        let remote = self.elsewhere.objects.dependents(&object.facts.uid);
        OwnDependents {
            exist: local.exist || !remote.is_empty(),
            one_waits: local.one_waits || remote.iter().any(|one| one.facts.waits_for_dependents()),
        }
    }

    async fn delete(&self, object: &RemoteObject, policy: Propagation) -> Result<Done, Unanswered> {
        let Some(path) = object.path() else { return Ok(Done::Nothing) };
        let version = Some(&object.resource_version).filter(|version| !version.is_empty());
        let options = DeleteOptions {
            dependents: Dependents::Policy(policy),
            preconditions: Preconditions {
                uid: Some(object.facts.uid.clone()),
                resource_version: version.cloned(),
            },
            ..DeleteOptions::default()
        };
        let mut body = Map::new();
        body.insert("kind", "DeleteOptions".into());
        body.insert("apiVersion", "v1".into());
        options.print(&mut body);
        let call = Call { method: Method::DELETE, ..Call::get(&path, self.user, TIME, LIMIT) };
        self.write(call, "application/json", &Value::Object(body)).await
    }

    /// Changes a list in the metadata, provided that the object does not change meanwhile. The newest list is read first:
    /// the listing has not all members of its elements.
    async fn rewrite(
        &self,
        object: &RemoteObject,
        member: &str,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<Done, Unanswered> {
        let Some(path) = object.path() else { return Ok(Done::Nothing) };
        let call = Call { accept: GET, ..Call::get(&path, self.user, TIME, LIMIT) };
        let found = self.api.call_extension(self.remote, &call).await.map_err(Unanswered)?;
        let Ok(found) = serde_json::from_slice::<Value>(&found.body) else { return Ok(Done::Nothing) };
        let metadata = &found["metadata"];
        if metadata["uid"] != object.facts.uid.as_str() {
            return Ok(Done::Nothing);
        }
        let before = metadata[member].as_array().cloned().unwrap_or_default();
        let mut after = before.clone();
        change(&mut after);
        if after == before {
            return Ok(Done::Nothing);
        }
        let list = if after.is_empty() { Value::Null } else { after.into() };
        let version = metadata["resourceVersion"].clone();
        let patch = json!({"metadata": {"uid": object.facts.uid, "resourceVersion": version, member: list}});
        let call = Call { method: Method::PATCH, ..call };
        self.write(call, "application/merge-patch+json", &patch).await
    }

    async fn write(&self, call: Call<'_>, kind: &'static str, body: &Value) -> Result<Done, Unanswered> {
        let content = Some(Content { kind, bytes: Bytes::from(body.to_string()) });
        let call = Call { content, ..call };
        let Answered { status, .. } =
            self.api.call_extension(self.remote, &call).await.map_err(Unanswered)?;
        match status {
            200..300 => Ok(Done::Changed),
            // It has gone or changed: the next listing shows it.
            404 | 409 => Ok(Done::Changed),
            _ => {
                tracing::debug!(
                    status,
                    path = call.path,
                    "an object of an extension server is not collected"
                );
                Ok(Done::Nothing)
            }
        }
    }
}
