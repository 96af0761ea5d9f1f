//! Admission: plugins that see every write before the store does, and may change or refuse it.
//!
//! First all plugins complete the object ([`Admission::mutate`]). This happens after its field managers were
//! determined, so that no manager owns what plugins add, and before the kind's own changes. When the object has been
//! validated, the plugins see it again ([`Admission::validate`]). If a plugin fails with an error, the write fails like
//! a refused one.
//!
//! [`plugins`] lists the plugins; [`settings`] says which of them are on.

mod certificates;
mod chain;
mod claim_resize;
mod classes;
pub mod configuration;
mod deny;
pub mod dynamic;
mod event_rate_limit;
mod external_ips;
mod limits;
mod namespace;
mod namespace_exists;
mod node_restriction;
mod owner_references;
pub mod plugins;
pub mod pods;
mod protection;
mod resource_quota;
pub mod settings;
mod view;

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use self::dynamic::reinvocation::Calls;
use crate::auth::foreseen::Foreseen;
use crate::cache::State;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::meta::owners::{Found, drop_repeated};
use crate::metrics::Metrics;
use crate::quota::JudgedByQuotas;
use crate::request::Request;
use crate::revision::Revision;
use crate::schema::resource::Verb;
use crate::storage::{Expect, Key, Requirement};
use crate::tree::{Text, Value};
use crate::{Cluster, ObjectMap, Target, meta, metadata, metadata_mut, ownership};

pub use chain::Chain;
pub use settings::Settings;

/// The effect of a write on an object. A PATCH or PUT counts as a create if the object does not exist; an action such as
/// a binding is a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    /// The request is passed on to a Pod, a Service or a Node. Its options stand in for the object.
    Connect,
}

impl Operation {
    /// Upstream's name of the operation.
    pub fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// An admission plugin. A write that loses a race is tried again, and its plugins are called again with the newer
/// state.
pub trait Admission: Send + Sync {
    /// Registers the plugin's series that stand at zero before the first request.
    fn register(&self, _metrics: &Metrics) {}

    /// Whether the plugin wants to see such a request. Called for every write, so it must be cheap.
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool;

    /// Completes the object, or refuses it.
    fn mutate<'a>(&'a self, _: &'a mut Attempt<'_>) -> Verdict<'a> {
        Verdict::Nothing
    }

    /// Accepts or refuses the object, which is complete and valid now.
    fn validate<'a>(&'a self, _: &'a Attempt<'_>) -> Verdict<'a> {
        Verdict::Nothing
    }

    /// Whether the plugin decides by stored objects, and the write does not require these to be as the plugin has seen them.
    /// Then the newest state is asked for, if other servers write.
    fn looks(&self, _: &Attempt<'_>) -> bool {
        true
    }

    /// The files that configure the plugin beside what is stored, if there are any.
    fn files(&self) -> Option<&dyn Files> {
        None
    }
}

/// The files of a directory that configure a plugin (`staticManifestsDir`).
pub trait Files: Send + Sync {
    fn directory(&self) -> &Path;

    /// A hash of what is in force.
    fn hash(&self) -> String;

    /// Reads the files again, and tells their hash if it has changed. What cannot be used changes nothing.
    fn reload(&self) -> Result<Option<String>, String>;
}

/// A plugin's decision: available at once, or after the plugin has queried something.
pub enum Verdict<'a> {
    /// The plugin had nothing to decide, so no time is measured.
    Nothing,
    Now(Result<(), Error>),
    Later(BoxFuture<'a, Result<(), Error>>),
    /// The decision of quotas, which the charges of the write go by.
    OfQuotas(Result<JudgedByQuotas, Error>),
    OfQuotasLater(BoxFuture<'a, Result<JudgedByQuotas, Error>>),
}

impl Verdict<'_> {
    pub(super) async fn decided(self) -> Result<Option<JudgedByQuotas>, Error> {
        match self {
            Verdict::Nothing => Ok(None),
            Verdict::Now(verdict) => verdict.map(|()| None),
            Verdict::Later(verdict) => verdict.await.map(|()| None),
            Verdict::OfQuotas(verdict) => verdict.map(Some),
            Verdict::OfQuotasLater(verdict) => verdict.await.map(Some),
        }
    }
}

