//! Upstream's admission plugins, as far as they are here. This file refuses objects in namespaces that do not exist or
//! are going away (NamespaceLifecycle), and the deletion of namespaces the system needs; [`plugins`] completes objects.

mod classes;
mod limits;
pub mod plugins;
mod priority;
mod protection;
mod runtime_class;
mod tolerations;
mod usage;
mod view;

use super::error::{Cause, CauseReason, Error};
use super::{Api, Target, meta};
use crate::storage::ResourceId;

/// Namespaces that may not be deleted (upstream's immortal namespaces).
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];
/// The priority classes that are there from the start.
const SYSTEM_CLASSES: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

/// May an object be created here? `namespace` is `None` for cluster-scoped resources.
pub async fn admit_create(api: &Api, target: Target<'_>, namespace: Option<&str>) -> Result<(), Error> {
    let (Some(namespace), Some(namespaces)) = (namespace, namespaces(api)) else { return Ok(()) };
    // Another replica may have created the namespace a moment ago, so "not there" needs a fresh state; a namespace that
    // is there in an old one may be terminating in a newer one, which its controller copes with.
    let mut found = api.cache.any().get(namespaces, "", namespace);
    if found.is_none() {
        found = api.cache.fresh().await?.get(namespaces, "", namespace);
    }
    let Some(found) = found else {
        return Err(Error::NotFound {
            resource: crate::schema::names::GroupResource::new("", "namespaces"),
            name: namespace.to_owned(),
        });
    };
    let terminating = found.mentions("deletionTimestamp")
        && super::metadata(&found.to_map()?).is_some_and(meta::is_terminating);
    if terminating {
        return Err(refused(target, namespace));
    }
    Ok(())
}

/// A PUT that may create: the namespace counts only if there is no object yet.
pub async fn admit_update_or_create(api: &Api, target: Target<'_>) -> Result<(), Error> {
    let state = api.cache.any();
    if state.get(target.resource.id, target.namespace, target.name).is_some() {
        return Ok(());
    }
    let namespaced = target.resource.definition.namespaced();
    admit_create(api, target, namespaced.then_some(target.namespace)).await
}

/// May this object be deleted?
pub fn admit_delete(target: Target<'_>) -> Result<(), Error> {
    let definition = &target.resource.definition;
    let (immortal, reason) = match (&*definition.group, &*definition.plural) {
        ("", "namespaces") => (&IMMORTAL[..], "this namespace may not be deleted"),
        ("scheduling.k8s.io", "priorityclasses") => {
            (&SYSTEM_CLASSES[..], "this is a system priority class and cannot be deleted")
        }
        _ => return Ok(()),
    };
    if !immortal.contains(&target.name) {
        return Ok(());
    }
    Err(Error::Forbidden {
        resource: definition.group_resource(),
        name: target.name.to_owned(),
        reason: reason.to_owned(),
    })
}

fn namespaces(api: &Api) -> Option<ResourceId> {
    api.resources.get("", "v1", "namespaces").map(|resource| resource.id)
}

fn refused(target: Target<'_>, namespace: &str) -> Error {
    let reason =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    let cause = Cause {
        reason: CauseReason::NamespaceTerminating,
        field: "metadata.namespace".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
    };
    Error::ForbiddenBecause {
        resource: target.resource.group_resource(),
        name: target.name.to_owned(),
        reason,
        causes: vec![cause],
    }
}
