//! NamespaceExists and NamespaceAutoProvision: nothing is written in a namespace that is not there, or it is made first.

use super::{Admission, Attempt, Operation, Verdict};
use crate::Target;
use crate::cache::State;
use crate::error::Error;
use crate::options::DryRun;
use crate::request::Request;
use crate::resource::Resource;
use crate::schema::names::{GroupResource, Gvr};

const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");

pub(super) struct NamespaceExists;

impl Admission for NamespaceExists {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Connect && request.target.resource.definition.namespaced()
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let cluster = attempt.cluster;
        if exists(attempt, &cluster.cache.any()) {
            return Verdict::Now(Ok(()));
        }
        Verdict::Later(Box::pin(async move {
            match exists(attempt, &*cluster.cache.fresh().await?) {
                true => Ok(()),
                false => {
                    Err(Error::not_found(GroupResource::new("", "namespaces"), attempt.target.namespace))
                }
            }
        }))
    }
}

pub(super) struct NamespaceAutoProvision;

impl Admission for NamespaceAutoProvision {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation == Operation::Create
            && request.target.resource.definition.namespaced()
            && request.options.dry_run() == DryRun::No
    }

    fn mutate<'a>(&'a self, attempt: &'a mut Attempt<'_>) -> Verdict<'a> {
        if exists(attempt, &attempt.cluster.cache.any()) {
            return Verdict::Now(Ok(()));
        }
        Verdict::Later(Box::pin(async move {
            let (cluster, Some(resource)) = (attempt.cluster, namespaces(attempt)) else { return Ok(()) };
            let target = Target { resource, namespace: "", name: attempt.target.namespace };
            cluster.create_namespace(target).await.map_err(|error| attempt.refused(error.to_string()))
        }))
    }
}

fn namespaces<'a>(attempt: &Attempt<'a>) -> Option<&'a Resource> {
    attempt.cluster.resources.get(&NAMESPACES).map(|resource| &**resource)
}

fn exists(attempt: &Attempt<'_>, state: &State) -> bool {
    namespaces(attempt).is_none_or(|found| state.get(found.id, "", attempt.target.namespace).is_some())
}
