//! NamespaceExists and NamespaceAutoProvision: nothing is written in a namespace that is not there, or it is made first.

use super::{Admission, Attempt, Operation, Verdict};
use crate::api::Target;
use crate::api::error::Error;
use crate::api::input::decode::Body;
use crate::api::input::options::DryRun;
use crate::api::request::Request;
use crate::api::resource::Resource;
use crate::cache::State;
use crate::schema::names::{GroupResource, Gvr};
use crate::schema::resource::Verb;
use crate::tree::{Value, json};

const NAMESPACES: Gvr = Gvr::fixed("v1", "namespaces");

pub(super) struct NamespaceExists;

impl Admission for NamespaceExists {
    fn handles(&self, operation: Operation, request: &Request<'_>) -> bool {
        operation != Operation::Connect && request.target.resource.definition.namespaced()
    }

    fn validate<'a>(&'a self, attempt: &'a Attempt<'_>) -> Verdict<'a> {
        let api = attempt.api;
        if exists(attempt, &api.cache.any()) {
            return Verdict::Now(Ok(()));
        }
        Verdict::Later(Box::pin(async move {
            match exists(attempt, &*api.cache.fresh().await?) {
                true => Ok(()),
                false => {
                    let (resource, name) = (GroupResource::new("", "namespaces"), attempt.target.namespace);
                    Err(Error::NotFound { resource, name: name.to_owned() })
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
        if exists(attempt, &attempt.api.cache.any()) {
            return Verdict::Now(Ok(()));
        }
        Verdict::Later(Box::pin(async move {
            let (api, Some(resource)) = (attempt.api, namespaces(attempt)) else { return Ok(()) };
            let request = Request::own(Verb::Create, Target { resource, namespace: "", name: "" });
            let Value::Object(object) = json!({"metadata": {"name": attempt.target.namespace}}) else {
                return Ok(());
            };
            match Box::pin(api.create(&request, Body::Object(&object))).await {
                Ok(_) => Ok(()),
                Err(Error::AlreadyExists { .. }) => api.cache.fresh().await.map(drop).map_err(Error::from),
                Err(error) => Err(attempt.refused(error.to_string())),
            }
        }))
    }
}

fn namespaces<'a>(attempt: &Attempt<'a>) -> Option<&'a Resource> {
    attempt.api.resources.get(&NAMESPACES).map(|resource| &**resource)
}

fn exists(attempt: &Attempt<'_>, state: &State) -> bool {
    namespaces(attempt).is_none_or(|found| state.get(found.id, "", attempt.target.namespace).is_some())
}