/// A write in progress, or a connection that is asked for, as plugins see it. Objects are in the version of the request,
/// and their `managedFields` are [closed](crate::codec::managed).
pub struct Attempt<'a> {
    /// For queries of the store.
    pub cluster: &'a Cluster,
    pub request: &'a Request<'a>,
    pub operation: Operation,
    /// The request's target; of a new object with the object's name, which is empty in [`Admission::mutate`] if it is to be
    /// generated.
    pub target: Target<'a>,
    /// The object to write; `None` for a deletion. For the subresource `scale` it is the Scale; for an action, the body
    /// that describes the action.
    pub object: Option<ObjectMap>,
    /// The object that is replaced or deleted; `None` for a deletion of an object that cannot be read.
    pub old: Option<&'a ObjectMap>,
    pub(super) requires: Vec<Requirement>,
    /// The requirement that webhooks and policies are still configured as they were when the first plugin was asked;
    /// `None` if neither sees the write.
    pub(super) configured: Option<Arc<Requirement>>,
    /// The revision at which the cache had last been read as a whole when the first plugin was asked.
    loaded_at: Revision,
    /// The decision of quotas, once they have decided.
    pub(super) quotas: Option<JudgedByQuotas>,
    rounds: Rounds,
}

/// Webhooks and policies may change an object more than once: all plugins see it again then.
#[derive(Default)]
struct Rounds {
    number: u8,
    /// Whether there is to be a second round.
    again: bool,
    /// Whether a webhook or a policy has put another object in place of the client's.
    rewritten: bool,
    hooks: Option<Box<Calls>>,
    policies: Option<Box<Calls>>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        cluster: &'a Cluster,
        request: &'a Request<'a>,
        operation: Operation,
        old: Option<&'a ObjectMap>,
    ) -> Self {
        let foreseen = request.foreseen.filter(|_| !strikes(Bug::RightNotRequired));
        let requires = foreseen.map_or(&[][..], Foreseen::rows).to_vec();
        Self {
            cluster,
            request,
            operation,
            target: request.target,
            object: None,
            old,
            requires,
            configured: cluster.configured_for(request),
            loaded_at: cluster.cache.any().loaded_at,
            quotas: None,
            rounds: Rounds::default(),
        }
    }

    pub(super) fn with(self, object: ObjectMap) -> Self {
        Self { object: Some(object), ..self }
    }

    /// Makes the write depend on another row. If the requirement fails at the commit, the write is tried again.
    pub fn require(&mut self, requirement: Requirement) {
        self.requires.push(requirement);
    }

    /// Called when all plugins are through. They have asked one after the other, so one may have judged by a row that has changed
    /// since the write required it. The commit finds that out, but not if a failover takes the change back first: then the row
    /// is as it was required, and the judgement is of what never was. Such a write is made impossible, and so judged again.
    pub(super) fn settle_requirements(&mut self) {
        if !self.cluster.store.backend().shared() {
            return;
        }
        let required = self.requires.iter().chain(self.configured.as_deref());
        if let Some(key) = changed_since(&self.cluster.cache.any(), self.loaded_at, required).cloned() {
            self.requires.push(Requirement { key, expect: Expect::At(Revision(0)) });
        }
    }

    /// The resource of the request.
    fn plural(&self) -> &'a str {
        &self.target.resource.definition.plural
    }

    /// 403 with upstream's text around the reason.
    pub fn refused(&self, reason: impl Into<String>) -> Error {
        let (resource, name) = (self.target.resource.group_resource(), self.shown_name().to_owned());
        Error::Forbidden { resource, name, reason: reason.into() }
    }

    /// The name that refusals show: of a new object without a name, what it is to be made of.
    fn shown_name(&self) -> &str {
        // Upstream's attributes of the deletion of a collection name no object.
        if !self.target.name.is_empty() && self.request.verb != Verb::DeleteCollection {
            return self.target.name;
        }
        let of = |field| self.object.as_ref().and_then(metadata).map(|own| meta::text(own, field));
        let names = [of("name"), of("generateName")].into_iter().flatten();
        names.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
    }

    /// The details of a refusal: what is refused.
    fn details(&self) -> ObjectMap {
        let (resource, name) = (self.target.resource.group_resource(), self.shown_name());
        let members =
            [("name", name), ("group", resource.group.as_str()), ("kind", resource.plural.as_str())];
        let told = members.into_iter().filter(|(_, text)| !text.is_empty());
        told.map(|(member, text)| (Text::new_static(member), Value::from(text))).collect()
    }

    /// Puts another object in place of the one that is to be written. It keeps its managers if the other's are not
    /// valid.
    fn replace_object(&mut self, mut object: ObjectMap) {
        let managers =
            |object: &ObjectMap| metadata(object).and_then(|own| own.get("managedFields")).cloned();
        let before = self.object.as_ref().and_then(managers);
        let after = managers(&object);
        if before != after
            && let Err(why) = ownership::check_managers(after.as_ref())
        {
            self.request.warnings.add(format!(
                ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated \
                 mutating admission controller; please fix your requests: {why}"
            ));
            let own = metadata_mut(&mut object);
            match before {
                Some(before) => _ = own.insert("managedFields", before),
                None => _ = own.shift_remove("managedFields"),
            }
        }
        self.object = Some(object);
        self.rounds.rewritten = true;
    }

    /// Restores what holds of a client's object, if a webhook or a policy has put another one in its place.
    pub(super) fn settle_rewritten(&mut self) -> Result<(), Error> {
        if !self.rounds.rewritten {
            return Ok(());
        }
        let (target, warnings) = (self.target, self.request.warnings);
        let own = metadata_mut(self.object_mut()?);
        drop_repeated(own, Found::AfterAdmission, warnings);
        let namespace = target.resource.definition.namespaced().then_some(target.namespace);
        meta::ensure_namespace(own, namespace)
    }

    pub(super) fn object_mut(&mut self) -> Result<&mut ObjectMap, Error> {
        self.object.as_mut().ok_or_else(taken)
    }

    pub(super) fn take_object(&mut self) -> Result<ObjectMap, Error> {
        self.object.take().ok_or_else(taken)
    }
}

