//! NamespaceLifecycle: a new object needs a namespace that exists and is not terminating at the moment of the commit;
//! what is changed needs one that exists; and some namespaces cannot be deleted.
//!
//! The plugin checks the namespace as this server sees it, and the write then requires the very version that was
//! checked. So no object is created after the revision at which its namespace was marked for deletion, on any server.

use std::sync::Arc;

use super::{Admission, Attempt, Operation, Verdict};
use crate::cache::State;
use crate::causes::{Cause, CauseReason};
use crate::codec::object::Object;
use crate::error::Error;
use crate::failpoints::{Bug, strikes};
use crate::request::Request;
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Storage;
use crate::storage::{Expect, Key, Requirement, ResourceId};
use crate::{Target, meta, metadata};

/// Namespaces that cannot be deleted (upstream's immortal namespaces).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

pub(super) struct NamespaceLifecycle;

impl Admission for NamespaceLifecycle {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        match operation {
            // Bindings and evictions are new content too.
            Operation::Create | Operation::Update => {
                request.target.resource.definition.namespaced() && !is_access_review(request)
            }
            Operation::Delete => is_namespace(request),
            Operation::Connect => false,
        }
    }

    /// A new object requires its namespace, and what is not there is asked for below.
    fn looks(&self, _: &Attempt<'_>) -> bool {
        false
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        let (cluster, target) = (attempt.cluster, attempt.target);
        if attempt.operation == Operation::Delete {
            return Verdict::Now(check_immortal(target));
        }
        let Some(namespaces) =
            cluster.resources.get(&Gvr::fixed("v1", "namespaces")).map(|resource| resource.id)
        else {
            return Verdict::Now(Ok(()));
        };
        // Another replica may have created the namespace a moment ago, so its absence must be confirmed in a fresh
        // state. A namespace that an old state contains may be gone or terminating by now, which is why its version is
        // required.
        let state = cluster.cache.any();
        let exists = state.get(namespaces, "", target.namespace).is_some();
        if exists && attempt.operation == Operation::Update {
            return Verdict::Nothing;
        }
        if exists {
            return Verdict::Now(admit(namespaces, attempt, &state));
        }
        Verdict::Later(Box::pin(async move { admit(namespaces, attempt, &*cluster.cache.fresh().await?) }))
    }
}

/// Whether a request asks for somebody's rights in a namespace. The answer would tell whether the namespace exists.
fn is_access_review(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    matches!(definition.storage, Storage::Virtual) && &*definition.plural == "localsubjectaccessreviews"
}

fn is_namespace(request: &Request<'_>) -> bool {
    let definition = &request.target.resource.definition;
    definition.group().is_empty() && &*definition.plural == "namespaces"
}

fn check_immortal(target: Target<'_>) -> Result<(), Error> {
    if !IMMORTAL.contains(&target.name) {
        return Ok(());
    }
    Err(target.forbidden("this namespace may not be deleted"))
}

fn admit(namespaces: ResourceId, attempt: &mut Attempt<'_>, state: &State) -> Result<(), Error> {
    if attempt.operation == Operation::Update {
        return find(namespaces, attempt, state).map(drop);
    }
    let requirement = judge(namespaces, attempt, state)?;
    if !strikes(Bug::NamespaceNotRequired) {
        attempt.require(requirement);
    }
    Ok(())
}

/// The namespace; 404 if there is none.
fn find(namespaces: ResourceId, attempt: &Attempt<'_>, state: &State) -> Result<Arc<Object>, Error> {
    let namespace = attempt.target.namespace;
    let not_found = || Error::not_found(GroupResource::new("", "namespaces"), namespace);
    state.get(namespaces, "", namespace).ok_or_else(not_found)
}

/// Requires the namespace of the new object at the version that was checked.
fn judge(namespaces: ResourceId, attempt: &Attempt<'_>, state: &State) -> Result<Requirement, Error> {
    let namespace = attempt.target.namespace;
    let found = find(namespaces, attempt, state)?;
    if is_terminating(&found)? && !strikes(Bug::EndingUnnoticed) {
        return Err(refused(attempt));
    }
    let key = Key::new(namespaces, "", namespace);
    Ok(Requirement { key, expect: Expect::At(found.revision()) })
}

/// Fails if the namespace cannot be read.
fn is_terminating(namespace: &Object) -> Result<bool, Error> {
    namespace.json()?;
    Ok(namespace.mentions("deletionTimestamp")
        && metadata(&namespace.to_map()?).is_some_and(meta::is_terminating))
}

fn refused(attempt: &Attempt<'_>) -> Error {
    let Target { resource, namespace, .. } = attempt.target;
    let reason =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: CauseReason::NamespaceTerminating,
        field: "metadata.namespace".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
    };
    Error::ForbiddenBecause {
        resource: resource.group_resource(),
        name: attempt.shown_name().to_owned(),
        reason,
        causes: vec![cause],
    }
}