/// The first row that may have been seen otherwise than required since then: it is otherwise now, or the state has been read anew.
fn changed_since<'a>(
    state: &State,
    loaded_at: Revision,
    mut required: impl Iterator<Item = &'a Requirement>,
) -> Option<&'a Key> {
    let is_now = |Requirement { key, expect }: &Requirement| {
        let found = state.get(key.resource, &key.namespace, &key.name);
        *expect == found.map_or(Expect::Absent, |found| Expect::At(found.revision()))
    };
    let has_changed =
        |one: &&Requirement| state.holds(one.key.resource) && (state.loaded_at != loaded_at || !is_now(one));
    required.find(has_changed).map(|one| &one.key)
}

/// Whether a request is for whole objects of this kind, not for a subresource.
fn of_kind(request: &Request<'_>, group: &str, kind: &str) -> bool {
    let definition = &request.target.resource.definition;
    definition.kind_name() == kind && definition.group() == group && request.subresource.is_empty()
}

fn taken() -> Error {
    Error::Internal("an admission plugin has taken the object away".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Objects;
    use crate::codec::object::Draft;
    use crate::storage::ResourceId;

    const ROWS: ResourceId = ResourceId(7);

    fn put(state: &mut State, revision: u64) {
        let draft = Draft::of_json("", "row", r#"{"metadata":{"name":"row"}}"#.into());
        let object = Arc::new(draft.into_object(Revision(revision)));
        state.apply(ROWS, "row", Revision(revision), Some(object)).expect("held");
        state.revision = Revision(revision);
    }

    /// After a failover the row may be as it was required; what plugins have seen in between is lost.
    #[test]
    fn what_has_changed_while_plugins_were_asked_is_noticed() {
        let key = |resource, name| Key::new(resource, "", name);
        let row = Requirement { key: key(ROWS, "row"), expect: Expect::At(Revision(5)) };
        let missing = Requirement { key: key(ROWS, "missing"), expect: Expect::Absent };
        let unheld = Requirement { key: key(ResourceId(8), "row"), expect: Expect::At(Revision(1)) };
        let all = [&unheld, &missing, &row];
        let mut state = State::at(Revision(4));
        state.load(ROWS, Objects::default());
        put(&mut state, 5);
        let changed = |state: &State| changed_since(state, Revision(4), all.into_iter()).cloned();
        assert_eq!(changed(&state), None);
        put(&mut state, 6);
        assert_eq!(changed(&state), Some(row.key.clone()));
        let mut anew = State::at(Revision(1_000_006));
        anew.load(ROWS, Objects::default());
        put(&mut anew, 5);
        assert_eq!(changed(&anew), Some(missing.key.clone()));
        assert_eq!(changed_since(&anew, anew.loaded_at, all.into_iter()), None);
    }
}
